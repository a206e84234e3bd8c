"""Rows kept for the caller."""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from esault.errors import PayloadError, SinkError
from esault.payload.codec import Codec
from esault.payload.packed_rows import Rows
from esault.sinks.durable import unwritable
from esault.topology.context import Context
from esault.topology.sink import Row, Sink

__all__ = ["Collect", "read_collected"]

#: rows packed together
_CHUNK = 10_000
_LENGTH = struct.Struct(">Q")
_PART, _DRAFT = ".part", ".draft"


class Collect(Sink):
    """Keeps all rows as (key, value) pairs; for small results, tests and notebooks.

    In one process (`LocalRuntime`) committed rows are in `rows`. On several, each commit leaves a file in the run's
    folder, and `read_collected` puts them together; the run's report holds them by the sink's name. A run that goes on from a
    checkpoint has those of its own life.
    """

    delivery_guarantee: ClassVar[str] = "with checkpoints each row is there once"

    collects = True

    def __init__(self) -> None:
        #: committed rows, where there is no run folder
        self.rows: list[tuple[Any, Any]] = []
        self._written: list[tuple[Any, Any]] = []
        #: rows that were prepared and not committed yet, in memory; their names, in order
        self._prepared: dict[str, list[tuple[Any, Any]]] = {}
        self._folder: str | None = None
        self._token = ""
        self._count = 0

    def open(self, context: Context) -> None:
        """Rows go to the run's folder, if there is one; forgets what an earlier `open` left uncommitted."""
        self.context = context
        self._written, self._prepared = [], {}
        self._folder = None if context.run_dir is None else _folder(context.run_dir, context.unit)
        # never used twice, whatever the engine numbers twice
        self._token = f"{context.sub_unit}-{secrets.token_hex(4)}"

    def write(self, rows: Sequence[Row]) -> None:
        """Keep the rows until the next commit."""
        self._written.extend((row.key, row.value) for row in rows)

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Sequence[str] | None) -> None:
        """Keep the rows until the next commit."""
        self._written.extend(zip(keys, values))

    def prepare(self, epoch: int) -> Any:
        """The rows outlive this process; the handle names all that were not committed yet, also of epochs given up."""
        if self._written:
            self._count += 1
            name = f"{epoch}-{self._token}-{self._count}"
            if self._folder is not None:
                _write(self._folder, name, self._written)
            self._prepared[name] = self._written if self._folder is None else []
            self._written = []
        return (self._folder, tuple(self._prepared)) if self._prepared else None

    def commit(self, epoch: int, handle: Any) -> None:
        """The rows can be read."""
        if handle is None:
            return
        folder, names = handle
        for name in names:
            if folder is None:
                self.rows.extend(self._prepared.pop(name, []))
            elif os.path.isdir(folder):  # else those of an earlier life, whose rows were given to its caller
                _show(folder, name)
                self._prepared.pop(name, None)

    def collected_rows(self, run_dir: str, name: str) -> list[tuple[Any, Any]]:
        """Return what `read_collected` finds."""
        return read_collected(run_dir, name)


def read_collected(run_dir: str, unit: str) -> list[tuple[Any, Any]]:
    """All committed rows of the Collect sink `unit`: by epoch, then by sub-unit, in the order in which they came."""
    folder = _folder(run_dir, unit)
    if not os.path.isdir(folder):
        return []  # no sub-unit had a row for it
    parts = [name.removesuffix(_PART) for name in os.listdir(folder) if name.endswith(_PART)]
    parts.sort(key=_order)
    return [row for name in parts for row in _read(os.path.join(folder, name + _PART))]


def _folder(run_dir: str, unit: str) -> str:
    return os.path.join(run_dir, "collect", quote(unit, safe="").replace(".", "%2E"))


def _order(name: str) -> tuple[int, int, str, int]:
    epoch, sub_unit, token, count = name.split("-")
    return int(epoch), int(sub_unit), token, int(count)


def _write(folder: str, name: str, rows: list[tuple[Any, Any]]) -> None:
    path = os.path.join(folder, name + _DRAFT)
    codec = Codec()
    try:
        os.makedirs(folder, exist_ok=True)
        with open(path, "wb") as file:
            for start in range(0, len(rows), _CHUNK):
                for data in _pack(codec, rows[start : start + _CHUNK]):
                    file.write(_LENGTH.pack(len(data)) + data)
    except OSError as error:
        _remove(path)
        raise unwritable(path, error) from error
    except BaseException:
        _remove(path)
        raise


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _pack(codec: Codec, rows: list[tuple[Any, Any]]) -> Iterator[bytes]:
    try:
        yield codec.pack(Rows(rows))
    except PayloadError as error:
        if len(rows) == 1:
            raise SinkError(f"the value of key {rows[0][0]!r} cannot be collected: {error}") from error
        # together they may be too much for one piece
        middle = len(rows) // 2
        yield from _pack(codec, rows[:middle])
        yield from _pack(codec, rows[middle:])


def _show(folder: str, name: str) -> None:
    path = os.path.join(folder, name)
    try:
        os.replace(path + _DRAFT, path + _PART)
    except FileNotFoundError:
        if not os.path.exists(path + _PART):
            raise SinkError(
                f"{path}: the rows to commit are gone; leave the run's folder alone while it runs"
            ) from None
    except OSError as error:
        raise unwritable(path, error) from error


def _read(path: str) -> Iterator[tuple[Any, Any]]:
    codec = Codec()
    with open(path, "rb") as file:
        while head := file.read(_LENGTH.size):
            yield from codec.unpack(file.read(_LENGTH.unpack(head)[0]))
