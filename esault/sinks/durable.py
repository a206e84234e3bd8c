"""Files that survive: written whole or not at all, and on the disk before they are relied on."""

from __future__ import annotations

import errno
import os

from esault.errors import SinkError

__all__ = ["replace_file", "sync_folder", "unwritable", "write_fully"]

_REMEDIES = {
    errno.ENOSPC: "the disk is full: make room, or write elsewhere",
    errno.EDQUOT: "the quota is used up: make room, or write elsewhere",
    errno.EFBIG: "the largest size of a file is reached (see ulimit -f): raise it, or write elsewhere",
    errno.EACCES: "no permission: allow it (chmod, chown), or write elsewhere",
    errno.EPERM: "no permission: allow it (chmod, chown), or write elsewhere",
    errno.EROFS: "the disk is read-only: write elsewhere",
    errno.EISDIR: "there is a folder of this name: write the name of a file",
    errno.ENOTDIR: "a part of this path is a file, not a folder: write elsewhere",
    errno.ENAMETOOLONG: "the name is too long: write a shorter one",
}


def unwritable(path: str, error: OSError) -> SinkError:
    """Return the error for a file that cannot be written."""
    remedy = _REMEDIES.get(error.errno or 0, "see that the folder exists and can be written")
    return SinkError(f"{path}: cannot be written ({error.strerror or error}); {remedy}")


def write_fully(fd: int, data: bytes) -> None:
    """All of `data`, at the descriptor's place; OSError may come when a part has been written."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def replace_file(path: str, data: bytes) -> None:
    """The file `path` has the content `data`: a reader sees the old content or the new, also after a crash."""
    draft = f"{path}.{os.getpid()}.draft"
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            write_fully(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(draft, path)
    except OSError:
        if os.path.exists(draft):
            os.unlink(draft)
        raise
    sync_folder(os.path.dirname(path))


def sync_folder(folder: str) -> None:
    """Names that were made, changed or removed in `folder` are on the disk."""
    fd = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
