"""A split that is read in batches of Arrow: row groups of Parquet, record batches of a file of Arrow's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from typing import Any, Protocol

from esault.background import in_background
from esault.errors import SourceError
from esault.sources.arrow_columns import ArrowShape
from esault.topology.columns import Columns
from esault.topology.split_source import SplitReader
from esault.topology.spout import EndOfStream

__all__ = ["BatchFile", "BatchReader"]

#: seconds that a read waits for what is far, at most
_MOMENT = 0.005


class BatchFile(Protocol):
    """A file that has groups of rows, which can each be read from its start."""

    name: str
    shape: ArrowShape
    #: the first group that is to be read, and the one behind the last; None: not known before it is read
    first: int
    last: int | None

    def batches(self, group: int) -> Iterator[Any] | None:
        """Return record batches of one group; None: there is no such group. Raises SourceError."""

    def close(self) -> None:
        """Close the file."""


class BatchReader(SplitReader[Any, Any]):
    """Reads a file from (group, row in it) on, so that no group before it is read again. Raises SourceError.

    One that is `far`, in an object store, is opened and read in the background, a batch at a time: the data loop does not wait for it.
    """

    def __init__(self, opened: Callable[[], BatchFile], position: Any, far: bool = False) -> None:
        self._opened, self._far = opened, far
        self._file: BatchFile | None = None
        #: behind the rows that were given; group -1: where the file begins. Set at once: another thread may ask
        self._at = (int(position[0]), int(position[1])) if position is not None else (-1, 0)
        self._batches: Iterator[Any] | None = None
        #: rows that were read and not given yet
        self._left: Any = None
        #: rows of the group before those
        self._passed = 0
        self._step: Future[None] | None = None
        if not far:
            self._open()

    def read(self, limit: int) -> Columns | list[Any]:
        if limit < 1:
            return []
        while self._left is None:
            if not self._far:
                self._fill()
            elif not self._filled():
                return []
        rows = self._left.slice(0, limit)
        self._left = self._left.slice(limit) if limit < self._left.num_rows else None
        group, row = self._at
        self._at = group, row + rows.num_rows
        assert self._file is not None
        return self._file.shape.tuples(rows)

    def position(self) -> tuple[int, int]:
        return self._at

    def close(self) -> None:
        step, file = self._step, self._file
        if step is not None and not step.done():
            step.add_done_callback(lambda _: self._close())  # not under the hands of who reads
        elif file is not None:
            self._close()

    def _close(self) -> None:
        self._batches = self._left = None
        if self._file is not None:
            self._file.close()

    def _filled(self) -> bool:
        """Return whether a step in the background is done; what it raised is raised."""
        if self._step is None:
            self._step = in_background(self._fill)
        if not wait([self._step], _MOMENT).done:
            return False
        step, self._step = self._step, None
        step.result()
        return True

    def _open(self) -> BatchFile:
        if self._file is None:
            self._file = self._opened()
            if self._at[0] < 0:
                self._at = self._file.first, 0
        return self._file

    def _fill(self) -> None:
        """Have rows at hand, unless the next batch has none for us. Raises EndOfStream."""
        file = self._open()
        group, row = self._at
        if self._batches is None:
            if file.last is not None and group >= file.last:
                self._close()
                raise EndOfStream
            self._batches = file.batches(group)
            self._passed = 0
            if self._batches is None:
                if row:
                    raise self._changed()
                self._close()
                raise EndOfStream
        batch = next(self._batches, None)
        if batch is None:
            if self._passed < row:
                raise self._changed()
            self._batches, self._at = None, (group + 1, 0)
            return
        skipped = min(batch.num_rows, max(0, row - self._passed))
        self._passed += batch.num_rows
        if skipped < batch.num_rows:
            self._left = batch.slice(skipped)

    def _changed(self) -> SourceError:
        return SourceError(
            f"{self._open().name}: an earlier run has read {self._at[1]} rows of its group {self._at[0]}, and there are not so many: it is "
            "another file now; put the old one back, or start anew (--restart)"
        )
