"""Rows of a column as bytes: the keys or values of many tuples, each read as it was written, and sharing nothing with its neighbours.

A column is written in the first of these forms that can say it exactly. The first byte tells which:

    P   Python's own containers and scalars      one pickle of all, in which nothing is remembered
    D   other dicts with the same lasting keys   the keys, and a column for each
    C   objects of one plain class of the user's the class, the names of attributes, and a column for each
    N   named tuples of one class                the class, and a column for each field
    M   scalars that are objects, such as dates  one pickle of all; what stands in it twice cannot be told from two
    E   anything else                            one pickle behind the other

So rows of records go as columns, which takes half the bytes and less time than row by row.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import struct
from collections.abc import Sequence
from typing import Any

from esault.errors import FrameError
from esault.payload.attributes import get_attributes
from esault.payload.class_names import check, is_own
from esault.payload.loaded import loaded
from esault.payload.pickles import NotPlain, PlainWriter, Writer, attributes_only, may_set, read, read_each

__all__ = ["RowPacker", "Rows", "read_rows"]

_COUNT = struct.Struct(">I")
_PLAIN = frozenset((str, int, float, bool, bytes, type(None), tuple, list, dict, set, frozenset, bytearray))
#: they cannot be changed, or told from others that are equal
_LASTING = {
    *(str, int, float, bool, bytes, type(None), complex),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
    *(decimal.Decimal, range),
}
_LASTING_BASES = (enum.Enum, pathlib.PurePath)
#: modules with such classes that few programs load: what is not loaded has no objects
_LASTING_ELSEWHERE = (("uuid", "UUID"), ("fractions", "Fraction"), ("numpy", "generic"))
#: with fewer rows a form of its own costs more than it spares
_FEW = 3
_ONE_PICKLE = (ord("P"), ord("M"))
#: columns in columns
_DEEP = 8


class Rows:
    """A column of rows on its way into a frame: the codec writes it so that each row keeps its type and value."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)


class RowPacker:
    """Writes columns. Keeps buffers between calls: one for each thread."""

    def __init__(self, writer: Writer, plain: PlainWriter) -> None:
        self._writer = writer
        self._plain = plain

    def _pack_plain(self, rows: Sequence[Any]) -> bytes | None:
        """As bytes in the form P; None where that cannot say it."""
        try:
            return self._plain.write(tuple(rows), b"P")
        except (NotPlain, ValueError, RecursionError):
            return None  # it holds objects, or itself

    def pack(self, rows: Sequence[Any], depth: int = 0) -> bytes:
        """As bytes. Raises what `Writer.write` raises."""
        kind: type = type(rows[0]) if rows else tuple
        if kind in _PLAIN:
            plain = self._pack_plain(rows)
            if plain is not None:
                return plain
        if kind is dict and len(rows) > _FEW:
            names = tuple(rows[0])
            # All rows that are read share the keys.
            if (
                names
                and depth < _DEEP
                and all(_lasts(type(name)) for name in names)
                and set(map(type, rows)) == {dict}
                and set(map(tuple, rows)) == {names}
            ):
                return self._columns(b"D", names, zip(*map(dict.values, rows)), depth)
        kinds = set(map(type, rows))
        if all(map(_lasts, kinds)):
            return b"M" + self._writer.write(tuple(rows))
        if len(kinds) == 1 and len(rows) > _FEW and depth < _DEEP:
            if is_named_tuple(kind):
                check(kind)
                return self._columns(b"N", kind, zip(*rows), depth)
            if attributes_only(kind):
                check(kind)
                states = list(map(get_attributes, rows))
                names = tuple(states[0])
                if names and set(map(tuple, states)) == {names}:
                    return self._columns(b"C", (kind, names), zip(*map(dict.values, states)), depth)
        return b"E" + _COUNT.pack(len(rows)) + self._writer.write_each(rows)

    def _columns(self, form: bytes, what: Any, columns: Any, depth: int) -> bytes:
        packed = [self.pack(column, depth + 1) for column in columns]
        return form + self._writer.write((what, packed))


def is_named_tuple(kind: type) -> bool:
    """Return whether a class is a named tuple of the user's, and nothing has been said of how it is kept."""
    return (
        issubclass(kind, tuple)
        and kind.__bases__[:1] == (tuple,)
        and type(getattr(kind, "_fields", None)) is tuple
        and bool(kind._fields)  # type: ignore[attr-defined]
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and "__dict__" not in vars(kind)
        and is_own(kind.__module__)
    )


def _lasts(kind: type) -> bool:
    if kind in _LASTING or issubclass(kind, _LASTING_BASES):
        return True
    for module, name in _LASTING_ELSEWHERE:
        library = loaded(module)
        if library is not None and issubclass(kind, getattr(library, name)):
            return True
    return False


def read_rows(data: bytes, depth: int = 0) -> tuple[Any, ...]:
    """The rows that `RowPacker.pack` wrote. Raises FrameError, or what the user's own classes raise."""
    form = data[0]
    if form in _ONE_PICKLE:
        rows = read(data, 1)
    elif form == ord("E"):
        (count,) = _COUNT.unpack_from(data, 1)
        rows = tuple(read_each(data, 1 + _COUNT.size, count))
    elif form in b"DCN":
        if depth == _DEEP:
            raise FrameError("columns in columns, too deep")
        what, packed = read(data, 1)
        columns = [read_rows(column, depth + 1) for column in packed]
        if len(set(map(len, columns))) != 1:
            raise FrameError("columns of one length make rows")
        rows = tuple(_rows(form, what, columns))
    else:
        raise FrameError(f"{form} is no form of a column")
    if type(rows) is not tuple:
        raise FrameError("a column is a sequence")
    return rows


def _rows(form: int, what: Any, columns: list[tuple[Any, ...]]) -> list[Any]:
    if form == ord("D"):
        return [dict(zip(what, row)) for row in zip(*columns)]
    if form == ord("N"):
        if not (isinstance(what, type) and is_named_tuple(what) and len(what._fields) == len(columns)):  # type: ignore[attr-defined]
            raise FrameError("named tuples have a class, and a column for each field")
        return list(map(what._make, zip(*columns)))  # type: ignore[attr-defined]
    kind, names = what
    if not (isinstance(kind, type) and attributes_only(kind)):
        raise FrameError("objects in columns have a plain class")
    make: Any = object.__new__
    things = []
    if may_set(kind):
        put = object.__setattr__
        for row in zip(*columns):
            thing = make(kind)
            for name, value in zip(names, row):
                put(thing, name, value)
            things.append(thing)
    else:
        for row in zip(*columns):
            thing = make(kind)
            vars(thing).update(zip(names, row))
            things.append(thing)
    return things
