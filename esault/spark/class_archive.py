"""Classes that a Java has loaded and checked, kept in a file, so that Spark starts on them from the next time on.

Half of the processor time of a small session goes into loading the 20,000 classes of Spark (JEP 350, dynamic archives of class data).
The first session writes the file when it ends. A Java maps it only where its version and all jars are the same, and goes on without
it otherwise.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path

from esault.spark.spark_defaults import settings_folder

__all__ = ["ClassArchive", "archived", "class_archive"]

#: bytes that a file takes, about, and that must be free besides
SIZE, SPARE = 200 << 20, 1 << 30
#: files that are kept beside a new one: those used last. Each environment of Python has one
KEPT = 3
#: seconds that Java may take to write it
PATIENCE = 120.0
#: what Java says of classes that it leaves out, by the hundred
_SILENT = "-Xlog:disable -Xlog:all=error:stderr"


class ClassArchive:
    """The file of one Java and one Spark. `options` go to the Java, `announce` is called before it ends, `written` behind."""

    def __init__(self, path: Path | None, making: bool = False, say: Callable[[str], None] = lambda text: None) -> None:
        self._path = path
        self._say = say
        #: whether this session's Java writes it
        self.making = making

    @property
    def options(self) -> str:
        """Return what Java is to be started with."""
        if self._path is None:
            return ""
        return f"{_SILENT} " + (
            f"-XX:ArchiveClassesAtExit={self._draft}"
            if self.making
            else f"-XX:SharedArchiveFile={self._path} -Xshare:auto"
        )

    def announce(self) -> None:
        """Say, before Java is ended, what it will do then."""
        if self.making:
            self._say(
                f"keeping the classes of Spark in {self._path}, once: it starts in half of the time from now on "
                "(ESAULT_CLASS_ARCHIVE=off does without) ..."
            )

    @property
    def patience(self) -> float:
        """Return the seconds that Java may take to end, beside those that it takes anyway."""
        return PATIENCE if self.making else 0.0

    @property
    def _draft(self) -> Path:
        assert self._path is not None
        return self._path.with_suffix(f".{os.getpid()}")

    def written(self) -> None:
        """Keep the file that Java has written; where it could not, an empty one says not to try again."""
        if not self.making or self._path is None:
            return
        with contextlib.suppress(OSError):
            if not self._draft.exists():
                self._draft.touch()
            self._draft.replace(self._path)


@contextlib.contextmanager
def class_archive(environ: MutableMapping[str, str], say: Callable[[str], None]) -> Iterator[ClassArchive]:
    """Find the file for this Java and Spark, or have this session write it, where no other one does just now.

    It is in the user's cache ($XDG_CACHE_HOME/esault, ~/.cache/esault). ESAULT_CLASS_ARCHIVE=off does without.
    """
    folder = _folder(environ)
    path = folder / f"spark-{_identity(environ['JAVA_HOME'])}.jsa"
    # One that was put together without its own archive has nothing to add to.
    base = Path(environ["JAVA_HOME"], "lib", "server", "classes.jsa")
    if environ.get("ESAULT_CLASS_ARCHIVE") == "off" or not base.is_file() or _looks_into_folders(environ):
        yield ClassArchive(None)
        return
    with contextlib.ExitStack() as stack:
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            making = stack.enter_context(_alone(folder, path))
            yield ClassArchive(path if making else None, making, say)
        except OSError:
            yield ClassArchive(None)
        else:
            with contextlib.suppress(OSError):
                os.utime(path)  # it is used
            yield ClassArchive(path if size else None)


def _looks_into_folders(environ: Mapping[str, str]) -> bool:
    """Return whether Java looks for classes in a folder that holds files, beside those of Spark: of such there is no archive.

    Spark puts the folders of its settings and of Hadoop's there.
    """
    named = (settings_folder(environ), environ.get("HADOOP_CONF_DIR"), environ.get("YARN_CONF_DIR"))
    for folder in filter(None, named):
        with contextlib.suppress(OSError):
            if os.listdir(folder):
                return True
    return False


def archived(environ: MutableMapping[str, str]) -> str:
    """Return what another Java of Spark, such as an executor's on this host, is to be started with; nothing where there is no file yet."""
    path = _folder(environ) / f"spark-{_identity(environ['JAVA_HOME'])}.jsa"
    with contextlib.suppress(OSError):
        if environ.get("ESAULT_CLASS_ARCHIVE") != "off" and path.stat().st_size:
            return ClassArchive(path).options
    return ""


@contextlib.contextmanager
def _alone(folder: Path, path: Path) -> Iterator[bool]:
    """Hold the right to write the file; False where another session has it, or there is no room."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if shutil.disk_usage(folder).free < SIZE + SPARE:
            yield False
            return
        file = path.with_suffix(".lock").open("w")
    except OSError:
        yield False
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        _make_room(folder, path)
        yield True


def _make_room(folder: Path, path: Path) -> None:
    """Remove what a session left that was killed, and files of environments that were not used for longest.

    A Java that has mapped one goes on with it.
    """
    with contextlib.suppress(OSError):
        for left in folder.glob(f"{path.stem}.[0-9]*"):
            left.unlink()
        known = sorted(folder.glob("spark-*.jsa"), key=lambda file: file.stat().st_mtime, reverse=True)
        for old in known[KEPT:]:
            old.unlink()
            old.with_suffix(".lock").unlink(missing_ok=True)


def _folder(environ: MutableMapping[str, str]) -> Path:
    home = environ.get("HOME") or os.path.expanduser("~")
    return Path(environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")) / "esault"


def _identity(java_home: str) -> str:
    release = Path(java_home, "release")
    known = release.read_bytes() if release.is_file() else b""
    spark = importlib.metadata.version("pyspark")
    where = os.path.dirname(os.path.abspath(importlib.import_module("pyspark").__file__ or ""))
    return hashlib.sha256(b"\0".join([known, java_home.encode(), spark.encode(), where.encode()])).hexdigest()[:16]
