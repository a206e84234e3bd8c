"""CSV as a sink: one file, or objects below a prefix."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from esault.errors import SinkError, TopologyError
from esault.sinks.json_row import encode_value
from esault.sinks.landing.values import short, spread_keys, unfold
from esault.sinks.row_sink import RowSink
from esault.topology.arguments import listed
from esault.topology.sink import Row

__all__ = ["CsvFile"]

#: types whose values csv writes as they are, None as nothing at all
_AS_THEY_ARE = frozenset({str, int, float, bool, type(None)})


class CsvFile(RowSink):
    """One line of CSV per row, in one file that any number of sub-units write. Its first line names the columns.

    `columns` are names: the first one has the key, the others have the value: a scalar, a tuple, or by name the fields of a dict or an
    object. A key that is a tuple fills as many columns as it has parts. Fields that are not there, and None, are empty. A datetime is
    ISO 8601, a list, a dict or an object within a field its JSON; other values are written as by `JsonLines`.

    `mode` is for a file that is there already: "error" refuses it, "append" adds to it where it has the same columns, "replace" begins
    anew. `header=False` leaves the line of names out. `delimiter` is one character, such as "\\t". Text that holds it, quotes or line
    breaks stands in quotes. Lines end with "\\n"; the encoding is UTF-8.

    Rows appear when they are committed, as with `JsonLines`; what is said there of crashes, of several hosts and of addresses such as
    "s3://bucket/rows" holds here. There each object begins with the line of names.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Iterable[str],
        mode: str = "error",
        *,
        header: bool = True,
        delimiter: str = ",",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        names = [] if isinstance(columns, (str, bytes)) else listed(columns)
        if not names or not all(isinstance(name, str) and name for name in names):
            raise TopologyError(
                f'CsvFile: columns={columns!r}: write the names of the columns, that of the key first, such as ("word", "total")'
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise TopologyError(f"CsvFile: two columns are named {twice[0]!r}; each needs a name of its own")
        if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"':
            raise TopologyError(f'CsvFile: delimiter={delimiter!r}: write one character, such as "," or "\\t"')
        if not isinstance(header, bool):
            raise TopologyError(
                f"CsvFile: header={header!r}: write True, for a first line with the names of the columns, or False"
            )
        self.columns, self.delimiter = tuple(names), delimiter
        super().__init__(path, mode, ".csv", storage_options, self._lines([names]) if header else b"")

    def write(self, rows: Sequence[Row]) -> Any:
        """Take rows; they are not durable yet."""
        return self._write_all([row.key for row in rows], [row.value for row in rows])

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Sequence[str] | None) -> Any:
        """Take rows as columns; see `write`."""
        return self._write_all(keys, values)

    def _write_all(self, keys: Sequence[Any], values: Sequence[Any]) -> Any:
        who = f"CsvFile {self.path}"
        first, values = spread_keys(who, self.columns, keys, values)
        others = unfold(who, self.columns[0], self.columns[1:], values, first)
        cells = list(map(self._cells, self.columns, (first, *others), (keys,) * len(self.columns)))
        try:
            return self._write(self._lines(zip(*cells)))
        except UnicodeEncodeError as error:
            raise SinkError(
                f"{who}: {short(error.object)} holds half a surrogate pair, which is no valid text"
            ) from None

    def _cells(self, name: str, values: Sequence[Any], keys: Sequence[Any]) -> Sequence[Any]:
        """Return what csv is to write of a column."""
        if _AS_THEY_ARE.issuperset(map(type, values)):
            return values
        return [
            value if type(value) in _AS_THEY_ARE else self._text_of(name, key, value)
            for key, value in zip(keys, values)
        ]

    def _text_of(self, name: str, key: Any, value: Any) -> str:
        try:
            text = encode_value(value).decode()
        except SinkError as error:
            raise SinkError(f"CsvFile {self.path}: column {name!r}, key {short(key)}: {error}") from None
        return str(json.loads(text)) if text[0] == '"' else text

    def _lines(self, rows: Iterable[Sequence[Any]]) -> bytes:
        rows = list(rows)
        text = self._text(rows, csv.QUOTE_MINIMAL)
        if "\r" in text:  # csv quotes what ends its own lines alone, and readers take it for the end of one
            text = self._text(rows, csv.QUOTE_ALL)
        return text.encode()

    def _text(self, rows: Sequence[Sequence[Any]], quoting: Any) -> str:
        out = io.StringIO()
        csv.writer(out, delimiter=self.delimiter, quoting=quoting, lineterminator="\n").writerows(rows)
        return out.getvalue()
