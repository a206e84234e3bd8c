"""Follows files that grow, like `tail -F`: new lines, new files, files that were cut short or replaced."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from esault.errors import SourceError
from esault.sources.line_file import LineFile
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally

__all__ = ["FileTail"]

#: seconds between two looks at files that had nothing new
_LOOK_EVERY = 0.1
#: seconds between two searches for new files
_SEARCH_EVERY = 1.0
#: chunks without a whole line that one read may work off: a line without end must not keep the data loop
_CHUNKS_PER_READ = 64


class FileTail:
    """All lines of the files that `find` names, and those added to them, for ever; one file after the other, in turn.

    Each file is kept open, so that what is written to it just before it is renamed or removed is still read.
    """

    def __init__(
        self, find: Callable[[], Iterable[str]], form: LineFormat, tally: LineTally, now: Callable[[], float]
    ) -> None:
        self._find = find
        self._form = form
        self._tally = tally
        self._now = now
        self._files: dict[str, LineFile] = {}
        #: those that may have more to read now
        self._busy: deque[LineFile] = deque()
        #: those of which nothing will follow: replaced or removed
        self._leaving: set[LineFile] = set()
        #: where an earlier run stopped, of files not looked for yet: name -> offset, inode
        self._sought: dict[str, tuple[int, int]] = {}
        self._last: LineFile | None = None
        self._looked: float | None = None
        self._searched: float | None = None

    def read(self, limit: int) -> list[tuple[str, str]]:
        """Up to `limit` rows, of one file and one chunk; only lines that a newline ends."""
        self._look()
        for _ in range(_CHUNKS_PER_READ):
            if not self._busy:
                break
            file = self._busy[0]
            rows = file.read(limit)
            if rows or limit < 1:
                self._last = file
                return rows
            if file.fill():
                # one chunk of each file in turn: a busy one must not keep the others waiting
                self._busy.rotate(-1)
            elif not ((file.zipped or file in self._leaving) and file.finish()):
                self._busy.popleft()
                self._drop(file)
        return []

    @property
    def last(self) -> LineFile:
        """The file that the last rows are of."""
        if self._last is None:
            raise SourceError("nothing has been read yet")
        return self._last

    def position(self) -> tuple[tuple[str, int, int], ...]:
        """For each file its name, the byte offset in its unpacked content, and its inode."""
        # What was sought stands until it was looked for: a checkpoint may be cut before the first read.
        sought = tuple((name, *place) for name, place in self._sought.items())
        return sought + tuple((file.name, file.offset, file.inode) for file in self._files.values())

    def seek(self, position: Iterable[Any]) -> None:
        """Go on behind what was read of each file when `position` was asked for."""
        self._sought = {name: (offset, inode) for name, offset, inode in position}

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._busy.clear()
        self._leaving.clear()

    def _look(self) -> None:
        now = self._now()
        # a clock that was set back must not make us wait for it
        if self._searched is None or not 0 <= now - self._searched < _SEARCH_EVERY:
            self._searched = now
            self._search()
        if self._looked is None or not 0 <= now - self._looked < _LOOK_EVERY:
            self._looked = now
            busy = set(self._busy)
            for file in list(self._files.values()):
                if file not in busy and file not in self._leaving:
                    self._look_at(file)

    def _search(self) -> None:
        for name in self._find():
            if name not in self._files:
                self._follow(name, *self._sought.pop(name, (0, None)))
        for name in self._sought:
            self._warn(name, "is gone since the last run; what was added to it meanwhile cannot be read")
        self._sought.clear()

    def _follow(self, name: str, offset: int, inode: int | None) -> None:
        try:
            status = os.stat(name)
            if inode is not None and inode != status.st_ino:
                self._warn(name, "was replaced since the last run; reading it from its start")
                offset = 0
            elif offset > status.st_size and not name.endswith(".gz"):
                self._warn(name, "was cut short since the last run; reading it from its start")
                offset = 0
            self._files[name] = LineFile(name, self._form, self._tally, offset)
        except (SourceError, FileNotFoundError):
            if os.path.exists(name):
                raise
            return  # it vanished between being found and being opened
        self._busy.append(self._files[name])

    def _look_at(self, file: LineFile) -> None:
        try:
            status: os.stat_result | None = os.stat(file.name)
        except FileNotFoundError:
            status = None
        if status is None or status.st_ino != file.inode:
            self._warn(file.name, "was removed" if status is None else "was replaced; going on with the new one")
            self._leaving.add(file)
            self._busy.append(file)
        elif status.st_size < file.raw_offset:
            self._warn(file.name, "was cut short; reading it from its start")
            file.close()
            self._files[file.name] = LineFile(file.name, self._form, self._tally)
            self._busy.append(self._files[file.name])
        elif status.st_size > file.raw_offset:
            self._busy.append(file)

    def _drop(self, file: LineFile) -> None:
        """It has nothing more for now; if it was leaving, it is gone for good."""
        if file in self._leaving:
            self._leaving.remove(file)
            file.close()
            del self._files[file.name]
            # its successor may be there already
            self._searched = None

    def _warn(self, name: str, what: str) -> None:
        self._tally.logger.warning("%s %s", name, what)
