"""Files of a table that hold certain rows, and the other rows that stand in them: what a rewrite must know."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from esault.sinks.landing.schema import Schema
from esault.sinks.landing.state import TableState
from esault.spark.rows import parts_with_places
from esault.spark.table import quoted, read_parts, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["conformed", "files_of", "outside", "placed"]


def placed(spark: SparkSession, folder: str, names: Sequence[str], schema: Schema) -> DataFrame:
    """Rows with the file that each stands in."""
    return parts_with_places(spark, folder, names, schema, True)


def files_of(rows: DataFrame, names: Sequence[str]) -> list[str]:
    """Those of the parts `names` that the rows stand in."""
    from pyspark.sql import functions as f

    found = {row[0] for row in rows.select(f.col("__part")).distinct().collect()}
    return [name for name in names if os.path.basename(name) in found]


def conformed(rows: DataFrame, schema: Schema, more: Sequence[Any] = ()) -> DataFrame:
    """The rows with the columns of a table that may have more of them, or wider ones."""
    from pyspark.sql import functions as f

    there = set(rows.columns)
    values = [
        (f.col(quoted(c.name)) if c.name in there else f.lit(None)).cast(spark_type(c.type)).alias(c.name)
        for c in schema
    ]
    return rows.select(*values, *more)


def outside(
    spark: SparkSession, folder: str, state: TableState, where: str, schema: Schema
) -> tuple[DataFrame, list[str]]:
    """Rows that stay although they stand in files with rows for which `where` is true, and those files."""
    from pyspark.sql import functions as f

    names = list(state.files or ())
    # a table without files has none that could be looked into
    touched = files_of(placed(spark, folder, names, schema).where(where), names) if names else []
    rows = read_parts(spark, folder, touched, schema, True)
    return rows.where(~f.coalesce(f.expr(where), f.lit(False))), touched
