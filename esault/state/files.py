"""Writing files so that after any crash they are there as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["private", "sync_file", "sync_folder", "write_whole"]


def private(path: str, flags: int) -> int:
    """An `opener` of `open`: a file that it makes is for this user alone, since state holds what tuples held. Raises OSError."""
    return os.open(path, flags, 0o600)


def sync_file(path: Path) -> None:
    """Make what was written to a file durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in its place, durable, in one step. Raises OSError; what stood there before then still stands."""
    part = path.with_name(f".{path.name}.part")
    try:
        with open(part, "wb", opener=private) as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
