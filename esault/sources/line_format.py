"""The format of a line of text: its encoding, what to do with bytes that are no text, how long it may be."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from functools import cached_property

from esault.errors import TopologyError

__all__ = ["LineFormat"]

MEBI = 1024 * 1024

#: codecs that treat the bytes between two newlines alike wherever they stand: a whole chunk is decoded at once
_WHOLESALE = {"utf-8", "ascii", "iso8859-1", "iso8859-15", "cp1250", "cp1251", "cp1252"}


@dataclass(frozen=True)
class LineFormat:
    """The way from bytes to lines. A line ends with a line feed; a carriage return before it belongs to the end.

    `errors` is for bytes that cannot be decoded and for NUL bytes, which text does not hold: "strict" stops
    with an error, "replace" puts U+FFFD in their place, "ignore" leaves them out, "skip" leaves out the line.
    `max_line` is in bytes; `on_long_line` is "fail", "skip" or "truncate" (to `max_line` bytes).
    """

    encoding: str = "utf-8"
    errors: str = "strict"
    max_line: int = 64 * MEBI
    on_long_line: str = "fail"

    def __post_init__(self) -> None:
        if self.errors not in ("strict", "replace", "ignore", "skip"):
            raise TopologyError(f'errors={self.errors!r}: write "strict", "replace", "ignore" or "skip"')
        if self.on_long_line not in ("fail", "skip", "truncate"):
            raise TopologyError(f'on_long_line={self.on_long_line!r}: write "fail", "skip" or "truncate"')
        if not isinstance(self.max_line, int) or isinstance(self.max_line, bool) or self.max_line < 1:
            raise TopologyError(f"max_line={self.max_line!r}: write a number of bytes of at least 1")
        try:
            newline = "\n".encode(self.codec)
        except (LookupError, TypeError, ValueError):
            raise TopologyError(
                f'encoding={self.encoding!r} is no text encoding that Python knows; write for example "utf-8" or '
                '"latin-1"'
            ) from None
        if newline != b"\n":
            raise TopologyError(
                f"encoding={self.encoding!r}: a newline is not the byte 10 there, so lines cannot be told apart; "
                f"convert the text first, for example with: iconv -f {self.encoding} -t utf-8"
            )

    @cached_property
    def codec(self) -> str:
        """The codec's own name; a byte order mark is taken off apart from it, see `has_mark`."""
        name = codecs.lookup(self.encoding).name
        return "utf-8" if name == "utf-8-sig" else name

    @cached_property
    def has_mark(self) -> bool:
        """Return whether a byte order mark may stand before the first line and is no part of it."""
        return codecs.lookup(self.encoding).name == "utf-8-sig"

    @cached_property
    def wholesale(self) -> bool:
        """Return whether many lines may be decoded at once and come out as if each had been decoded alone."""
        return self.codec in _WHOLESALE

    @property
    def handler(self) -> str:
        """The name of Python's handler for `errors`."""
        return "strict" if self.errors == "skip" else self.errors
