"""Reads a fixed list of files, one after the other, and small ones together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from esault.errors import SourceError
from esault.object_store.stored_object import is_url, without_version
from esault.sources.file_list import fingerprints
from esault.sources.line_file import LineFile
from esault.sources.line_format import LineFormat
from esault.sources.small_files import SmallFiles, fits, read_small
from esault.topology.spout import EndOfStream

__all__ = ["FileSequence"]

#: chunks without a whole line that one read may work off: a line without end must not keep the data loop
_CHUNKS_PER_READ = 64
#: groups of empty files that one read may pass over
_GROUPS_PER_READ = 4
#: files that are read one by one where the first of them could not be read together
ALONE = 64


class FileSequence:
    """The lines of `names`, in that order. `sizes` are bytes on the disk; `opened` opens a file at a byte. `form`, where all are files of
    the disk: they may be read without it."""

    def __init__(
        self,
        names: Sequence[str],
        sizes: Mapping[str, int],
        opened: Callable[[str, int], LineFile],
        form: LineFormat | None = None,
    ) -> None:
        self._names = names
        self._sizes = [sizes[name] for name in names]
        self._marks = fingerprints(names)
        self._opened = opened
        self._index = 0
        self._start = 0
        self._file: LineFile | None = None
        self._finished = False
        self._ended = False
        self._form = form if form is not None and fits(form) else None
        #: small files that are read together, and the first of them
        self._small: SmallFiles | None = None
        self._first = 0
        #: the first that may be read together with others again
        self._alone = 0
        #: lines of them that had been taken before the last read, and where that began
        self._before = 0, 0, 0

    def take_small(self, limit: int) -> tuple[list[str], list[str]] | None:
        """Names and lines, up to so many, of small files that are read together; None where `take` is to read the next ones."""
        if limit < 1:
            return None if self._ended or not self._names else ([], [])
        for _ in range(_GROUPS_PER_READ):  # of files that are all empty
            small = self._small
            if small is None or small.taken == len(small.lines):
                small = self._next_small()
                if small is None:
                    return None
            self._before = small.taken, self._index, self._start
            names, lines = small.take(limit)
            file, self._start = small.place
            self._index = self._first + file
            if lines:
                return names, lines
        return [], []

    def _next_small(self) -> SmallFiles | None:
        """Return the files behind those of which all lines have been taken, where they are to be read together."""
        file, before = self._file, self._small
        if self._form is None or self._ended or (file is not None and not (self._finished and file.drained)):
            return None
        begun = file is not None or before is not None
        first = self._index + begun
        if first < self._alone or (self._start and not begun):
            return None
        found = read_small(self._names, self._sizes, first, self._form)
        if found is not None:
            self.close()
            self._file, self._finished = None, False
            self._small, self._first = found, first
            return found
        self._alone = first + ALONE
        if before is not None:
            # The last of them is not opened again: it may be gone by now.
            self._small = None
            if first < len(self._names):
                self._index, self._start = first, 0
            else:
                self._ended = True
        return None

    def one_by_one(self) -> None:
        """The lines of the last `take_small` will come again, from `take`; files are read by themselves for a while."""
        small = self._small
        assert small is not None
        taken, self._index, self._start = self._before
        if taken == 0:
            self._index, self._start = self._first, 0
        elif self._start >= self._sizes[self._index]:  # it may be gone by now
            self._index, self._start = self._index + 1, 0
        self._alone = self._first + small.count + ALONE
        self._small, self._file, self._finished = None, None, False

    def take(self, limit: int) -> list[str]:
        """Up to `limit` lines, of one file and one chunk, which is `last`; raises EndOfStream behind the last file."""
        if self._ended or not self._names:
            raise EndOfStream
        file = self._file or self._open()
        for _ in range(_CHUNKS_PER_READ):
            lines = file.take(limit)
            if lines or limit < 1:
                return lines
            if not self._finished:
                # To ask a small file for more, to hear that there is none, takes as long as a third of its lines.
                if file.over(self._sizes[self._index]) or not file.fill():
                    file.finish()
                    self._finished = True
                elif file.waits:
                    break
            elif self._index + 1 < len(self._names):
                file.close()
                # Behind the file that is over also where the next one cannot be opened.
                self._file, self._index, self._start, self._finished = None, self._index + 1, 0, False
                file = self._open()
            else:
                file.close()
                self._ended = True
                raise EndOfStream
        return []

    @property
    def size(self) -> int:
        """Return the bytes of the file that the last rows are of, as it lies on the disk, or of those that were read together; 1 at least."""
        if self._small is not None:
            return max(1, self._small.size)
        return max(1, self._sizes[self._index]) if self._sizes else 1

    @property
    def last(self) -> LineFile:
        """The file that the last rows are of."""
        return self._file or self._open()

    def position(self) -> tuple[str, int, int] | None:
        """File, byte offset in its unpacked content, and a number that stands for the files read before."""
        if not self._names:
            return None
        offset = self._file.offset if self._file else self._start
        return self._names[self._index], offset, self._marks[self._index]

    def seek(self, position: Sequence[Any] | None) -> None:
        """Go on behind what was read when `position` was asked for."""
        if position is None:
            if self._names:
                raise SourceError(
                    f"{without_version(self._names[0])}: an earlier run had no file for this reader; the files or the number of readers "
                    "have changed; go back to what they were, or start anew (--restart)"
                )
            return
        name, offset, mark = position
        if name not in self._names:
            if is_url(name):
                raise SourceError(
                    f"{without_version(name)}: an earlier run stopped in this object, and it is gone or was replaced, or another reader would get "
                    "it; go back to what was there, or start anew (--restart)"
                )
            if not os.path.exists(name):
                raise SourceError(
                    f"{name}: an earlier run stopped in this file, and it is gone; put it back, or start anew "
                    "(--restart)"
                )
            raise SourceError(
                f"{name}: an earlier run stopped in this file, and now another reader would get it, or none: the files "
                "or the number of readers have changed; go back to what they were, or start anew (--restart)"
            )
        index = self._names.index(name)
        if self._marks[index] != mark:
            raise SourceError(
                f"{without_version(name)}: the files before this one are not those that an earlier run has read (one was added, taken "
                "away, replaced or renamed, or the number of readers has changed); go back to what they were, or start anew "
                "(--restart)"
            )
        self._index, self._start = index, offset

    def progress(self) -> tuple[float, float]:
        """Bytes read, bytes in all, as they lie on the disk."""
        done = sum(self._sizes if self._ended else self._sizes[: self._index])
        if self._file is not None and not self._ended:
            done += min(self._file.consumed, self._sizes[self._index])
        elif self._small is not None and not self._ended:
            done += self._start
        return float(done), float(sum(self._sizes))

    def close(self) -> None:
        """Close the file that is open."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> LineFile:
        self._file = self._opened(self._names[self._index], self._start)
        return self._file
