"""Folders for the time of a session: gone with it, and where its process was killed, with the next one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from esault.state.locked_folder import LockedFolder, remove_stale

__all__ = ["temporary_folder"]

_PREFIX = "esault-spark-"


@contextlib.contextmanager
def temporary_folder(kind: str = "") -> Iterator[Path]:
    """A new folder of ours for the time of the block. Folders of processes that are gone are removed before."""
    remove_stale(_PREFIX)
    folder = LockedFolder(f"{_PREFIX}{kind}")
    try:
        yield folder.path
    finally:
        folder.close()
