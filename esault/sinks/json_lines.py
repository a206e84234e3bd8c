"""JSON lines as a sink: one file, or objects below a prefix."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from esault.errors import SinkError
from esault.sinks.json_row import encode_row, with_objects
from esault.sinks.row_sink import RowSink
from esault.topology.sink import Row

__all__ = ["JsonLines"]


class JsonLines(RowSink):
    """One JSON object per row, `{"key": ..., "value": ...}`, in one file that any number of sub-units write.

    `mode` is for a file that is there already: "error" refuses it, "append" adds to it, "replace" empties it when
    the run begins. `with_time=True` adds "time", when the tuple was due at its spout, in seconds since the epoch.
    How values are written that JSON has no word for is said in `esault.sinks.json_row`: dataclasses, NamedTuples and models
    as objects with their fields, datetimes in ISO 8601, tuples as lists, Decimals and bytes (base64) as text, sets as
    sorted lists.

    A row appears in the file when it is committed, whole, and once per commit however often the commit comes. After
    a crash a half line may stand at the end until the next commit or run, which removes it. One run at a time writes
    to a file; that is what the hidden folder beside it is for (`esault.sinks.committed_file`). On several hosts
    each writes the file of this name on its own disk, unless the folder is one that they share.

    `path` may also be a prefix in an object store, such as "s3://bucket/rows": each commit of a sub-unit is an object below it. See
    docs/how-to/object-stores.md; `storage_options` go to the store's client.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: str = "error",
        *,
        with_time: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(path, mode, ".jsonl", storage_options)
        self.with_time = with_time

    def write(self, rows: Sequence[Row]) -> Any:
        """Take rows; they are not durable yet."""
        values = with_objects([row.value for row in rows])
        if self.with_time:
            return self._write_all(
                [{"key": row.key, "value": value, "time": row.time} for row, value in zip(rows, values)]
            )
        return self._write_all([{"key": row.key, "value": value} for row, value in zip(rows, values)])

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Sequence[str] | None) -> Any:
        """Take rows as columns; see `write`."""
        values = with_objects(values)
        if self.with_time:
            return self._write_all([{"key": key, "value": value, "time": time} for key, value in zip(keys, values)])
        return self._write_all([{"key": key, "value": value} for key, value in zip(keys, values)])

    def _write_all(self, rows: list[dict[str, Any]]) -> Any:
        try:
            data = b"".join(map(encode_row, rows))
        except SinkError as error:
            raise SinkError(f"{self.path}: {error}") from None
        return self._write(data)
