"""JSON lines as a sink: one file, or objects below a prefix."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from esault.errors import SinkError, TopologyError
from esault.object_store.stored_object import is_url, local_path
from esault.sinks.json_row import encode_row, with_objects
from esault.sinks.row_file import RowFile
from esault.sinks.row_objects import RowObjects
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, Sink

__all__ = ["JsonLines"]


class JsonLines(Sink):
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

    delivery_guarantee: ClassVar[str] = "with checkpoints each row is there once"
    owns_path: ClassVar[bool] = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: str = "error",
        *,
        with_time: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
            raise TopologyError(f'JsonLines: path={path!r}: write the name of a file, such as "out/rows.jsonl"')
        if mode not in ("error", "append", "replace"):
            raise TopologyError(f'JsonLines: mode={mode!r}: write "error", "append" or "replace"')
        self.path = os.path.expanduser(local_path(os.fspath(path)))
        self.mode = mode
        self.with_time = with_time
        self._place: RowFile | RowObjects
        if is_url(self.path):
            self._place = RowObjects(self.path, ".jsonl", storage_options)
        else:
            self._place = RowFile(self.path)

    def written_paths(self) -> Sequence[str]:
        """Return the file; none where all hosts reach an object store."""
        return () if isinstance(self._place, RowObjects) else (self.path,)

    def check(self) -> None:
        """Raises SinkError where the file may not be written, and where it exists and `mode` is "error"."""
        self._place.check(self.mode)

    def begin(self, run: RunInfo) -> None:
        """Take the file for this run; SinkError where another run has it, or it exists and `mode` is "error"."""
        self._place.begin(run, self.mode)

    def end(self, ok: bool) -> None:
        """Give the file back, with whole rows only."""
        self._place.end(ok)

    def open(self, context: Context) -> None:
        """Make ready to write as this sub-unit; forgets what an earlier `open` left uncommitted."""
        self.context = context
        self._place.open(context)

    def write(self, rows: Sequence[Row]) -> Any:
        """Take rows; they are not durable yet."""
        values = with_objects([row.value for row in rows])
        if self.with_time:
            return self._write([{"key": row.key, "value": value, "time": row.time} for row, value in zip(rows, values)])
        return self._write([{"key": row.key, "value": value} for row, value in zip(rows, values)])

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Sequence[str] | None) -> Any:
        """Take rows as columns; see `write`."""
        values = with_objects(values)
        if self.with_time:
            return self._write([{"key": key, "value": value, "time": time} for key, value in zip(keys, values)])
        return self._write([{"key": key, "value": value} for key, value in zip(keys, values)])

    def prepare(self, epoch: int) -> Any:
        """All rows so far are durable; the handle names where they wait.

        It covers what was prepared before and never committed, too: an epoch may be given up.
        """
        return self._place.prepare()

    def commit(self, epoch: int, handle: Any) -> Any:
        """Show what the handle names, unless that has been done."""
        return self._place.commit(epoch, handle)

    def forget_staged(self, kept: Sequence[Any] = ()) -> None:
        """Remove what processes that are gone have left; all that was to be shown of it has been."""
        self._place.forget(kept)

    def close(self) -> None:
        """Close what is open; what is prepared can still be committed."""
        if isinstance(self._place, RowFile):
            self._place.close()

    def _write(self, rows: list[dict[str, Any]]) -> Any:
        try:
            data = b"".join(map(encode_row, rows))
        except SinkError as error:
            raise SinkError(f"{self.path}: {error}") from None
        return self._place.write(data)
