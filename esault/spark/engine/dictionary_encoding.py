"""Dictionary encoding of columns on their way between tasks, as Arrow and Parquet know it: what few rows differ in is written once.

A column is written as rows, see `packed_rows`, or, of texts, whole numbers and the like alone, as

    {"rows": what differs, "at": bytes}       of each row where it stands among these: a byte, or two where they are more than 256
    {"rows": the only one, "times": rows}

It is one object where it is read. By what they say, and not by which object they are: a batch that is computed again is written in the
same bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import repeat
from operator import countOf
from typing import Any

from esault.payload.packed_rows import Rows

__all__ = ["decoded", "encoded"]

#: of these Python takes none for equal that can be told from another, where all are of one type -> how many may differ in the rows by which
#: it is told whether to look at all. Of more, to find them costs more than it spares; a number is written about as shortly as its place
_MOST = {str: 128, bytes: 128, int: 1, bool: 1, type(None): 1}
#: so many of these rows; with fewer there is nothing to gain
_LOOK, _FEW = 512, 32
#: what differs where a byte, and two bytes, say which
_BYTE, _TWO = 1 << 8, 1 << 16


def encoded(column: Any) -> Any:
    """Return a column of rows as the codec writes it; others as they are."""
    if type(column) is not list:
        return column
    count = len(column)
    if count < _FEW:
        return Rows(column)
    kind, some = type(column[0]), column[:_LOOK]
    most = min(_MOST.get(kind, 0), len(some) // 2)
    # Types first: what is no key of a dict must not be looked up.
    if not most or countOf(map(type, some), kind) < len(some) or len(set(some)) > most:
        return Rows(column)
    if countOf(map(type, column), kind) < count:
        return Rows(column)
    if column.count(column[0]) == count:
        return {"rows": Rows(column[:1]), "times": count}
    if most == 1:
        return Rows(column)
    rows = list(dict.fromkeys(column))
    differ = len(rows)
    if differ > _TWO or 2 * differ > count:
        return Rows(column)
    at = map(dict(zip(rows, range(differ))).__getitem__, column)
    return {"rows": Rows(rows), "at": bytes(at) if differ <= _BYTE else array("H", list(at)).tobytes()}


def decoded(column: Any) -> Any:
    """Return the rows of a column as the codec has read it."""
    if type(column) is not dict:
        return column
    rows: Sequence[Any] = column["rows"]
    if "times" in column:
        return tuple(repeat(rows[0], column["times"]))
    at = column["at"]
    return tuple(map(rows.__getitem__, at if len(rows) <= _BYTE else memoryview(at).cast("H")))
