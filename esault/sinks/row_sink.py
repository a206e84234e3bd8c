"""The common part of sinks of text: one file that any number of sub-units write, or objects below a prefix."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from esault.errors import TopologyError
from esault.object_store.stored_object import is_url, local_path
from esault.sinks.row_file import RowFile
from esault.sinks.row_objects import RowObjects
from esault.topology.context import Context
from esault.topology.sink import RunInfo, Sink

__all__ = ["RowSink"]


class RowSink(Sink):
    """Rows as bytes, in a file (`esault.sinks.committed_file`) or in objects; a subclass makes the bytes, and hands them to `_write`."""

    delivery_guarantee: ClassVar[str] = "with checkpoints each row is there once"
    owns_path: ClassVar[bool] = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: str,
        suffix: str,
        storage_options: Mapping[str, Any] | None,
        header: bytes = b"",
    ) -> None:
        """`suffix`: of the names of objects; `header`: what a file, and each object, begins with. Raises TopologyError."""
        who = type(self).__name__
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
            raise TopologyError(f'{who}: path={path!r}: write the name of a file, such as "out/rows{suffix}"')
        if mode not in ("error", "append", "replace"):
            raise TopologyError(f'{who}: mode={mode!r}: write "error", "append" or "replace"')
        self.path = os.path.expanduser(local_path(os.fspath(path)))
        self.mode = mode
        self._place: RowFile | RowObjects
        if is_url(self.path):
            self._place = RowObjects(self.path, suffix, storage_options, header)
        else:
            self._place = RowFile(self.path, header)

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

    def _write(self, data: bytes) -> Any:
        """Take rows; they are not durable yet."""
        return self._place.write(data)
