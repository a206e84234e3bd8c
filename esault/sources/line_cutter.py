"""Cuts a stream of bytes into lines of text; knows the byte offset of each; does no I/O."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally

__all__ = ["BadLine", "Block", "LineCutter", "split_lines"]

#: bytes of a line, on the average of a piece, from which each is decoded by itself: to decode all at once copies each twice more
LONG = 1024


@dataclass(frozen=True)
class BadLine:
    """A line that the format does not allow, and at which reading stops."""

    #: offset of its first byte
    start: int
    #: offset behind its last byte, newline included
    end: int
    #: what is wrong, and the remedy
    reason: str


class Block:
    """Lines that were cut together, the first of which starts at byte `start` of the stream."""

    __slots__ = ("_count", "_end", "_newline", "_raws", "bad", "lines")

    def __init__(
        self, lines: list[str], start: int, raws: Sequence[Sequence[object]] | None = None, newline: int = 1
    ) -> None:
        """`raws` are as long as the lines in bytes, without the newline of so many bytes behind each; None: the lines themselves are."""
        self.lines = lines
        self._newline = newline
        self._raws = lines if raws is None else raws
        #: how many lines end before the offset that was asked for last, and that offset
        self._count, self._end = 0, start
        #: stands behind the last of `lines`
        self.bad: BadLine | None = None

    def end(self, count: int) -> int:
        """Offset behind the first `count` lines; with 0, where the block starts."""
        # From the one asked for last: it is asked for once a batch, and bytes are summed up in C.
        before = self._count
        if count >= before:
            self._end += sum(map(len, self._raws[before:count])) + self._newline * (count - before)
        else:
            self._end -= sum(map(len, self._raws[count:before])) + self._newline * (before - count)
        self._count = count
        return self._end


class _UnevenBlock(Block):
    """Lines that may have others between them, which were left out."""

    __slots__ = ("_ends",)

    def __init__(self, lines: list[str], ends: list[int], bad: BadLine | None = None) -> None:
        """`ends`: where the block starts, then where each line ends."""
        super().__init__(lines, ends[0])
        self._ends = ends
        self.bad = bad

    def end(self, count: int) -> int:
        return self._ends[count]


class _RefusedError(Exception):  # never leaves this module
    """A line is not allowed; the text says why, and the remedy."""


def split_lines(text: str) -> list[str]:
    """Return the lines of a text whose last one ends, too, each without its newline, be it one of Unix or of Windows."""
    lines = _windows_lines(text) if "\r" in text else text.split("\n")
    if lines is None:
        lines = text.replace("\r\n", "\n").split("\n")
    lines.pop()
    return lines


def _windows_lines(text: str) -> list[str] | None:
    """Return what stands between the newlines, where all are of Windows; else None. To replace them would take twice as long."""
    lines = text.split("\r\n")
    return lines if len(lines) > text.count("\n") else None


class LineCutter:
    """Feed it bytes in pieces of any size: the same lines come out, with the same offsets.

    It holds one unfinished line at most, and no more than `max_line` bytes of it.
    """

    def __init__(self, form: LineFormat, tally: LineTally, name: str, offset: int = 0) -> None:
        """`name` is what the stream is called in the tally; `offset` is where in it the bytes to come start."""
        self.form = form
        self.tally = tally
        self.name = name
        self._start = offset
        self._held = bytearray()
        self._size = 0
        # properties of the format look codecs up: once here, not once per chunk
        self._codec = form.codec
        self._wholesale = form.wholesale
        self._marked = form.has_mark
        #: the lines of the last piece were long
        self.long = False

    @property
    def pending(self) -> int:
        """Return the number of bytes of an unfinished line that have come so far."""
        return self._size

    @property
    def fed(self) -> int:
        """Return the offset behind all that came."""
        return self._start + self._size

    @property
    def held(self) -> tuple[bytes, int]:
        """Bytes that are kept of an unfinished line, and how many bytes of it have come."""
        return bytes(self._held), self._size

    def begin_with(self, held: bytes, size: int) -> None:
        """Go on in the middle of a line, of which so much has come."""
        self._held[:], self._size = held, size

    def feed(self, data: bytes) -> Block:
        """The lines that `data` completes."""
        cut = data.rfind(b"\n") + 1
        if not cut:
            self._hold(data)
            if self._size > self.form.max_line and self.form.on_long_line == "fail":
                return self._one_by_one([bytes(self._held)], [self._size], self._start, finished=False)
            return Block([], self._start)
        start, held = self._start, self._size
        first = data.find(b"\n")
        if held + first > self.form.max_line:
            # the one line that may be longer than what was kept of it
            self._hold(data[:first])
            raws = [bytes(self._held), *data[first + 1 : cut].split(b"\n")[:-1]]
            block = self._one_by_one(raws, [self._size, *map(len, raws[1:])], start)
        else:
            found = self._cut_long(data, cut, start) if self.long or first >= LONG else None
            block = found or self._cut(bytes(self._held) + data[:cut] if held else data[:cut], start)
        self.long = held + cut >= LONG * len(block.lines)
        self._held.clear()
        self._size = 0
        self._start = start + held + cut
        if cut < len(data):
            self._hold(data[cut:])
        return block

    def finish(self) -> Block:
        """The last line, if bytes came after the last newline."""
        start, raw, size = self._start, bytes(self._held), self._size
        self._held.clear()
        self._size = 0
        self._start = start + size
        return self._one_by_one([raw], [size], start, finished=False) if size else Block([], start)

    def _hold(self, data: bytes) -> None:
        self._size += len(data)
        self._held += data[: max(0, self.form.max_line - len(self._held))]

    def _cut(self, body: bytes, start: int) -> Block:
        text = self._decoded(body)
        if text is not None and len(text) == len(body):
            # No character is of fewer bytes than one, so each is of one: lines have the lengths of their bytes.
            windows = "\r" in text
            lines = _windows_lines(text) if windows else text.split("\n")
            if lines is not None:
                lines.pop()
                return Block(lines, start, newline=2 if windows else 1)
        raws = body.split(b"\n")
        raws.pop()
        if text is None:
            return self._one_by_one(raws, [len(raw) for raw in raws], start)
        lines = split_lines(text)
        if self._marked and start == 0:
            lines[0] = lines[0].removeprefix("\ufeff")
        return Block(lines, start, raws)

    def _cut_long(self, data: bytes, cut: int, start: int) -> Block | None:
        """As `_cut`, with each line decoded from where it stands; None where there may be something odd in one."""
        size = self._size + cut
        if not self._wholesale or (self._marked and start == 0) or size > self.form.max_line:
            return None
        if any(odd in part for odd in (b"\0", b"\r") for part in (self._held, data)):
            return None
        view, at, raws = memoryview(data), 0, []
        while at < cut:
            end = data.index(b"\n", at)
            raws.append(view[at:end])
            at = end + 1
        if self._size:
            raws[0] = memoryview(bytes(self._held) + raws[0])
        codec, handler = self._codec, self.form.handler
        try:
            lines = [str(raw, codec, handler) for raw in raws]
        except UnicodeDecodeError:
            return None
        return Block(lines, start, None if sum(map(len, lines)) + len(lines) == size else raws)

    def _decoded(self, body: bytes) -> str | None:
        """The text of whole lines; None where there may be something odd in it, or in the length of a line."""
        limit = self.form.max_line
        if not self._wholesale or b"\0" in body or (len(body) > limit and max(map(len, body.split(b"\n"))) > limit):
            return None
        try:
            return body.decode(self._codec, self.form.handler)
        except UnicodeDecodeError:
            return None

    def _one_by_one(self, raws: list[bytes], sizes: list[int], start: int, finished: bool = True) -> Block:
        """The slow way, for blocks with something odd in them; `sizes` may exceed what was kept of a line."""
        lines: list[str] = []
        ends = [start]
        at = start
        for raw, size in zip(raws, sizes):
            end = at + size + finished
            try:
                text = self._line(raw, size, at, finished)
            except _RefusedError as refused:
                return _UnevenBlock(lines, ends, BadLine(at, end, str(refused)))
            if text is not None:
                lines.append(text)
                ends.append(end)
            at = end
        return _UnevenBlock(lines, ends)

    def _line(self, raw: bytes, size: int, at: int, finished: bool) -> str | None:
        form = self.form
        whole = size <= form.max_line
        if not whole:
            if form.on_long_line == "fail":
                raise _RefusedError(
                    f"a line of more than {form.max_line} bytes (max_line); if that is right, raise max_line, "
                    'else leave such lines out with on_long_line="skip" or shorten them with on_long_line="truncate"'
                )
            if form.on_long_line == "skip":
                self.tally.note("long_lines_skipped", self.name, at)
                return None
            raw = raw[: form.max_line]
        odd = self._oddity(raw, at, whole)
        if odd and form.errors == "strict":
            raise _RefusedError(odd)
        if odd and form.errors == "skip":
            self.tally.note("undecodable_lines_skipped", self.name, at)
            return None
        if not whole:
            self.tally.note("long_lines_truncated", self.name, at)
        # not final: of a line cut short, half a character at the end goes without a word
        text = codecs.getincrementaldecoder(self._codec)(form.handler).decode(raw, final=whole)
        if whole and finished:
            # Of the text, as where many lines are decoded at once: bytes behind it may be ignored.
            text = text.removesuffix("\r")
        if "\0" in text:
            text = text.replace("\0", "\ufffd" if form.errors == "replace" else "")
        return text.removeprefix("\ufeff") if self._marked and at == 0 else text

    def _oddity(self, raw: bytes, at: int, whole: bool) -> str | None:
        """Return why `raw` is no text; None if it is."""
        remedy = 'if it is text, name its encoding=, or read it with errors="replace" (or "skip")'
        if b"\0" in raw:
            return f"a NUL byte at byte {at + raw.index(0)}, which text does not hold: binary, or UTF-16? {remedy}"
        try:
            codecs.getincrementaldecoder(self._codec)("strict").decode(raw, final=whole)
        except UnicodeDecodeError as error:
            return f"byte {at + error.start} cannot be decoded as {self.form.encoding} ({error.reason}); {remedy}"
        return None
