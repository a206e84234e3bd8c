"""A table of pandas, Polars or Arrow as a source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from esault.errors import SourceError, TopologyError
from esault.sources.arrow_columns import ArrowColumns, arrow
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, Spout

__all__ = ["Table"]


class Table(Spout[Any, dict[str, Any]]):
    """The rows of a table in memory, each a dict by the names of the columns; needs `esault[parquet]`. `table` is a DataFrame of pandas or
    Polars, a Table or RecordBatch of pyarrow, or what else offers Arrow's stream (`__arrow_c_stream__`), such as a result of DuckDB.

    Key: the column named `key`, or what the function `key` makes of the row; without it None. `columns`: those that are in the values,
    all where it is None. The index of a pandas DataFrame is left out: `reset_index()` makes it a column. Rows travel as columns of
    Arrow, as those of `ParquetFiles` do. With `parallelism=n` each reader has a stretch of the rows.
    """

    parallel: ClassVar[bool] = True
    extra: ClassVar[str] = "parquet"
    delivery_guarantee: ClassVar[str] = "exactly once: the number of rows read is kept in checkpoints"

    def __init__(
        self,
        table: Any,
        key: str | Callable[[dict[str, Any]], Any] | None = None,
        *,
        columns: Sequence[str] | None = None,
    ) -> None:
        if not hasattr(table, "__arrow_c_stream__") and not hasattr(table, "__arrow_c_array__"):
            raise TopologyError(
                f"Table: {type(table).__name__} is no table; give a DataFrame of pandas or Polars, a Table of pyarrow, or pairs to Items"
            )
        self._given = table
        self._columns = ArrowColumns("Table", key, columns)
        self._rows: Any = None
        self._next = 0

    def check(self) -> None:
        """Raises SourceError for a column that is missing, or of a type that cannot travel."""
        self._shape(self._table())

    def open(self, context: Context) -> None:
        """Take part `context.part`."""
        self.context = context
        whole = self._table()
        self._reads = self._shape(whole)
        begin, end = (whole.num_rows * part // context.parts for part in (context.part, context.part + 1))
        self._rows = whole.slice(begin, end - begin)

    def read(self, limit: int) -> Columns | list[Any]:
        """Up to `limit` rows."""
        if limit < 1:
            return []
        if self._next >= self._rows.num_rows:
            raise EndOfStream
        batch = self._rows.slice(self._next, limit).to_batches()[0]
        self._next += batch.num_rows
        rows: Columns = self._reads.tuples(batch)
        return rows

    def position(self) -> int:
        """Return the number of rows that were read."""
        return self._next

    def seek(self, position: Any) -> None:
        """Pass over so many rows. Raises SourceError where there are not so many."""
        if position > self._rows.num_rows:
            raise SourceError(
                f"Table: an earlier run has read {position} rows, and now there are only {self._rows.num_rows}; give the same ones, or start "
                "anew (--restart)"
            )
        self._next = int(position)

    def progress(self) -> tuple[float, float]:
        """Rows read and rows in all."""
        return float(self._next), float(self._rows.num_rows)

    def _shape(self, table: Any) -> Any:
        return self._columns.of("Table", table.schema, None)

    def _table(self) -> Any:
        pa = arrow("Table")
        try:
            return self._made(pa, self._given)
        except pa.ArrowException as error:
            said = ": ".join(map(str, error.args[::-1]))
            raise SourceError(f"Table: {said}; give the column one type, such as by astype(str)") from None

    def _made(self, pa: Any, given: Any) -> Any:
        library = type(given).__module__.partition(".")[0]
        if library == "pandas":
            return pa.Table.from_pandas(given, preserve_index=False)
        if library == "polars":  # its own stream has views of strings, which pyarrow could not make strings of until 18
            from polars import CompatLevel

            return given.to_arrow(compat_level=CompatLevel.oldest())
        return given if isinstance(given, pa.Table) else pa.table(given)
