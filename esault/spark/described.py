"""Facts that can be told of any table: rows, distinct keys, runs, span of time, rows over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from esault.spark.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["described"]

#: seconds of one step of rows over time; the first that makes at most `_STEPS` of them
_WIDTHS = (1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400)
_STEPS = 40


def described(spark: SparkSession, tables: Mapping[str, DataFrame], say: Callable[[str], None]) -> dict[str, DataFrame]:
    """Reports on tables by name; nothing of those without rows but that. The key is a table's first column."""
    from pyspark.sql import functions as f

    frames: dict[str, DataFrame] = {}
    for name, table in tables.items():
        key = f.col(quoted(table.columns[0]))
        measures = [f.count(f.lit(1)).alias("rows"), f.count_distinct(key).alias("distinct keys")]
        if "_run" not in table.columns:
            frames[name] = table.agg(*measures)
            continue
        span = [f.min("_time").alias("first"), f.max("_time").alias("last")]
        runs = f.count_distinct("_run").alias("runs")
        say(f"reading {name} ...")
        total = table.agg(*measures, runs, *span).toArrow()
        frames[name] = spark.createDataFrame(total)
        frames[f"{name} by run"] = table.groupBy(f.col("_run").alias("run")).agg(*measures, *span).orderBy("first")
        first, last = total["first"][0].as_py(), total["last"][0].as_py()
        if first is not None and last > first:
            width = _width(first, last)
            step = f.window("_time", f"{width} seconds").start.alias("time")
            over = table.groupBy(step).agg(f.count(f.lit(1)).alias("rows")).orderBy("time")
            frames[f"{name} rows per {_said(width)}"] = over
    return frames


def _width(first: datetime, last: datetime) -> int:
    span = (last - first).total_seconds()
    return next((width for width in _WIDTHS if span / width <= _STEPS), _WIDTHS[-1])


def _said(width: int) -> str:
    for seconds, unit in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if width % seconds == 0:
            count = width // seconds
            return unit if count == 1 else f"{count} {unit}s"
    raise AssertionError(width)
