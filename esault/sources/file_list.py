"""Files that a source reads: from a glob, a file, a folder or a list of them to names, and the part that reads each."""

from __future__ import annotations

import contextlib
import glob
import heapq
import os
import stat
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from esault.errors import SourceError, TopologyError
from esault.object_store.stored_object import is_url, local_path
from esault.sources.object_list import ObjectList
from esault.sources.small_files import SMALL

__all__ = ["FILES_AT_ONCE", "FileList", "deal", "fingerprints", "part_of", "unreadable"]

#: files that one sub-unit has open at most, and where all are small: to be told of the next ones takes as long as to read some
FILES_AT_ONCE, SMALL_AT_ONCE = 16, 128
#: whether rights are asked for as this process has them, and not for those of who started it
_EFFECTIVE = os.access in os.supports_effective_ids
_FOR_ALL = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH


class FileList:
    """The files that the user named. `find` looks anew each time it is called; relative names mean the working directory.

    Objects at s3:// and the like have names with their version: see `ObjectList`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        pattern: str = "**/*",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """`pattern` is what is read of a folder, relative to it; hidden files only if it names them."""
        given = [path] if isinstance(path, (str, os.PathLike)) else path
        if not isinstance(given, Iterable) or isinstance(given, (bytes, Mapping)):
            raise TopologyError(
                f"path={path!r}: write a file, a folder, a glob such as 'texts/*.txt', or a list of them"
            )
        self.paths: list[str] = []
        for one in given:
            name = os.fspath(one) if isinstance(one, (str, os.PathLike)) else one
            if not isinstance(name, str) or not name:
                raise TopologyError(f"path={one!r}: write the name of a file or a folder, or a glob, as text")
            self.paths.append(os.path.expanduser(local_path(name)))
        if not self.paths:
            raise TopologyError("path=[]: an empty list names no file to read")
        if not isinstance(pattern, str) or not pattern:
            raise TopologyError(f"pattern={pattern!r}: write which files of a folder are read, such as '*.txt'")
        self.pattern = pattern
        self.storage_options = storage_options
        urls = [path for path in self.paths if is_url(path)]
        self.paths = [path for path in self.paths if not is_url(path)]
        self._objects = ObjectList(urls, pattern, storage_options)
        #: bytes of each file that was measured last; None where more may come
        self.sizes: list[int] | None = None

    @property
    def has_objects(self) -> bool:
        """Return whether some are in an object store."""
        return self._objects.named

    def find(self) -> list[str]:
        """The names of all files there now, sorted, each file once; what is missing is left out."""
        return sorted([*self._find(), *self._objects.sizes()])

    def splits(self) -> dict[str, int] | None:
        """The names of `find` with the files' sizes in bytes. Objects are those of the last look where a look takes long; None: there was
        none yet."""
        objects = self._objects.known_sizes()
        return None if objects is None else dict(sorted([*self._sizes().items(), *objects.items()]))

    def _find(self) -> list[str]:
        found: dict[str, str] = {}
        for path in self.paths:
            for name in self._expand(path):
                if _may_be_read(name):
                    _check_name(name)
                    found.setdefault(os.path.abspath(name), name)
        return sorted(found.values())

    def _sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for name in self._find():
            with contextlib.suppress(OSError):  # it went just now
                found[name] = os.stat(name).st_size
        return found

    def measure(self, growing: bool = False, wait: bool = False, whole: bool = False) -> dict[str, int]:
        """The names of `find` with the files' sizes in bytes, in one pass. Raises SourceError unless there is something to read, and
        it can be read.

        With `growing`, files may be missing for now; the folders that they are expected in may not. `wait`: for an object store that is
        away. `whole`: files come whole, one after the other, so that a name without an ending is that of a folder.
        """
        found = self._measured(growing, wait, whole)
        self.sizes = None if growing else list(found.values())
        return found

    @property
    def at_once(self) -> int:
        """Return how many files one sub-unit is to have open at most, by the sizes that were measured last."""
        return SMALL_AT_ONCE if self.sizes and max(self.sizes) < SMALL else FILES_AT_ONCE

    def _measured(self, growing: bool, wait: bool, whole: bool) -> dict[str, int]:
        found: dict[str, tuple[str, int]] = {}
        # What one path stands for has one name each, but behind "..": to ask for those of thousands takes as long as to look at them.
        alone = len(self.paths) == 1 and ".." not in self.paths[0] and ".." not in self.pattern
        for path in self.paths:
            sizes = [(name, size) for name in sorted(self._expand(path)) if (size := _checked_size(name)) is not None]
            if not sizes and not growing:
                raise SourceError(self._missing(path))
            if not sizes:
                self._check_folder(path, whole)
            if alone and not self.has_objects:
                return dict(sizes)
            for each in sizes:
                found.setdefault(os.path.abspath(each[0]), each)
        return dict(sorted([*found.values(), *self._objects.measure(growing, wait).items()]))

    def _expand(self, path: str) -> list[str]:
        """Names that a path stands for; folders may be among those of a glob."""
        if os.path.isdir(path):
            return glob.glob(os.path.join(glob.escape(path), self.pattern), recursive=True)
        if os.path.lexists(path):  # also a name that looks like a glob: data[1].txt
            return [path]
        return glob.glob(path, recursive=True)

    def _missing(self, path: str) -> str:
        where = f"looked in {os.getcwd()}" if not os.path.isabs(path) else "the name is absolute"
        if os.path.isdir(path):
            return (
                f"{path}: the folder holds no file that fits pattern={self.pattern!r}; put files there or name another"
            )
        if glob.has_magic(path):
            return f"{path}: no file fits this glob ({where}); check the spelling, or the folder you started from"
        return f"{path}: there is no such file ({where}); check the spelling, or the folder you started from"

    def _check_folder(self, path: str, whole: bool) -> None:
        """The folder that files of `path` will appear in has to be there."""
        is_folder = os.path.isdir(path) or (whole and not os.path.splitext(path)[1] and not glob.has_magic(path))
        folder = path if is_folder else os.path.dirname(path)
        while glob.has_magic(folder):
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder or "."):
            raise SourceError(
                f"{path}: nothing can be followed there, for the folder {folder} does not exist; create it"
            )


def _may_be_read(name: str) -> bool:
    """Return whether it is a file, or gone: a pipe that appears in a folder would be waited for without end when it is opened."""
    try:
        return stat.S_ISREG(os.stat(name).st_mode)
    except OSError:
        return True  # who opens it says why


def _checked_size(name: str) -> int | None:
    """The size of a file in bytes; None for a folder. Raises SourceError for what else is no file, or cannot be read."""
    try:
        found = os.stat(name)
    except OSError as error:
        raise unreadable(name, error) from error
    if stat.S_ISDIR(found.st_mode):
        return None
    _check_name(name)
    if not stat.S_ISREG(found.st_mode):
        raise SourceError(f"{name}: is not a regular file; a pipe can be read as standard input, with Lines()")
    # Most files are for all to read. Where a list of rights refuses it all the same, opening it says so.
    if found.st_mode & _FOR_ALL != _FOR_ALL and not os.access(name, os.R_OK, effective_ids=_EFFECTIVE):
        raise unreadable(name, PermissionError())
    return found.st_size


def _check_name(name: str) -> None:
    """Raise SourceError for what cannot be the key of a tuple."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise SourceError(
            f"{name!a}: the file's name is no UTF-8, so it cannot be the key of a tuple; rename it"
        ) from None


