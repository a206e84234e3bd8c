"""The table that Spark reads."""

from __future__ import annotations

from typing import ClassVar

from esault.sinks.landing.schema import ADDED, Schema
from esault.sinks.landing.table import LandedTable

__all__ = ["SparkTable"]


class SparkTable(LandedTable):
    """Lands rows in a folder that Spark reads as a table, exactly: `SparkTable("out/t", {"word": str, "total": int})`.

    The key is the first column; the value fills the others: a scalar, a tuple, or by name a dict or an object with
    fields, such as a dataclass (names that are missing in it are null); with one column the value is not kept. What has
    the name of the key's column in it too must have the key there. The key goes into one column, so keys that are tuples
    need a `key_by` before.
    Types: str, int (64 bits), float, bool, bytes, datetime (with time zone; kept in UTC, microseconds), date, Decimal
    (38 digits, 18 after the point), UUID and Path (as text), an Enum of one of them (as its value), each also with
    `| None`. A value that does not fit raises SinkError.

    `columns` may be a class with fields: they are the columns, of the types that their annotations say. Then `key="word"`
    names the key's column, "key" if it is not said: the field of that name, or a column of str in front of the fields,
    or of another type with `key={"number": int}`.

    Added are `_id` (str; names the tuple by its source row and the path of emits), `_time` (when the tuple it descends from was due) and `_run` (which run wrote it). Rows that a replay
    repeats have the same `_run` and `_id`; readers drop them (`esault.spark.read_table`).

    With `primary_key="word"`, or several columns, the table is an **upsert table**: it has one row for each key, the
    newest. A value None deletes the row of its key, and so does a row in which the bool column that `deleted` names is
    true. Then `_updated` (when the row was written) is added instead of the three. Of a key's rows the one that was
    processed last counts, also when the key has moved; that asks for a unit before the sink that is grouped by the key.

    Writing needs `esault[parquet]`, reading it in Spark `esault[spark]`. The parts that are the table are those that
    its log names; `esault.sinks.landing.parts(path)` lists them for other readers of Parquet.
    """

    delivery_guarantee: ClassVar[str] = "each row is there once when read as the docs say: repeats have the same id"
    extra: ClassVar[str] = "parquet"
    wants_id: ClassVar[bool] = True
    added: ClassVar[Schema] = ADDED
