"""From the columns of a DataFrame to those of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esault.errors import UsageError
from esault.sinks.landing.schema import Column, Schema
from esault.spark.table import quoted, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

__all__ = ["stored"]

#: what columns may be, in Spark's words
_TYPES = "string, bigint, double, boolean, binary, timestamp, date, decimal(38,18)"


def stored(table: str, frame: DataFrame) -> tuple[DataFrame, Schema]:
    """The rows with the types that a table has, and its columns. Arrays, maps and structs become JSON. UsageError."""
    from pyspark.sql import functions as f

    columns, seen = [], set()
    values = []
    for field in frame.schema.fields:
        folded = field.name.casefold()
        if folded in seen or not field.name.strip():
            raise UsageError(
                f"table {table}: two columns are called {field.name!r}, or differ in case only; rename one with alias"
            )
        seen.add(folded)
        kind, name = _kind_of(field.dataType), field.dataType.typeName()
        if kind is None and name not in ("array", "map", "struct"):
            remedy = "decimal(38,18), the one that it has" if name == "decimal" else f"one of {_TYPES}"
            raise UsageError(
                f"table {table}: column {field.name!r} is {field.dataType.simpleString()}, which a table has not; cast "
                f"it to {remedy}"
            )
        value = f.col(quoted(field.name))
        if kind is None:
            kind, value = "string", f.to_json(value)
        columns.append(Column(field.name, kind, True))
        values.append(value.cast(spark_type(kind)).alias(field.name))
    return frame.select(*values), tuple(columns)


def _kind_of(kind: DataType) -> str | None:
    """Our name for a type of Spark; None where there is none."""
    from pyspark.sql import types

    if isinstance(kind, types.DecimalType):
        return "decimal(38,18)" if kind.scale <= 18 and kind.precision - kind.scale <= 20 else None
    known: list[tuple[type[DataType] | tuple[type[DataType], ...], str]] = [
        ((types.StringType, types.CharType, types.VarcharType, types.NullType), "string"),
        (types.IntegralType, "long"),
        ((types.FloatType, types.DoubleType), "double"),
        (types.BooleanType, "boolean"),
        (types.BinaryType, "binary"),
        ((types.TimestampType, types.TimestampNTZType), "timestamp"),
        (types.DateType, "date"),
    ]
    return next((name for fits, name in known if isinstance(kind, fits)), None)
