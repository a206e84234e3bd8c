"""Rotated logs: where the content of a file lies now that was renamed, copied and cut short, or compressed.

A file is known by its device and inode, and by how it begins: an inode is given away anew, and a copy has one of its own.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import sys
import zlib
from collections.abc import Collection, Container, Iterator
from typing import NamedTuple

__all__ = ["Mark", "begins", "begins_still", "is_whole", "locate", "mark_of", "origins", "same_as", "successors"]

#: bytes of a file's beginning that tell it from others
_BEGINNING = 1024
_CHUNK = 256 * 1024
#: what stands behind a log's name, or before its last suffix, when it is put away: a number, a date
_STAMP = r"[0-9][0-9T:._\-]*"


class Mark(NamedTuple):
    """Values that a file is known by, as it was seen last; plain values, for positions."""

    device: int
    inode: int
    #: bytes of its beginning, and their CRC-32
    length: int
    crc: int
    #: bytes, and when it was written last, in nanoseconds; -1: not known, in a position of an older version
    size: int
    mtime: int
    #: number of the file among those that had its name, as they were found
    generation: int = 0

    def begins(self, data: bytes) -> bool:
        """Return whether a file with this beginning may be this one."""
        return len(data) >= self.length and zlib.crc32(data[: self.length]) == self.crc


def mark_of(fd: int, before: Mark | None = None) -> Mark:
    """Return what the open file is known by; its beginning is read again only while it was short `before`."""
    status = os.fstat(fd)
    length, crc = (0, 0) if before is None else (before.length, before.crc)
    if length < _BEGINNING and status.st_size > length:
        data = os.pread(fd, _BEGINNING, 0)
        length, crc = len(data), zlib.crc32(data)
    generation = 0 if before is None else before.generation
    return Mark(status.st_dev, status.st_ino, length, crc, status.st_size, status.st_mtime_ns, generation)


def begins_still(fd: int, mark: Mark) -> bool:
    """Return whether the open file begins as it did."""
    return mark.begins(os.pread(fd, mark.length, 0)) if mark.length else True


def locate(name: str, offset: int, mark: Mark) -> str | None:
    """Return the path at which the file now lies that had this name, with `offset` bytes of (unpacked) content at least.

    It is looked for under its name, then in its folder and those right below by its inode, and last, under names that logs are put
    away by, as a copy, also a compressed one.
    """
    if _is_it(name, mark, offset):
        return name
    nearby = list(_nearby(name))
    for path, status in nearby:
        if status.st_ino == mark.inode and _is_it(path, mark, offset):
            return path
    if not mark.length:
        return None
    copies = sorted((status.st_mtime_ns, path) for path, status in nearby if _put_away(name, path))
    for mtime, path in sorted(copies, key=lambda copy: (copy[1].endswith(".gz"), copy)):
        if mtime >= mark.mtime and begins(path, mark) and _size(path, offset) >= offset:
            return path
    return None


def successors(
    name: str, last: Mark, held: Collection[tuple[int, int]], done: Collection[Mark], followed: Collection[str]
) -> list[str]:
    """Return where files lie that had this name behind `last` and were put away before a look, oldest first.

    `held`: device and inode of those that are open; `done`: those that have been read; `followed`: names that are followed as
    files of their own.
    """
    if last.mtime < 0:
        return []
    written = {(*mark[:2], mark.mtime) for mark in done}  # an inode alone is given away anew
    named = [(path, status) for path, status in _nearby(name) if _put_away(name, path)]
    plain = {path for path, _ in named}
    found = [
        (status.st_mtime_ns, _age(name, path), path)
        for path, status in named
        if status.st_mtime_ns >= last.mtime
        and status.st_size
        and (status.st_dev, status.st_ino) not in held
        and (status.st_dev, status.st_ino, status.st_mtime_ns) not in written
        and path not in followed
        and path.removesuffix(".gz") not in plain - {path}
        and same_as(path, done) is None
    ]
    return [path for _, _, path in sorted(found)]


def origins(path: str, *known: Container[str]) -> Iterator[str]:
    """Yield the names, of those that are known, under which a log may have been before it was put away at this path."""
    folder, base = os.path.split(path)
    base = base.removesuffix(".gz")
    cuts = [place for place, character in enumerate(base) if character in "._-"]
    bases = {base, *(base[:cut] + base[end:] for cut in cuts for end in (*cuts, len(base)) if end > cut)}
    for name in (os.path.join(each, one) for each in (folder, os.path.dirname(folder)) for one in bases):
        if any(name in each for each in known) and _put_away(name, path):
            yield name


def is_whole(path: str) -> bool:
    """Return whether the file can be read to its end, as far as that can be known."""
    return not path.endswith(".gz") or _size(path, sys.maxsize) >= 0


def same_as(path: str, known: Collection[Mark]) -> Mark | None:
    """Return the one of these files that the file there is, or is a whole copy of; an empty file is none."""
    for mark in known:
        if mark.length and begins(path, mark) and _size(path, mark.size + 1) == mark.size:
            return mark
    return None


def _is_it(path: str, mark: Mark, offset: int) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    if status.st_ino != mark.inode or (mark.device >= 0 and status.st_dev != mark.device):
        return False
    # A compressed one that is followed itself is known by its compressed bytes.
    return begins(path, mark, packed=True) and (path.endswith(".gz") or status.st_size >= offset)


def _nearby(name: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files in the folder of this one, and those in folders right below that logs like it are put away in."""
    folder = os.path.dirname(name)
    below = []
    for path, status in _files(folder):
        if stat.S_ISDIR(status.st_mode):
            below.append(path)
        elif path != name:
            yield path, status
    for each in below:
        for path, status in _files(each):
            if stat.S_ISREG(status.st_mode) and _put_away(name, path):
                yield path, status


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return  # a folder that others may not see has nothing for us
    for name in sorted(names):
        path = os.path.join(folder, name)
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
            yield path, status


