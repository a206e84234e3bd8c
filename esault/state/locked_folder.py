"""Folders of temporary files: gone with their owner, and where that was killed, with the next one of their kind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import IO

__all__ = ["LockedFolder", "remove_stale"]

_LOCK = ".owner"


class LockedFolder:
    """A new folder. It is locked by a file in it, and the lock ends with the process, however that ends."""

    def __init__(self, prefix: str) -> None:
        """Raises OSError."""
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        lock = open(self.path / f"{_LOCK}.new", "w")  # noqa: SIM115 - open as long as the folder is there
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(lock.name, self.path / _LOCK)  # from now on the file is seen locked
        #: removes the folder; it is called by itself where the object goes, and at the end of the process
        self.close = weakref.finalize(self, _remove, self.path, lock, os.getpid())


def _remove(path: Path, lock: IO[str], owner: int) -> None:
    if os.getpid() == owner:  # a process that was forked from the owner has the object, too
        shutil.rmtree(path, ignore_errors=True)
        lock.close()


def remove_stale(prefix: str) -> None:
    """Remove this user's folders of that kind whose processes are gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # no such file, or its owner lives
            if folder.stat().st_uid != os.getuid():
                continue
            with open(folder / _LOCK) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
