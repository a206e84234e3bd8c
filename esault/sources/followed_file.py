"""One file that is followed: open, with what it is known by wherever it goes."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from esault.sources.line_file import LineFile
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally
from esault.sources.rotation import begins, begins_still, mark_of

__all__ = ["FollowedFile"]

#: bytes at the end of what may be a copy that are compared
_ENDING = 1024


class FollowedFile:
    """A file that had `name` and lies at `path`, which may be another by now; its rows have that name."""

    def __init__(
        self, name: str, path: str, form: LineFormat, tally: LineTally, offset: int = 0, generation: int = 0
    ) -> None:
        """Raises SourceError where it cannot be opened, or has fewer bytes than `offset`."""
        self.name = name
        self.lines = LineFile(name, form, tally, offset, path)
        self.mark = mark_of(self.lines.fileno())._replace(generation=generation)
        #: it does not lie under its name any more, or is a copy of what did: nothing will follow in it but for some seconds
        self.left = path != name
        #: those that had its name before are still read
        self.waits = False
        #: when something was added to it last, or it left, in the engine's seconds
        self.quiet_since = 0.0
        #: the file was cut short, perhaps to be written anew: what was read up to `cut_at` is all of the one before
        self.cut = False
        self.cut_at = offset
        #: made anew when it has changed: it is asked for with each read, of all files
        self._entry: tuple[str, int, Any] = (name, offset, tuple(self.mark))
        self._entry_of = self.mark

    @property
    def entry(self) -> tuple[str, int, Any]:
        """Its part of a position: name, offset in its unpacked content behind the last row taken, and what it is known by."""
        offset = self.lines.offset
        if offset != self._entry[1] or self._entry_of is not self.mark:
            self._entry, self._entry_of = (self.name, offset, tuple(self.mark)), self.mark
        return self._entry

    def row_ids(self, count: int) -> list[str]:
        """Return names of the last `count` rows: which file, and where in it they end."""
        # An inode is given away anew, and a file that was cut short has its own again: hence the generation.
        which = f"{self.mark.device:x}-{self.mark.inode:x}-{self.mark.generation}"
        return [f"{which}:{end}" for end in self.lines.ends(count)]

    def fill(self) -> bool:
        """Read one more chunk, which may complete no line; False at the end of what is there now, and where it was cut short."""
        before = self.lines.offset
        more = self.lines.fill()
        # Behind the read: what was cut short and has grown again would look like what follows.
        if not self.look():
            self.cut_at = before
        return more and not self.cut

    def look(self) -> bool:
        """See how it stands now; False where it was cut short."""
        if self.lines.zipped or self.cut:
            return not self.cut
        fd, mark = self.lines.fileno(), self.mark
        status = os.fstat(fd)
        # One that was empty may have held something since, and have been copied and cut short.
        filled = not mark.length and not self.left and status.st_mtime_ns != mark.mtime
        if status.st_size < self.lines.raw_offset or filled or not begins_still(fd, mark):
            self.cut, self.cut_at = True, self.lines.offset  # the mark stays that of the file before
        else:
            self.mark = mark_of(fd, mark)
        return not self.cut

    def is_copied_to(self, path: str, size: int) -> bool:
        """Return whether a file of so many bytes that has appeared is a copy of it, maybe not whole yet."""
        if self.lines.zipped or not self.mark.length or not begins(path, self.mark):
            return False
        fd, start = self.lines.fileno(), max(0, size - _ENDING)
        there = os.fstat(fd).st_size
        if there < self.mark.size:
            return True  # it was cut short just now
        if path.endswith(".gz") or size > there:
            return False
        with contextlib.suppress(OSError), open(path, "rb") as copy:
            return os.pread(copy.fileno(), size - start, start) == os.pread(fd, size - start, start)
        return False

    @property
    def grown(self) -> bool:
        """Return whether there is more to read, as far as it was looked at."""
        return not self.lines.zipped and self.mark.size > self.lines.raw_offset
