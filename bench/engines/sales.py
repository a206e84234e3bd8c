"""Sales of shops by the hour, from Parquet files: aggregates by name, which are computed without a row in Python.

No topology of `topologies/` has them alone; this one is here to be measured beside plain Spark SQL. Its source reads files one after the
other, in the order of time: on Spark `ParquetFiles` is refused where event time starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from esault import Columns, EndOfStream, Spout, Topology
from esault.aggregates import count, max, min, sum
from esault.sinks import SparkTable
from esault.windows import TumblingWindow

__all__ = ["HOUR", "Sales", "topology"]

#: seconds of a window
HOUR = 3600


class Sales(Spout[str, dict[str, Any]]):
    """The rows of Parquet files as columns; a position is a file, a row group in it, and a row in that. Key: the shop."""

    seekable = True

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._at = (0, 0, 0)
        self._files: list[Path] = []
        self._group: pa.RecordBatch | None = None
        #: of its file it is the last one
        self._last = False

    def open(self, context: Any) -> None:
        """See what files there are."""
        self._files = sorted(Path(self._folder).glob("*.parquet"))

    def read(self, limit: int) -> Sequence[Any] | Columns:
        """Return rows of one row group."""
        number, group, row = self._at
        if self._group is None:
            if number == len(self._files):
                raise EndOfStream
            with pq.ParquetFile(self._files[number]) as file:
                groups = file.num_row_groups
                self._group = file.read_row_group(group).combine_chunks().to_batches()[0]
            self._last = group + 1 == groups
        rows = self._group.slice(row, limit)
        self._at = (number, group, row + len(rows))
        if row + len(rows) == len(self._group):
            self._group, self._at = None, (number + 1, 0, 0) if self._last else (number, group + 1, 0)
        return Columns(rows.column("shop"), rows)

    def position(self) -> tuple[int, int, int]:
        """Return where the next row is."""
        return self._at

    def seek(self, position: Any) -> None:
        """Go on there."""
        self._at, self._group = tuple(position), None


def topology(folder: str, out: str) -> Topology:
    """`folder` holds Parquet files with the columns shop, at and cents."""
    t = Topology("sales")
    named = {"n": count(), "paid": sum("cents"), "least": min("cents"), "most": max("cents")}
    sales = t.spout("sales", Sales(folder))
    sold = sales.aggregate("sold", named, TumblingWindow(HOUR), time=itemgetter("at"), lateness=60)
    columns = {"shop": str, "start": float, "end": float, **dict.fromkeys(named, int)}
    sold.sink("sold", SparkTable(f"{out}/sold", columns, mode="replace"))
    return t