def unreadable(name: str, error: OSError) -> SourceError:
    """Return the error for a file that cannot be opened."""
    if isinstance(error, PermissionError):
        return SourceError(f"{name}: no permission to read it; allow it (chmod +r) or run as another user")
    if isinstance(error, FileNotFoundError):
        target = " (it is a link to a file that is gone)" if os.path.islink(name) else ""
        return SourceError(f"{name}: there is no such file{target}; put it back, or name another")
    return SourceError(f"{name}: cannot be read: {error.strerror or error}")


def deal(sizes: Mapping[str, int], parts: int) -> list[list[str]]:
    """Divide files among `parts` readers: the largest first, each to who has the least so far. Each part is sorted.

    It depends on nothing but the arguments, so that all readers come to the same result.
    """
    if parts == 1:
        return [sorted(sizes)]
    hands: list[list[str]] = [[] for _ in range(parts)]
    heap = [(0, part) for part in range(parts)]
    for name in sorted(sizes, key=lambda n: (-sizes[n], n)):
        load, part = heap[0]
        hands[part].append(name)
        # a file costs something even if it is empty: else part 0 would get all empty ones
        heapq.heapreplace(heap, (load + sizes[name] + 1, part))
    return [sorted(hand) for hand in hands]


def part_of(name: str, parts: int) -> int:
    """Return the part that follows this file; by its name alone, since files to follow appear one by one."""
    return zlib.crc32(os.fsencode(name)) % parts


def fingerprints(names: Sequence[str]) -> list[int]:
    """For each name a number that stands for it and all names before it, as a check of positions."""
    marks: list[int] = []
    mark = 0
    for name in names:
        mark = zlib.crc32(os.fsencode(name) + b"\0", mark)
        marks.append(mark)
    return marks
