"""Rows on their way from the first version to its shadow, and rows of both for the comparison, in files."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from esault.errors import FrameError, PayloadError, SinkError, SourceError
from esault.payload.codec import Codec
from esault.payload.packed_rows import Rows
from esault.shadow.folder import ShadowFolder
from esault.sinks.committed_file import committed_length
from esault.sinks.json_lines import JsonLines
from esault.sinks.json_row import encode_row
from esault.topology.context import Context
from esault.topology.sink import RunInfo
from esault.topology.spout import EndOfStream, Spout

__all__ = ["ComparedRows", "ReadRows", "RowsForShadow"]

#: rows in one line of what was read
_TOGETHER = 1000


class _RowsBeside(JsonLines):
    """A file that begins empty with each run, also with one that goes on."""

    def begin(self, run: RunInfo) -> None:
        """Take the file for this run."""
        super().begin(replace(run, from_savepoint=run.resumed))


class ComparedRows(_RowsBeside):
    """Rows as JSON lines; what has no place in JSON is written as Python prints it, since nothing may fail for the comparison."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "replace")

    def _write_all(self, rows: list[dict[str, Any]]) -> Any:
        return self._write(b"".join(map(_encoded, rows)))


def _encoded(row: dict[str, Any]) -> bytes:
    try:
        return encode_row(row)
    except SinkError:
        return encode_row({name: repr(each) for name, each in row.items()})


class RowsForShadow(_RowsBeside):
    """Rows that a spout has read, for `ReadRows`: in each line some of them, exactly as they are."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "replace")
        self._codec = Codec()

    def _write_all(self, rows: list[dict[str, Any]]) -> Any:
        lines = []
        for start in range(0, len(rows), _TOGETHER):
            part = [(row["key"], row["value"]) for row in rows[start : start + _TOGETHER]]
            try:
                lines.append(base64.b64encode(self._codec.pack(Rows(part))) + b"\n")
            except PayloadError as error:
                raise SinkError(f"rows cannot be given to the shadow: {error}; run without --shadow") from error
        return self._write(b"".join(lines))

    def write(self, rows: Sequence[Any]) -> Any:
        """Take rows; they are not durable yet."""
        return self._write_all([{"key": row.key, "value": row.value} for row in rows])

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Sequence[str] | None) -> Any:
        """Take rows as columns; see `write`."""
        return self._write_all([{"key": key, "value": value} for key, value in zip(keys, values)])


class ReadRows(Spout[Any, Any]):
    """A source of what the spout of the first version has read and committed; it ends where the first version does.

    Where that was paused, nothing has ended: the source says that all was read, and waits to be paused as well.
    """

    def __init__(self, folder: str, spout: str) -> None:
        self._folder = ShadowFolder(folder)
        self._path = self._folder.read_by(spout)
        self._open = self._folder.open_for(spout)
        self._codec = Codec()
        #: where the next line begins, and of the line before it: where that began, its rows, and how many of them were read
        self._next = 0
        self._at, self._rows, self._taken = 0, [], 0  # type: tuple[int, list[tuple[Any, Any]], int]

    def check(self) -> None:
        """Note, before the run begins, that there is something to read."""
        self._open.touch()

    def open(self, context: Context) -> None:
        """Open nothing: the file may not be there yet."""

    def position(self) -> tuple[int, int]:
        """Return where the line of the next row begins, and the number of the row in it."""
        return (self._next, 0) if self._taken == len(self._rows) else (self._at, self._taken)

    def seek(self, position: tuple[int, int]) -> None:
        """Go to a position."""
        self._next, self._rows, self._taken = position[0], [], 0
        if position[1]:
            self._read_line()
            self._taken = position[1]

    def read(self, limit: int) -> list[tuple[Any, Any]]:
        """Return rows of one line. Raises EndOfStream where all was read and the first version has ended."""
        if self._taken == len(self._rows):
            last = not self._folder.may_get_rows()  # asked first: what is committed until then counts
            if self._next >= self._committed():
                if last and not self._folder.paused.exists():
                    raise EndOfStream
                if last:
                    self._open.unlink(missing_ok=True)
                return []
            self._read_line()
        found = self._rows[self._taken : self._taken + limit]
        self._taken += len(found)
        return found

    def lag(self) -> int | None:
        """Return nothing: how many rows a line holds is not known before it is read."""
        return None

    def _committed(self) -> int:
        try:
            length = committed_length(self._path)
            return os.path.getsize(self._path) if length is None else length
        except FileNotFoundError:
            return 0

    def _read_line(self) -> None:
        with open(self._path, "rb") as file:
            file.seek(self._next)
            line = file.readline()
        try:
            rows = self._codec.unpack(base64.b64decode(line))
        except (FrameError, binascii.Error) as error:
            raise SourceError(
                f"what the first version has read cannot be read by the shadow: {error}; the classes of its values must be importable there"
            ) from error
        self._at, self._rows, self._taken = self._next, [(key, value) for key, value in rows], 0
        self._next += len(line)
