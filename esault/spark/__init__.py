"""Spark over landed tables: reading, compaction, reports. The only room that imports pyspark, and late.

| module | holds |
|---|---|
| `java`, `session` | a Java that fits, and a quiet local session that leaves no process behind |
| `worker_python` | a Python for its workers that starts quickly |
| `table`, `columns` | a landed table as a DataFrame, and a DataFrame's columns as a table's |
| `data_source` | `format("esault")`, in batches and as a stream |
| `compact`, `cluster_compaction` | few large parts in place of many small ones: by one process, by a cluster |
| `executors` | a cluster's cores |
| `catalog`, `snapshot` | tables as views in a catalog, each of one committed version |
| `delta_jar` | Delta Lake's own jar |
| `pipeline` | the jobs from landed tables to reports, each of which does only what is new |
| `reading`, `derived`, `staging` | what a job has to read next; the table that it makes; how Spark's rows come there |
| `clean`, `rows` | the job that makes clean tables, and what it says to Spark |
| `results`, `report`, `plot` | reports as landed tables, as text and as pictures |
| `described`, `elasticity` | the reports for tables that have none of their own: any, and a run's metrics |
| `analyze` | reports on landed tables at once, nothing kept |
| `tables/` | pipelines of tables: what a topology file's `pipeline(tables)` declares |
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from esault.spark.session import require_pyspark, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from esault.spark.catalog import Registered

__all__ = ["metastore", "read_table", "register", "register_table", "session"]


def read_table(
    spark: SparkSession,
    path: str | os.PathLike[str],
    duplicates: bool = False,
    version: int | None = None,
    partitions: Mapping[str, Iterable[Any]] | None = None,
) -> DataFrame:
    """The rows of the landed table in folder `path`; see `esault.spark.table.read_table`."""
    from esault.spark import table

    return table.read_table(spark, path, duplicates, version, partitions)


def register(spark: SparkSession) -> None:
    """Make `format("esault")` known to a session; see `esault.spark.data_source`."""
    require_pyspark()
    from esault.spark import data_source

    data_source.register(spark)


def register_table(spark: SparkSession, name: str, path: str | os.PathLike[str], comment: str = "") -> Registered:
    """Have `name`, such as "shop.sales", show a table in the session's catalog; see `esault.spark.catalog.register_table`."""
    require_pyspark()
    from esault.spark import catalog

    return catalog.register_table(spark, name, path, comment)


def metastore(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return the settings of a session whose catalog is kept in `folder`; see `esault.spark.catalog.metastore`."""
    from esault.spark import catalog

    return catalog.metastore(folder)
