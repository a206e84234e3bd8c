"""Lines of standard input, or of any open file descriptor."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import struct
import termios
from collections.abc import Iterator
from typing import Any, ClassVar

from esault.errors import SourceError, TopologyError
from esault.sources.line_cutter import Block, LineCutter
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, Spout

__all__ = ["Lines"]

#: bytes read at once; a pipe holds 64 kB
_CHUNK = 64 * 1024


class Lines(Spout[None, str]):
    """The lines of standard input: a pipe, a redirected file or a terminal. Key: None; value: the line.

    It ends when the input does (at a terminal: Ctrl-D). What was read cannot be read again: there is no position,
    and one reader. An orderly stop takes what the pipe holds, and loses nothing of it. `fd` is another open descriptor to read instead. The other arguments are those of `TextFiles`.
    """

    delivery_guarantee: ClassVar[str] = "with checkpoints what was read is kept on disk; without, it is lost"

    reads_command = True
    takes_ahead = True

    def __init__(
        self,
        fd: int = 0,
        *,
        encoding: str = "utf-8",
        errors: str = "strict",
        max_line: int = 64 * 1024 * 1024,
        on_long_line: str = "fail",
    ) -> None:
        if not isinstance(fd, int) or isinstance(fd, bool) or fd < 0:
            raise TopologyError(f"Lines: fd={fd!r}: write the number of an open file descriptor; 0 is standard input")
        try:
            self._form = LineFormat(encoding, errors, max_line, on_long_line)
        except TopologyError as error:
            raise TopologyError(f"Lines: {error}") from None
        self._given = fd
        self._name = "standard input" if fd == 0 else f"file descriptor {fd}"
        self._tally = LineTally()
        self._fd = -1
        self._ended = False
        #: what a pipe held when the run was stopped, as far as it makes whole lines; None: it goes on
        self._left: bytes | None = None
        self._block = Block([], 0)
        self._taken = 0
        # for the number of a bad line: newlines and bytes before the last chunk, and the chunk
        self._lines_before = 0
        self._bytes_before = 0
        self._chunk = b""

    def check(self) -> None:
        """Raises SourceError when the descriptor is not open for reading."""
        try:
            mode = os.fstat(self._given).st_mode
        except OSError as error:
            raise SourceError(f"{self._name} is closed; start the command with an input: COMMAND < FILE") from error
        if stat.S_ISDIR(mode):
            raise SourceError(f"{self._name} is a folder; redirect a file, or read the folder with TextFiles(folder)")

    def open(self, context: Context) -> None:
        """Take a descriptor of our own, whatever becomes of the one that was given."""
        self.context = context
        self._tally.logger = context.logger
        self.check()
        self._fd = os.dup(self._given)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._cutter = LineCutter(self._form, self._tally, self._name)

    def read(self, limit: int) -> list[tuple[None, str]]:
        """Up to `limit` lines that have come; never waits for more."""
        return [(None, line) for line in self._take(limit)]

    def read_columns(self, limit: int) -> Columns:
        """Return what `read` does, for which no pairs are made."""
        return Columns(None, self._take(limit))

    def _take(self, limit: int) -> list[str]:
        if self._taken == len(self._block.lines):
            self._fill()
        lines = self._block.lines[self._taken : self._taken + limit]
        self._taken += len(lines)
        if not lines and self._block.bad:
            bad = self._block.bad
            within = self._chunk[: max(0, bad.start - self._bytes_before)].count(b"\n")
            raise SourceError(f"{self._name}, line {self._lines_before + within + 1}: {bad.reason}")
        if not lines and self._ended and limit > 0:
            raise EndOfStream
        return lines

    def halt(self) -> tuple[bytes, int] | None:
        """Take what a pipe holds, and no more; return the beginning of the line that is not complete, and its size in bytes."""
        if self._ended:
            return None
        left = b"".join(self._waiting())
        cut = left.rfind(b"\n") + 1
        held, size = (b"", 0) if cut else self._cutter.held
        self._left = left[:cut]
        rest = left[cut:] if cut else held + left
        return (rest, size + len(left) - cut) if rest else None

    def begin_with(self, rest: Any) -> None:
        """Go on in the middle of this line."""
        self._cutter.begin_with(*rest)

    def _waiting(self) -> Iterator[bytes]:
        """Yield what a pipe or a socket holds now; a file or a terminal keeps it."""
        mode = os.fstat(self._fd).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) or self._block.bad:
            return
        count = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, b"\0" * 4))[0]
        while count > 0 and self._poll.poll(0):  # another process may read it, too
            data = os.read(self._fd, min(count, _CHUNK))
            if not data:
                return
            count -= len(data)
            yield data

    def progress(self) -> tuple[float, float] | None:
        """Bytes read and bytes in all where a regular file was redirected, else None."""
        if self._fd < 0:
            return None
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            return None
        return float(min(os.lseek(self._fd, 0, os.SEEK_CUR), status.st_size)), float(status.st_size)

    def counters(self) -> dict[str, int]:
        """Return the number of lines left out or cut short so far, by reason."""
        return dict(self._tally.counts)

    def close(self) -> None:
        """Close our own descriptor."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _fill(self) -> None:
        if self._ended or self._block.bad:
            return
        if self._left is not None:
            data, self._left = self._left[:_CHUNK], self._left[_CHUNK:]
            if data:
                self._cut(data)
            else:
                self._ended, self._block, self._taken = True, Block([], 0), 0
            return
        if not self._poll.poll(0):
            return
        # non-blocking by asking first: O_NONBLOCK would change the terminal for the user's shell as well
        try:
            data = os.read(self._fd, _CHUNK)
        except OSError as error:
            raise SourceError(
                f"{self._name} cannot be read: {error.strerror}; a command in the background cannot read a terminal, "
                "redirect a file instead: COMMAND < FILE"
            ) from error
        self._taken = 0
        if not data:
            self._ended = True
            self._block = self._cutter.finish()
            return
        self._cut(data)

    def _cut(self, data: bytes) -> None:
        self._taken = 0
        self._bytes_before += len(self._chunk)
        self._lines_before += self._chunk.count(b"\n")
        self._chunk = data
        self._block = self._cutter.feed(data)
