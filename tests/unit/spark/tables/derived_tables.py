"""Tables as jobs make them, of parts that pyarrow writes: no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from esault.sinks.landing.entry import Input, Part
from esault.sinks.landing.schema import Column, Schema
from esault.spark.derived import DerivedTable

SCHEMA: Schema = (Column("n", "long"),)


def part_of(table: DerivedTable, rows: Sequence[int]) -> Part:
    """A staged part with these rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": pa.array(rows, pa.int64())}), sink)
    return table.put(memoryview(sink.getvalue()), len(rows))


def add(path: Path, rows: Sequence[int], whole: bool = False, inputs: tuple[Input, ...] = ()) -> DerivedTable:
    """Show rows, on top of those that are there or in their place."""
    table = DerivedTable(str(path))
    with table.locked():
        table.commit([part_of(table, rows)], SCHEMA, inputs, table.state(), whole)
    return table
