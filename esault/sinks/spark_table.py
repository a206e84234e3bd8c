"""The table that Spark reads."""

from __future__ import annotations

from typing import ClassVar

from esault.sinks.landing.schema import ADDED, Schema
from esault.sinks.landing.table import LandedTable

__all__ = ["SparkTable"]


class SparkTable(LandedTable):
    """Lands rows in a folder that Spark reads as a table, exactly: `SparkTable("out/t", {"word": str, "total": int})`.

    The key is the first column; the value fills the others: a scalar, a tuple, or a dict by name (names that are
    missing in it are null); with one column the value is not kept. The key goes into one column, so keys that are
    tuples need a `key_by` before.
    Types: str, int (64 bits), float, bool, bytes, datetime (with time zone; kept in UTC, microseconds), date, Decimal
    (38 digits, 18 after the point), each also with `| None`. A value that does not fit raises SinkError.

    Added are `_id` (str; names the tuple by its source row and the path of emits), `_time` (when the tuple it descends from was due) and `_run` (which run wrote it). Rows that a replay
    repeats have the same `_run` and `_id`; readers drop them (`esault.spark.read_table`).

    Writing needs `esault[parquet]`, reading it in Spark `esault[spark]`. The parts that are the table are those that
    its log names; `esault.sinks.landing.parts(path)` lists them for other readers of Parquet.
    """

    wants_id: ClassVar[bool] = True
    added: ClassVar[Schema] = ADDED
