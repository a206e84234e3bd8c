"""Follows files that grow, like `tail -F`: new lines, new files, files that were rotated, cut short or replaced.

It is one module of over 300 lines: what is read, what has been and where a run goes on are one account of files.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any

from esault.errors import SourceError
from esault.sources.followed_file import FollowedFile
from esault.sources.line_file import LineFile
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally
from esault.sources.rotation import Mark, is_whole, locate, mark_of, origins, same_as, successors

__all__ = ["FileTail"]

#: seconds between two looks at files that had nothing new
_LOOK_EVERY = 0.1
#: seconds between two searches for new files
_SEARCH_EVERY = 1.0
#: seconds for which a file that has left its name is still looked at: its writer learns of it later than others do
_LINGER = 5.0
#: chunks without a whole line that one read may work off: a line without end must not keep the data loop
_CHUNKS_PER_READ = 64
#: files of a name that were read to their end and are still known, so that they are not read again under another
_DONE = 2
#: names that no file has any more, and of which this is known
_GONE = 100


class FileTail:
    """All lines of the files that `find` names, and those added to them, for ever; one file after the other, in turn.

    The files that had a name are a chain, oldest first: those that were put away and are still read, and the one that has it. Each
    is kept open, so that what is written to it just before and after it is renamed or removed is still read.
    """

    def __init__(
        self, find: Callable[[], Iterable[str]], form: LineFormat, tally: LineTally, now: Callable[[], float]
    ) -> None:
        self._find = find
        self._form = form
        self._tally = tally
        self._now = now
        self._chains: dict[str, list[FollowedFile]] = {}
        #: those that may have more to read now
        self._busy: deque[FollowedFile] = deque()
        #: by name, the last ones that were read to their end and closed
        self._done: dict[str, deque[Mark]] = {}
        #: by name, the number of the next file that has it
        self._generations: dict[str, int] = {}
        #: the position where an earlier run stopped, until its files were looked for
        self._sought: tuple[Any, ...] | None = None
        self._last: FollowedFile | None = None
        self._looked: float | None = None
        self._searched: float | None = None
        #: all that was there has been read once
        self.caught_up = False
        #: nothing was read before the search that is on
        self._begins = True

    def take(self, limit: int) -> list[str]:
        """Up to `limit` lines, of one file and one chunk, which is `last`; only lines that a newline ends."""
        now = self._now()
        self._look(now)
        for _ in range(_CHUNKS_PER_READ):
            if not self._busy:
                break
            file = self._busy[0]
            lines = file.lines.take(limit)
            if lines or limit < 1:
                self._last = file
                return lines
            if file.fill():
                file.quiet_since = now
                # one chunk of each file in turn: a busy one must not keep the others waiting
                self._busy.rotate(-1)
            elif file.cut:
                self._busy.popleft()
                self._cut_short(file, now)
            elif not (self._over(file, now) and file.lines.finish()):
                self._busy.popleft()
                self._at_end(file, now)
        self.caught_up = self.caught_up or not self._busy
        return []

    @property
    def last(self) -> LineFile:
        """The file that the last rows are of."""
        if self._last is None:
            raise SourceError("nothing has been read yet")
        return self._last.lines

    def row_ids(self, count: int) -> list[str]:
        """Return names of the last `count` rows, which they have wherever files are read in another order."""
        return [] if self._last is None else self._last.row_ids(count)

    def position(self) -> tuple[Any, ...]:
        """For each file its name, the byte offset in its unpacked content, and what it is known by; -1: it was read to its end."""
        if self._sought is not None:
            return self._sought  # it stands until it was looked for: a checkpoint may be cut before the first read
        if self._searched is None:
            self._search(self._now())  # what is there now, from its start: it may be rotated before the first read
        done = [(name, -1, tuple(mark)) for name, marks in self._done.items() for mark in marks]
        return (*done, *[file.entry for chain in self._chains.values() for file in chain])

    def seek(self, position: Iterable[Any]) -> None:
        """Go on behind what was read of each file when `position` was asked for."""
        self._sought = tuple(position)

    def close(self) -> None:
        """Close all files."""
        for chain in self._chains.values():
            for file in chain:
                file.lines.close()
        self._chains.clear()
        self._busy.clear()

    # looking ---------------------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        # a clock that was set back must not make us wait for it
        if self._looked is None or not 0 <= now - self._looked < _LOOK_EVERY:
            self._looked = now
            for chain in list(self._chains.values()):
                self._look_at_name(chain[-1], now)
            busy = set(self._busy)
            for file in [each for chain in self._chains.values() for each in chain]:
                if file not in busy and not file.waits:
                    self._look_at(file, now)
        if self._searched is None or not 0 <= now - self._searched < _SEARCH_EVERY:
            self._search(now)

    def _look_at_name(self, file: FollowedFile, now: float) -> None:
        """See whether the last file of a chain still has its name."""
        if file.left:
            return
        try:
            status = os.stat(file.name)
        except FileNotFoundError:
            status = None
        if status is not None and (status.st_dev, status.st_ino) == file.mark[:2]:
            return
        self._warn(file.name, "was removed" if status is None else "was replaced; going on with the new one")
        file.left, file.quiet_since = True, now
        last = file.mark
        if not file.look():
            if file in self._busy:
                self._busy.remove(file)
            self._cut_short(file, now)
        elif file not in self._busy and not file.waits:
            self._busy.append(file)
        if status is not None:
            chain = self._chains[file.name]
            self._begin(file.name, chain[-1].mark if chain else last, list(self._find()), now)

    def _look_at(self, file: FollowedFile, now: float) -> None:
        if not file.look():
            self._cut_short(file, now)
        elif file.grown:
            file.quiet_since = now
            self._busy.append(file)
        elif file.left and self._over(file, now):
            self._busy.append(file)

    def _over(self, file: FollowedFile, now: float) -> bool:
        """Return whether nothing will follow behind what is in the file now."""
        return file.lines.zipped or (file.left and not 0 <= now - file.quiet_since < _LINGER)

    def _at_end(self, file: FollowedFile, now: float) -> None:
        """It has nothing more for now; where it has left its name and nothing will follow, it is gone for good."""
        if not file.left:
            return
        chain = self._chains[file.name]
        at = chain.index(file)
        if at + 1 < len(chain) and chain[at + 1].waits:
            chain[at + 1].waits = False
            self._busy.append(chain[at + 1])
        if self._over(file, now):
            chain.remove(file)
            self._put_away(file)
            if not chain:
                del self._chains[file.name]
                gone = [name for name in self._done if name not in self._chains]
                for name in gone[:-_GONE]:
                    del self._done[name]

    def _put_away(self, file: FollowedFile) -> None:
        file.lines.close()
        self._done.setdefault(file.name, deque(maxlen=_DONE)).append(file.mark)

    # finding ---------------------------------------------------------------------------------------

    def _search(self, now: float) -> None:
        self._begins = self._searched is None and self._sought is None
        self._searched = now
        names = list(self._find())
        if self._sought is not None:
            sought, self._sought = self._sought, None
            self._resume(sought, names, now)
        for name in names:
            chain = self._chains.get(name)
            if chain and not chain[-1].left:
                continue
            known = chain[-1].mark if chain else next(iter(reversed(self._done.get(name, ()))), None)
            if chain or not self._is_read_elsewhere(name):
                self._begin(name, known, names, now)

    def _is_read_elsewhere(self, name: str) -> bool:
        """Return whether a file that is new here is one that is read, or was, under the name that it had before."""
        try:
            status = os.stat(name)
        except FileNotFoundError:
            return True
        place = status.st_dev, status.st_ino
        for chain in self._chains.values():
            for file in chain:
                if place == file.mark[:2] and (file.left or not _has_name(file)):
                    return True
        # A file that was renamed keeps the time when it was written, and so does a copy that is compressed.
        written = [mark for marks in self._done.values() for mark in marks if mark.mtime == status.st_mtime_ns]
        if not _is_one_of(name, place, written):
            before = list(origins(name, self._chains, self._done))
            followed = [file for each in before for file in self._chains.get(each, ())]
            same = [file.mark for file in followed if file.mark.mtime == status.st_mtime_ns]
            if not _is_one_of(name, place, same):
                return bool(before) and self._is_copy(name, status.st_size, followed)
        if not any(place == mark[:2] for mark in self._done.get(name, ())):
            with open(name, "rb") as file_there:
                self._done.setdefault(name, deque(maxlen=_DONE)).append(mark_of(file_there.fileno()))
        return True

    def _is_copy(self, name: str, size: int, followed: Collection[FollowedFile]) -> bool:
        """Return whether one that has appeared is a copy of one of these, maybe not whole yet, or that compressed."""
        if name.endswith(".gz") and os.path.exists(name.removesuffix(".gz")):
            return True  # until it is whole
        if self._begins:
            return False
        return not size or any(file.is_copied_to(name, size) for file in followed)

    def _begin(self, name: str, last: Mark | None, names: Collection[str], now: float) -> None:
        """Follow the file that has the name now, from its start, behind those that had it since `last` and are put away."""
        chain = self._chains.get(name, [])
        if chain and _has_name(chain[-1]):
            chain[-1].left = False  # it was away for a moment
            return
        if last is not None:
            self._catch_up(name, last, (), names, now)
        self._append(name, name, 0, now)

    def _catch_up(
        self, name: str, last: Mark, later: Collection[FollowedFile], names: Collection[str], now: float
    ) -> None:
        """Read those that had the name since `last` and were put away before a look."""
        reading = [file.mark for file in (*self._chains.get(name, ()), *later)]
        done = [*self._done.get(name, ()), *reading]  # a copy of one that is read is none to read
        held = {mark[:2] for mark in reading}
        for path in successors(name, last, held, done, {each for each in names if each not in self._chains}):
            if not is_whole(path):
                self._warn(name, f"was put away before it was looked at; {path} is damaged, and what was in it is lost")
            elif self._append(name, path, 0, now) is not None:
                self._warn(name, f"was put away before it was looked at; it is read in {path}")

    def _append(
        self, name: str, path: str, offset: int, now: float, generation: int | None = None
    ) -> FollowedFile | None:
        """Read this file behind all that had the name before; None: it has vanished since it was found."""
        if generation is None:
            generation = self._generations.get(name, 0)
        file = self._opened(name, path, offset, now, generation)
        if file is not None:
            self._generations[name] = max(self._generations.get(name, 0), generation + 1)
            chain = self._chains.setdefault(name, [])
            file.waits = any(each.waits or each in self._busy for each in chain)
            chain.append(file)
            if not file.waits:
                self._busy.append(file)
        return file

    def _opened(self, name: str, path: str, offset: int, now: float, generation: int) -> FollowedFile | None:
        try:
            file = FollowedFile(name, path, self._form, self._tally, offset, generation)
        except SourceError:
            if os.path.exists(path):
                raise
            return None  # it vanished between being found and being opened
        file.quiet_since = now
        return file

    def _cut_short(self, file: FollowedFile, now: float) -> None:
        """Go on with what the file held, where a copy of it is, and then with the file from its start."""
        name, mark, chain = file.name, file.mark, self._chains[file.name]
        at = chain.index(file)
        later = chain[at + 1 :]
        del chain[at:]
        file.lines.close()
        copy = None
        if mark.length:  # else nothing had been seen of it
            path = locate(name, file.cut_at, mark)
            copy = None if path is None else self._append(name, path, file.cut_at, now)
            if copy is None:
                self._warn(name, f"was cut short; reading it from its start{_missing(file.cut_at, mark)}")
            else:
                self._warn(
                    name, f"was cut short; what it held is read in {copy.lines.path}, and then it from its start"
                )
        self._catch_up(name, mark if copy is None else copy.mark, later, list(self._find()), now)
        if not file.left:
            self._append(name, name, 0, now)
        if later and not any(each.waits or each in self._busy for each in chain):
            later[0].waits = False
            self._busy.append(later[0])
        chain += later

    def _resume(self, sought: tuple[Any, ...], names: Collection[str], now: float) -> None:
        """Go on where an earlier run stopped, wherever the files lie now."""
        entries: dict[str, list[tuple[int, Mark]]] = {}
        for name, offset, known in sought:
            mark = Mark(-1, known, 0, 0, -1, -1) if isinstance(known, int) else Mark(*known)
            entries.setdefault(name, []).append((offset, mark))
        for name, places in entries.items():
            if name not in names and os.path.exists(name):
                self._warn(name, "is none of the files to follow any more")
                continue
            last = places[-1][1]
            self._generations[name] = max(mark.generation for _, mark in places) + 1
            for offset, mark in places:
                if offset < 0:
                    self._done.setdefault(name, deque(maxlen=_DONE)).append(mark)
                elif mark.length or mark.mtime < 0:  # else it was empty: all that it has held since is new
                    path = locate(name, offset, mark)
                    file = None if path is None else self._append(name, path, offset, now, mark.generation)
                    if file is None:
                        self._say_lost(name, offset, mark)
                    elif file.left:
                        self._warn(
                            name, f"was put away since the last run; the rest of it is read in {file.lines.path}"
                        )
                        last = file.mark if mark is last else last
            chain = self._chains.get(name)
            if name in names and places[-1][0] >= 0 and (not chain or chain[-1].left):
                self._begin(name, last, names, now)

    def _say_lost(self, name: str, offset: int, mark: Mark) -> None:
        missing = _missing(offset, mark)
        try:
            same = os.stat(name).st_ino == mark.inode
        except FileNotFoundError:
            self._warn(name, f"is gone since the last run; what was added to it meanwhile cannot be read{missing}")
            return
        what = "cut short" if same else "replaced"
        self._warn(name, f"was {what} since the last run; reading it from its start{missing}")

    def _warn(self, name: str, what: str) -> None:
        self._tally.logger.warning("%s %s", name, what)


def _is_one_of(name: str, place: tuple[int, int], marks: Collection[Mark]) -> bool:
    """Return whether the file there is one of these, which were written when it was, or a whole copy of one."""
    return any(place == mark[:2] for mark in marks) or (bool(marks) and same_as(name, marks) is not None)


def _has_name(file: FollowedFile) -> bool:
    try:
        status = os.stat(file.name)
    except FileNotFoundError:
        return False
    return (status.st_dev, status.st_ino) == file.mark[:2]


def _missing(offset: int, mark: Mark) -> str:
    """Say how much of a file that cannot be found was seen and not read."""
    missing = mark.size - offset
    return f"; {missing:,} bytes that were seen in it behind byte {offset:,} are lost" if missing > 0 else ""
