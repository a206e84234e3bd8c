"""`format("esault")`: a landed table as a Python data source, in batches and as a stream.

```python
from esault.spark import register
register(spark)
spark.readStream.format("esault").load("out/word_count").writeStream....
```

A stream's offset is a version of the table's log. It starts with the whole table and goes on with what each later
version adds, so it is exact: parts without a log entry are never seen, no entry is missed, compaction brings nothing
twice, and a query that starts again goes on from its checkpoint. Rows that a replay repeated do come (in another
version): `dropDuplicates(["_run", "_id"])` where that matters.

Of a table with a primary key a batch has the newest row of each key. A stream of it is its changelog: each update as it
came, those that another of the same commit overtook left out; `_updated` says how new it is, `_deleted` that the key's
row is gone.

A query keeps the columns that it was planned with. One that the table gets later comes where the query begins anew.

| option | |
|---|---|
| path | the table's folder, or its address |
| partitions | tasks to divide the parts of a batch among, at most (twice the cores) |
| replaced | of a stream, when the table is replaced under it: "fail" (default), or "follow": go on with the new rows; those of before that it has not read are left out |
"""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from esault.errors import SinkError, UsageError
from esault.object_store.stored_object import is_url
from esault.sinks.landing import table_log
from esault.sinks.landing.entry import Part
from esault.sinks.landing.log import CommitLog
from esault.sinks.landing.part_file import part_file
from esault.sinks.landing.schema import Column, Schema
from esault.spark.table import spark_schema, table_schema

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:
    # Spark 4.1: trigger(availableNow=True) makes one batch, of what is there or that which failed before.

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Known from Spark 4.2 on."""


if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["EsaultSource", "register"]

#: the offset before the first version
_START = -1
_ROWS = 10_000


def register(spark: SparkSession) -> None:
    """Make `format("esault")` known to a session."""
    spark.dataSource.register(EsaultSource)


class EsaultSource(DataSource):  # type: ignore[misc]
    """See the module."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        path = options.get("path")
        if not path:
            raise UsageError('format("esault") needs the table\'s folder: .load("out/table")')
        self._table = _Table(path.removeprefix("file://"), options)

    @classmethod
    def name(cls) -> str:
        return "esault"

    def schema(self) -> StructType:
        return spark_schema(self._table.log().state.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self._table, table_schema(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _StreamReader(self._table, table_schema(schema))


class _Table:
    """The common part of both readers; goes to the workers, so it holds plain values only."""

    def __init__(self, path: str, options: MutableMapping[str, str]) -> None:
        self.path = path
        count = options.get("partitions") or str(2 * (os.cpu_count() or 1))
        if not count.isdecimal() or len(count) > 9 or int(count) < 1:
            raise UsageError(f'format("esault"): option partitions must be a whole number from 1 on, got {count!r}')
        self.partitions = int(count)
        self.replaced = options.get("replaced") or "fail"
        if self.replaced not in ("fail", "follow"):
            raise UsageError(f'format("esault"): option replaced must be "fail" or "follow", got {self.replaced!r}')

    def log(self) -> CommitLog:
        return table_log(self.path)

    def check(self, asked: Schema, there: Schema) -> None:
        """SinkError where a column that is asked for is none of the table's."""
        names = [column.name for column in there]
        for column in asked:
            if column.name not in names:
                raise SinkError(f"table {self.path} has no column {column.name!r}; there are: {', '.join(names)}")

    def divide(self, parts: Sequence[Part], schema: Schema) -> list[_Parts]:
        """The parts, in order, in at most `partitions` pieces of about the same size."""
        names: list[list[str]] = [[]]
        share = sum(part.bytes for part in parts) / self.partitions
        size = 0
        for part in parts:
            if names[-1] and size + part.bytes / 2 > share * len(names):
                names.append([])
            names[-1].append(part.path)
            size += part.bytes
        folder = self.path if is_url(self.path) else os.path.abspath(self.path)
        return [_Parts(folder, tuple(piece), schema) for piece in names if piece]


@dataclass
class _Parts(InputPartition):  # type: ignore[misc]
    """The parts that one task reads."""

    folder: str
    names: tuple[str, ...]
    schema: Schema


def _read(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a partition, with all columns nullable, as Spark asks for."""
    if not isinstance(partition, _Parts):
        return  # of an empty list Spark makes one partition of its own
    import pyarrow.parquet as pq

    from esault.sinks.landing.arrow import arrow_schema, conform

    schema = arrow_schema(tuple(Column(column.name, column.type, True) for column in partition.schema))
    for name in partition.names:
        path = os.path.join(partition.folder, name)
        try:
            with part_file(path) as source, pq.ParquetFile(source) as file:
                there = set(file.schema_arrow.names)
                for batch in file.iter_batches(_ROWS, columns=[name for name in schema.names if name in there]):
                    yield conform(batch, schema, path)
        except FileNotFoundError:
            raise SinkError(
                f"{path} is gone: the table was compacted or replaced since, and vacuum removed it. Read the table "
                "anew; a stream needs a new checkpoint"
            ) from None


@dataclass
class _Newest(InputPartition):  # type: ignore[misc]
    """All parts of a table with a primary key: one task merges them."""

    folder: str
    parts: tuple[Part, ...]
    schema: Schema
    primary_key: tuple[str, ...]
    #: the columns that are asked for
    asked: Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The newest row of each key."""
        from esault.sinks.landing.arrow import arrow_schema, conform
        from esault.sinks.landing.merge import newest_of_each, read_parts, there

        rows = read_parts(self.folder, self.parts, self.schema)
        for batch in there(newest_of_each(rows, self.primary_key)).to_batches(_ROWS):
            yield conform(batch, arrow_schema(self.asked), self.folder)


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, table: _Table, schema: Schema) -> None:
        self._table = table
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        state = self._table.log().at()
        assert state.files is not None
        self._table.check(self._schema, state.schema)
        if state.primary_key:
            folder = os.path.abspath(self._table.path)
            return [_Newest(folder, tuple(state.files.values()), state.schema, state.primary_key, self._schema)]
        return self._table.divide(list(state.files.values()), self._schema)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return partition.batches() if isinstance(partition, _Newest) else _read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    def __init__(self, table: _Table, schema: Schema) -> None:
        self._table = table
        self._schema = schema
        self._log: CommitLog | None = None
        #: the version to end at, when the query takes what is there and ends
        self._last: int | None = None

    def _read_log(self) -> CommitLog:
        """The log, kept from batch to batch, with what is new."""
        if self._log is None:
            self._log = self._table.log()
        else:
            self._log.refresh()
        return self._log

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"version": _START}

    # arguments since Spark 4.2; 4.1 calls it without
    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"version": self._read_log().state.version if self._last is None else self._last}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._last = self._read_log().state.version

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        after, until = int(start["version"]), int(end["version"])
        log = self._read_log()
        if until > log.state.version:
            raise SinkError(
                f"table {log.table} has no version {until}, which the stream's checkpoint names; was the table made "
                "anew? Start the stream with a new checkpoint"
            )
        if after == _START:
            state = log.at(until)
            assert state.files is not None
            self._table.check(self._schema, state.schema)
            return self._table.divide(list(state.files.values()), self._schema)
        parts: list[Part] = []
        for version, entry in log.entries(after, until):
            changed = entry.kind == "replace" or (entry.kind == "rows" and entry.remove)
            if changed and self._table.replaced == "fail":
                raise SinkError(
                    f"table {log.table} was replaced, or rows of it were, at version {version}, and rows that the stream has passed on are "
                    "gone. Start it with a new checkpoint, or go on with option replaced=follow"
                )
            if entry.kind == "replace":
                parts = list(entry.add)  # what was there before is gone, or will be soon
            elif entry.kind == "rows":
                if entry.remove:
                    parts = [part for part in parts if part.path not in entry.remove]
                parts += entry.add
        self._table.check(self._schema, log.state.schema)
        return self._table.divide(parts, self._schema)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)
