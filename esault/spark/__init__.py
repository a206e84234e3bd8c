"""Spark over landed tables: reading, compaction, reports. The only room that imports pyspark, and late.

| module | holds |
|---|---|
| `java`, `session` | a Java that fits, and a quiet local session that leaves no process behind |
| `table` | a landed table as a DataFrame |
| `data_source` | `format("esault")`, in batches and as a stream |
| `compact` | few large parts in place of many small ones |
| `analyze`, `report`, `plot` | the reports of a topology, as tables and pictures |
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from esault.spark.session import require_pyspark, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_table", "register", "session"]


def read_table(
    spark: SparkSession, path: str | os.PathLike[str], duplicates: bool = False, version: int | None = None
) -> DataFrame:
    """The rows of the landed table in folder `path`; see `esault.spark.table.read_table`."""
    from esault.spark import table

    return table.read_table(spark, path, duplicates, version)


def register(spark: SparkSession) -> None:
    """Make `format("esault")` known to a session; see `esault.spark.data_source`."""
    require_pyspark()
    from esault.spark import data_source

    data_source.register(spark)
