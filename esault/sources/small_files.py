"""Small files that follow one another, read as one: opened, read and closed each, then decoded and cut into lines together.

What is odd in them (a file that changed, or cannot be opened; bytes that are no text) is left to who reads files one by one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from esault.sources.line_cutter import split_lines
from esault.sources.line_format import LineFormat

__all__ = ["SMALL", "SmallFiles", "fits", "read_small"]

#: bytes of a file from which it is read by itself, and of the files of one read, from which no other is begun
SMALL = 32_768
#: files that are read together at most: they may be empty
MOST = 256
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)


class SmallFiles:
    """The lines of `count` files, with the names of these beside them."""

    __slots__ = ("_contents", "_counts", "_file", "_first", "lines", "names", "size", "taken")

    def __init__(self, names: list[str], lines: list[str], contents: list[bytes], counts: list[int]) -> None:
        self.names = names
        self.lines = lines
        self._contents = contents
        #: bytes of all of them
        self.size = sum(map(len, contents))
        #: lines of each file
        self._counts = counts
        #: lines that have been taken
        self.taken = 0
        #: the file that the last of them is of, or the first one, and the lines before that file
        self._file = self._first = 0

    @property
    def count(self) -> int:
        """Return the number of files."""
        return len(self._counts)

    def take(self, limit: int) -> tuple[list[str], list[str]]:
        """Names and lines, up to so many; none: all have been taken."""
        rows = slice(self.taken, self.taken + limit)
        self.taken = min(self.taken + limit, len(self.lines))
        counts, last = self._counts, self.count - 1
        while self._file < last and self._first + counts[self._file] < self.taken:
            self._first += counts[self._file]
            self._file += 1
        if self.taken == len(self.lines):  # behind those that are empty, too
            self._first += sum(counts[self._file : last])
            self._file = last
        return self.names[rows], self.lines[rows]

    @property
    def place(self) -> tuple[int, int]:
        """Return which of the files the line is of that was taken last, and the byte behind it there."""
        content, lines = self._contents[self._file], self.taken - self._first
        if lines == self._counts[self._file]:
            return self._file, len(content)
        return self._file, sum(map(len, content.split(b"\n", lines)[:lines])) + lines


def fits(form: LineFormat) -> bool:
    """Return whether files of this format may be decoded together."""
    return form.wholesale and not form.has_mark and form.max_line >= SMALL


def read_small(names: Sequence[str], sizes: Sequence[int], start: int, form: LineFormat) -> SmallFiles | None:
    """Return the lines of files from the one at `start` on, which have so many bytes each; None where those are to be read one by one."""
    contents: list[bytes] = []
    total = 0
    for i in range(start, min(start + MOST, len(names))):
        size = sizes[i]
        if size >= SMALL or names[i].endswith(".gz"):
            break
        try:
            number = os.open(names[i], _FLAGS)
            try:
                content = os.read(number, size + 1)
            finally:
                os.close(number)
        except OSError:
            break
        # A line that no newline ends keeps what stands at its end, or behind which all is ignored.
        if len(content) != size or (not content.endswith(b"\n") and b"\r" in content[content.rfind(b"\n") + 1 :]):
            break
        contents.append(content)
        total += size
        if total >= SMALL:
            break
    return _cut(names, start, contents, form) if contents else None


def _cut(names: Sequence[str], start: int, contents: list[bytes], form: LineFormat) -> SmallFiles | None:
    body = b"".join([each if not each or each.endswith(b"\n") else each + b"\n" for each in contents])
    if b"\0" in body:
        return None
    try:
        text = body.decode(form.codec, form.handler)
    except UnicodeDecodeError:
        return None
    lines = split_lines(text)
    keys: list[str] = []
    counts: list[int] = []
    for i, content in enumerate(contents, start):
        count = content.count(b"\n") + (content != b"" and not content.endswith(b"\n"))
        counts.append(count)
        keys += [names[i]] * count
    return SmallFiles(keys, lines, contents, counts)