def _put_away(name: str, path: str) -> bool:
    """Return whether a path looks like that of a log put away: `a.log.1`, `a.log-20260131.gz`, `a-2026-01-31.log`, `a.log.old`."""
    base = os.path.basename(name)
    stem, suffix = map(re.escape, os.path.splitext(base))
    behind = rf"{re.escape(base)}([._\-]({_STAMP}|old|bak|prev))?(\.gz)?"
    within = rf"{stem}[._\-]{_STAMP}{suffix}(\.gz)?"
    found = os.path.basename(path)
    return found != base and re.fullmatch(f"{behind}|{within}", found) is not None


def _age(name: str, path: str) -> list[int]:
    """Return a key that is less for what was put away earlier: a date grows, a number that counts rotations falls."""
    behind = os.path.basename(path)[len(os.path.splitext(os.path.basename(name))[0]) :]
    numbers = [int(number) for number in re.findall(r"\d+", behind)]
    return [-number for number in numbers] if len(numbers) == 1 and numbers[0] < 10_000 else numbers


def begins(path: str, mark: Mark, packed: bool = False) -> bool:
    """Return whether the content begins as that file's did; `packed`: the content of a `.gz` as it lies on the disk."""
    if not mark.length:
        return True
    try:
        with gzip.open(path) if path.endswith(".gz") and not packed else open(path, "rb") as file:
            return mark.begins(file.read(mark.length))
    except (OSError, EOFError, zlib.error):
        return False


def _size(path: str, enough: int) -> int:
    """Return the number of bytes of unpacked content; no more than `enough` are unpacked, and of what is damaged there are none."""
    try:
        if not path.endswith(".gz"):
            return os.stat(path).st_size
        size = 0
        with gzip.open(path) as file:
            while size < enough and (data := file.read(_CHUNK)):
                size += len(data)
        return size
    except (OSError, EOFError, zlib.error):
        return -1
