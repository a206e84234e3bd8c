"""Output of user code, from its process to the user's terminal, marked with the unit.

Every process of a run inherits the writing end of one pipe. A line goes into it whole, up to what a pipe takes at
once; the command reads the other end and prints above its live view. A full pipe makes the printing process wait, as a
slow terminal would: nothing is lost and nothing piles up.
"""

from __future__ import annotations

import codecs
import io
import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["ConsoleReader", "MarkedStream"]

#: what a pipe takes in one piece (POSIX promises 512, Linux 4096)
_PIECE = 4096
_MARK = "\x1f"


class MarkedStream(io.TextIOBase):
    """In place of `sys.stdout` or `sys.stderr` in a process of the run."""

    mode = "w"
    line_buffering = True
    write_through = False

    def __init__(self, fd: int, mark: str, number: int | None = None) -> None:
        """`number`: the descriptor of the stream that this one stands for, which a subprocess may be given; it marks no lines."""
        super().__init__()
        self._fd = fd
        self._mark = mark.encode() + _MARK.encode()
        self._number = number
        self._rest = ""
        self._lock = threading.Lock()
        #: takes bytes
        self.buffer = _Bytes(self)

    def rename(self, mark: str) -> None:
        """Mark lines so from now on."""
        with self._lock:
            self._mark = mark.encode() + _MARK.encode()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return super().fileno() if self._number is None else self._number

    def reconfigure(self, **options: Any) -> None:
        """Change nothing: lines go out whole, in UTF-8."""

    def write(self, text: str) -> int:
        with self._lock:
            lines = (self._rest + text).split("\n")
            self._rest = lines.pop()
            for line in lines:
                self._put(line)
            if len(self._rest) >= _PIECE:  # one that does not end is no reason to keep all of it
                self._put(self._rest)
                self._rest = ""
        return len(text)

    def flush(self) -> None:
        """Unfinished lines wait for their end: they would be torn apart by other processes' lines."""

    def finish(self) -> None:
        """Send an unfinished last line."""
        with self._lock:
            if self._rest:
                self._put(self._rest)
                self._rest = ""

    def _put(self, line: str) -> None:
        data = line.encode("utf-8", "replace")
        room = _PIECE - len(self._mark) - 1
        for part in _parts(data, room):
            piece = self._mark + part + b"\n"
            try:
                while piece:
                    piece = piece[os.write(self._fd, piece) :]
            except OSError:
                return  # the command is gone, and no process reads any more


class _Bytes(io.BufferedIOBase):
    """The `buffer` of a stream: takes text as UTF-8."""

    def __init__(self, stream: MarkedStream) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        view = memoryview(data)
        self._stream.write(self._decoder.decode(view.tobytes()))
        return view.nbytes


def _parts(data: bytes, room: int) -> Iterator[bytes]:
    """Yield UTF-8 in parts of at most `room` bytes, each of whole characters; one at least."""
    start = 0
    while len(data) - start > room:
        end = start + room
        while data[end] & 0xC0 == 0x80:  # within a character
            end -= 1
        yield data[start:end]
        start = end
    yield data[start:]


class ConsoleReader:
    """The command's end: calls `show(mark, line)` for each line, in a thread."""

    def __init__(self, show: Callable[[str, str], None], read_fd: int | None = None) -> None:
        """`read_fd`: of a pipe that was made elsewhere; None: a new one, whose writing end is `write_fd`."""
        self._show = show
        self.write_fd = -1
        if read_fd is None:
            read_fd, self.write_fd = os.pipe()
            os.set_inheritable(self.write_fd, True)
        self.read_fd = read_fd
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to read; after all forks of this process."""
        self._thread = threading.Thread(target=self._run, name="esault-console", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        rest = b""
        while True:
            try:
                data = os.read(self.read_fd, 65536)
            except OSError:
                return
            if not data:
                return
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            for line in lines:
                mark, _, text = line.decode("utf-8", "replace").partition(_MARK)
                self._show(mark, text)

    def close(self) -> None:
        """Show what is left and end; the processes of the run are gone by now."""
        os.close(self.write_fd)
        if self._thread is not None:
            self._thread.join(timeout=2.0)
        os.close(self.read_fd)
