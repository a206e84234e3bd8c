"""Messages of PostgreSQL's logical replication, decoded: the plugin pgoutput, version 1 of its protocol.

Source: PostgreSQL's documentation, "Logical Replication Message Formats". Plain bytes in, plain values out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["UNCHANGED", "Begin", "Change", "Commit", "Decoder", "Relation", "Truncate", "whole"]

#: stands for a value that the server did not send, since it had not changed and lies outside the row (TOAST)
UNCHANGED = object()
_SHORT, _INT, _LONG = struct.Struct(">H"), struct.Struct(">I"), struct.Struct(">Q")
#: microseconds from the Unix epoch to PostgreSQL's, the first of January 2000
_EPOCH = 946_684_800 * 10**6


class Begin(NamedTuple):
    """A transaction begins; its changes follow."""

    #: where its commit stands
    lsn: int
    #: seconds since the epoch at which it was committed
    time: float


class Commit(NamedTuple):
    """The transaction that began last is over."""

    #: behind it
    end_lsn: int


@dataclass(frozen=True)
class Relation:
    """A table as it is from here on."""

    id: int
    schema: str
    name: str
    #: "d": the key of old rows is sent, "f": all of them, "n": nothing
    identity: str
    columns: tuple[str, ...]
    #: whether each belongs to the replica identity
    keys: tuple[bool, ...]
    types: tuple[int, ...]


class Change(NamedTuple):
    """A row was inserted ("insert"), changed ("update") or removed ("delete")."""

    kind: str
    relation: Relation
    #: the old row, or its key with the other columns None; None where the server sent none
    old: tuple[Any, ...] | None
    new: tuple[Any, ...] | None


class Truncate(NamedTuple):
    """Tables were emptied."""

    relations: tuple[Relation, ...]


class Decoder:
    """Remembers tables, which the server describes once."""

    def __init__(self, load: Callable[[int, bytes], Any]) -> None:
        """`load(type, text)` makes a value of a column's text."""
        self._load = load
        self._relations: dict[int, Relation] = {}

    def decode(self, data: bytes) -> Begin | Commit | Change | Truncate | None:
        """Return what a message says; None where it says nothing about rows. Raises ValueError for one that is unknown."""
        kind = data[:1]
        if kind == b"B":
            return Begin(_LONG.unpack_from(data, 1)[0], (_LONG.unpack_from(data, 9)[0] + _EPOCH) / 1e6)
        if kind == b"C":
            return Commit(_LONG.unpack_from(data, 10)[0])
        if kind == b"R":
            relation = _relation(data)
            self._relations[relation.id] = relation
            return None
        if kind == b"I":
            relation = self._relations[_INT.unpack_from(data, 1)[0]]
            return Change("insert", relation, None, self._row(relation, data, 6)[0])
        if kind == b"U":
            relation = self._relations[_INT.unpack_from(data, 1)[0]]
            old, at = (self._row(relation, data, 6)) if data[5:6] in (b"K", b"O") else (None, 5)
            return Change("update", relation, old, self._row(relation, data, at + 1)[0])
        if kind == b"D":
            relation = self._relations[_INT.unpack_from(data, 1)[0]]
            return Change("delete", relation, self._row(relation, data, 6)[0], None)
        if kind == b"T":
            count = _INT.unpack_from(data, 1)[0]
            ids = struct.unpack_from(f">{count}I", data, 6)
            return Truncate(tuple(self._relations[each] for each in ids if each in self._relations))
        if kind in (b"O", b"Y", b"M"):  # origins, types and messages of users
            return None
        raise ValueError(f"a message of kind {kind!r}, which version 1 of pgoutput does not have")

    def _row(self, relation: Relation, data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        """Return the row that stands at `at`, and where it ends."""
        count = _SHORT.unpack_from(data, at)[0]
        at += 2
        cells: list[Any] = []
        for index in range(count):
            kind = data[at : at + 1]
            at += 1
            if kind == b"n":
                cells.append(None)
            elif kind == b"u":
                cells.append(UNCHANGED)
            else:
                length = _INT.unpack_from(data, at)[0]
                at += 4
                cells.append(self._load(relation.types[index], data[at : at + length]))
                at += length
        return tuple(cells), at


def _relation(data: bytes) -> Relation:
    id = _INT.unpack_from(data, 1)[0]
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    count = _SHORT.unpack_from(data, at + 1)[0]
    at += 3
    columns: list[str] = []
    keys: list[bool] = []
    types: list[int] = []
    for _ in range(count):
        keys.append(bool(data[at] & 1))
        column, at = _text(data, at + 1)
        columns.append(column)
        types.append(_INT.unpack_from(data, at)[0])
        at += 8
    return Relation(id, schema or "pg_catalog", name, identity, tuple(columns), tuple(keys), tuple(types))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def whole(change: Change) -> tuple[Any, ...] | None:
    """Return the new row of a change, with what did not change from the old one; UNCHANGED stays where that does not have it."""
    new, old = change.new, change.old
    if new is None or UNCHANGED not in new:
        return new
    known: Sequence[Any] = old if old is not None and change.relation.identity == "f" else ()
    return tuple(known[index] if cell is UNCHANGED and index < len(known) else cell for index, cell in enumerate(new))
