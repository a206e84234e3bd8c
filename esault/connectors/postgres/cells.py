"""Cells of rows on their way into a table: in the form that their column asks for, and what is said of one that it refuses."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from typing import Any

from esault.errors import SinkError

__all__ = ["Cells", "Json"]

_TYPES = """
select a.attname, t.typcategory = 'A', t.oid = 'timestamp'::regtype from pg_attribute as a join pg_type as t on t.oid = a.atttypid
where a.attrelid = to_regclass(%s) and a.attname = any(%s) and not a.attisdropped
"""
#: where COPY stands when the server refuses a row; a text in JSON has lines of its own
_WHERE = re.compile(r"COPY .*, line (\d+)(?:, column ([^:]+))?")


class Json(str):
    """The text of a list or a dict in JSON, to be told from a text."""

    __slots__ = ()


class Cells:
    """Those of rows for a table, whose first column is the tuple's key. `name` is the table's for messages. Raises SinkError."""

    def __init__(self, cursor: Any, name: str, table: str, columns: Sequence[str]) -> None:
        self._who = f"PostgresSink({name!r})"
        cursor.execute(_TYPES, [table, list(columns)])
        found = cursor.fetchall()
        #: places in a row: behind its stamp and whether it removes its key
        self._arrays = [2 + columns.index(column) for column, is_array, _ in found if is_array]
        self._moments = [2 + columns.index(column) for column, _, is_moment in found if is_moment]
        #: whether `fit` changes any
        self.change = bool(self._arrays or self._moments)

    def fit(self, row: Sequence[Any]) -> Sequence[Any]:
        """Return a row with lists in place of JSON for columns of arrays, and moments in UTC for those without a time zone."""
        made = list(row)
        for place in self._arrays:
            if type(made[place]) is Json:
                made[place] = _array(json.loads(made[place]))
        for place in self._moments:
            at = made[place]
            if (
                isinstance(at, datetime.datetime) and at.tzinfo is not None
            ):  # the server would drop what stands behind it
                made[place] = at.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return made

    def unwritable(self, error: Exception, row: Sequence[Any]) -> SinkError:
        """Return the error for a row that the client refuses."""
        return SinkError(f"{self._who}: the row of key {row[2]!r} cannot be written: {error}; correct it")

    def refused(self, error: Any, rows: Sequence[Sequence[Any]]) -> SinkError:
        """Return the error for the one of these rows that the server refuses."""
        text = str(error).strip().partition("\n")[0]
        found = _WHERE.search(error.diag.context or "")
        if found is None:
            return SinkError(f"{self._who}: {text}")
        column = f"column {found[2]!r} of " if found[2] else ""
        key = rows[int(found[1]) - 1][2]
        return SinkError(
            f"{self._who}: {column}the row of key {key!r}: {text}; correct the row, or the type of the column"
        )


def _array(value: Any) -> Any:
    """Return a list as the client writes one of any type: of texts, and of lists where it has several dimensions."""
    if isinstance(value, list):
        return [_array(each) for each in value]
    return value if value is None or isinstance(value, str) else json.dumps(value)
