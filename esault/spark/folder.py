"""Folders for the time of a session: gone with it, and where its process was killed, with the next one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["temporary_folder"]

_PREFIX = "esault-spark-"
_LOCK = ".owner"


@contextlib.contextmanager
def temporary_folder(kind: str = "") -> Iterator[Path]:
    """A new folder of ours for the time of the block. Folders of processes that are gone are removed before.

    The owner of a folder holds a lock on a file in it, which ends with the process however that ends.
    """
    _remove_stale()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}"))
    with open(folder / f"{_LOCK}.new", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(lock.name, folder / _LOCK)  # from now on the file is seen locked
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_stale() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # no such file, or its owner lives
            if folder.stat().st_uid != os.getuid():
                continue
            with open(folder / _LOCK) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
