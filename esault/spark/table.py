"""Landed tables as DataFrames."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from esault.sinks.landing import table_log
from esault.sinks.landing.schema import ADDED, Schema
from esault.spark.session import require_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["read_table", "spark_schema", "without_duplicates"]


def spark_schema(schema: Schema) -> StructType:
    """The columns of a table as Spark's; all nullable, as Spark's own file sources have them."""
    from pyspark.sql import types

    kinds: dict[str, Any] = {
        "string": types.StringType(),
        "long": types.LongType(),
        "double": types.DoubleType(),
        "boolean": types.BooleanType(),
        "binary": types.BinaryType(),
        "timestamp": types.TimestampType(),
        "date": types.DateType(),
        "decimal(38,18)": types.DecimalType(38, 18),
    }
    return types.StructType([types.StructField(column.name, kinds[column.type], True) for column in schema])


def read_table(
    spark: SparkSession, path: str | os.PathLike[str], duplicates: bool = False, version: int | None = None
) -> DataFrame:
    """The rows that are visible in the table in folder `path`: exactly those of the parts that its log names.

    `duplicates=False` drops rows that a replay repeated (same `_run` and `_id`; of rows without an id, all are kept). That costs a
    shuffle of all ids, and is left out where the log says that no run has repeated any.
    `version`: as the table was then. SinkError when there is no table, or no such version. Later commits do not
    change the DataFrame: read again for them.
    """
    require_pyspark()
    log = table_log(path)
    state = log.at(version)
    schema = spark_schema(state.schema)
    if not state.files:
        return spark.createDataFrame([], schema)
    folder = os.path.abspath(log.table)
    paths = (_uri(os.path.join(folder, name)) for name in state.files)
    frame = spark.read.schema(schema).parquet(*paths)
    return frame if duplicates or state.distinct else without_duplicates(frame)


def _uri(path: str) -> str:
    """The path for Spark's readers: on this file system whatever the default one is, and never taken for a pattern.

    (Their option __globPaths__=false is no way out: with it each path that looks like a pattern is read once per path.)
    """
    return "file://" + re.sub(r"([\\[\]{}*?,])", r"\\\1", path)


def without_duplicates(frame: DataFrame) -> DataFrame:
    """The DataFrame without rows that a replay repeated; as it is when it has no ids."""
    from pyspark.sql import functions

    if not {column.name for column in ADDED}.issubset(frame.columns):
        return frame
    # what has no id counts as a row of its own; the letters keep the two kinds apart
    own = functions.concat(functions.lit("n"), functions.monotonically_increasing_id())
    name = "_id or own"
    marked = frame.withColumn(name, functions.coalesce(functions.concat(functions.lit("i"), "_id"), own))
    return marked.dropDuplicates(["_run", name]).drop(name)
