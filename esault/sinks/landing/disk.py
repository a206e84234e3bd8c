"""The few file operations a landed table is made of, and what their failures mean to the user.

All that is written goes through one port, so that tests run the log on a disk in memory, stop a writer between any
two operations and take the power away. What is relied on: a hard link either appears whole or fails because its name
is taken; a rename is atomic; and after a power cut the operations on one folder are kept up to some point in their
order, as every journaling file system does.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Protocol

from esault.errors import SinkError

__all__ = ["Disk", "LocalDisk", "explained", "refusal"]

#: errno of a file system that cannot make hard links (FAT, some network and FUSE mounts)
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV})


class Disk(Protocol):
    """Files by path; every method raises OSError as the functions of `os` do."""

    def read(self, path: str) -> bytes:
        """The whole file."""
        ...

    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder, in no order."""
        ...

    def write_new(self, path: str, data: bytes | memoryview) -> None:
        """A new file with durable content; nothing is left of it when this fails."""
        ...

    def link(self, source: str, target: str) -> bool:
        """Give `source` a second name, if no file has it; return whether this call took it."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Give a file another name; replaces what had it."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; a missing one is fine."""
        ...

    def sync_folder(self, folder: str) -> None:
        """Make the names in a folder durable."""
        ...

    def make_folder(self, folder: str) -> None:
        """Make a folder and those above it, durably; an existing one is fine."""
        ...

    def modified(self, path: str) -> float:
        """Return the time at which the file was last written, seconds since the epoch."""
        ...

    def touch(self, path: str) -> None:
        """Let `modified` be now."""
        ...


class LocalDisk:
    """The real one."""

    def read(self, path: str) -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            pieces = []
            while piece := os.read(descriptor, 1 << 20):
                pieces.append(piece)
        finally:
            os.close(descriptor)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def names(self, folder: str) -> list[str]:
        return os.listdir(folder)

    def write_new(self, path: str, data: bytes | memoryview) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise

    def link(self, source: str, target: str) -> bool:
        try:
            os.link(source, target)
        except FileExistsError:
            # NFS repeats a request whose answer was lost: the name may be taken by this very call
            return os.stat(source).st_nlink == 2
        return True

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def sync_folder(self, folder: str) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_folder(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        above = os.path.dirname(folder)
        if above and above != folder:
            self.make_folder(above)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
        if not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        self.sync_folder(above or ".")

    def modified(self, path: str) -> float:
        return os.stat(path).st_mtime

    def touch(self, path: str) -> None:
        os.utime(path)


def refusal(doing: str, path: str, error: OSError) -> SinkError:
    """The SinkError that says what failed, where, why and what to do."""
    code = error.errno
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return SinkError(
            f"{doing} {path}: the disk is full ({error.strerror}). Nothing half-written is visible; "
            "free space, or land the table on another disk, and try again"
        )
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return SinkError(
            f"{doing} {path}: not permitted ({error.strerror}). Give this user the right to write there, "
            "or choose another path"
        )
    if code in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
        return SinkError(
            f"{doing} {path}: it is gone, or a folder above it is ({error.strerror}). "
            "Was the table removed while it was in use?"
        )
    return SinkError(f"{doing} {path}: {error.strerror or error}")


@contextlib.contextmanager
def explained(doing: str, path: str) -> Iterator[None]:
    """Turn an OSError of the block into the SinkError of `refusal`."""
    try:
        yield
    except OSError as error:
        raise refusal(doing, path, error) from error


def no_links(error: OSError) -> bool:
    """Return whether the error says that the file system has no hard links."""
    return error.errno in _NO_LINKS
