"""What Spark reports on landed tables: the topology's own `reports(tables)`, or what can be said of any table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from esault.errors import EsaultError, SinkError, UsageError
from esault.sinks.landing import LOG_FOLDER, table_log
from esault.sinks.landing.table import LandedTable
from esault.spark.compact import compact
from esault.spark.plot import plot
from esault.spark.report import ReportTable, render
from esault.spark.session import require_pyspark, session
from esault.spark.table import read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["KEPT", "ReportTable", "analyze", "render", "tables_in"]

#: rows of a report that are brought back; more is no report
KEPT = 1000

#: small parts from which compacting first is faster than reading them with Spark
_SMALL = 32
_SMALL_BYTES = 2**20

#: seconds of one step of rows over time; the first that makes at most `_STEPS` of them
_WIDTHS = (1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400)
_STEPS = 40

_Table = LandedTable | str | os.PathLike[str]


def analyze(
    plan_sinks: Mapping[str, _Table],
    reports: Callable[[dict[str, DataFrame]], Mapping[str, DataFrame]] | None = None,
    master: str | None = None,
    plot_dir: str | None = None,
    *,
    say: Callable[[str], None] = lambda text: None,
    paths: Iterable[str] = (),
    conf: Mapping[str, str] | None = None,
) -> dict[str, ReportTable]:
    """The reports on tables, by name, in the order in which `reports` gives them.

    `plan_sinks`: a topology's landed tables (or their folders) by the name of the sink. `reports` gets a DataFrame for
    each, duplicates gone, and returns DataFrames by name; without it there is a report per table: rows, distinct keys,
    runs, span of time. `plot_dir`: also a picture of each that can be drawn. `say` is told what takes time; `paths`,
    `conf` and `master` as for `session`. Many small parts are compacted first, where the tables can be written.

    SinkError: no tables, a missing one, all of them empty, one of a newer format. UsageError: Spark, Java or a plot
    cannot be had, or `reports` returns something else. What `reports` raises is passed on.
    """
    folders = {
        name: table.path if isinstance(table, LandedTable) else os.fspath(table) for name, table in plan_sinks.items()
    }
    _check(folders)
    require_pyspark()
    for folder in folders.values():
        _compact(folder, say)
    with session(master, say=say, paths=paths, conf=conf) as spark:
        if reports is None:
            frames: Mapping[str, DataFrame] = _default(spark, folders, say)
        else:
            tables = {name: read_table(spark, folder) for name, folder in folders.items()}
            frames = _asked(reports, tables)
        results = {}
        for name, frame in frames.items():
            say(f"report {name!r} ...")
            results[name] = _collect(name, frame)
    if plot_dir is not None:
        results = {name: replace(result, plot=plot(result, plot_dir)) for name, result in results.items()}
    return results


def tables_in(folder: str | os.PathLike[str]) -> dict[str, str]:
    """The landed tables in a folder, by name: the folder itself, or those right below it. SinkError: there is none."""
    path = os.fspath(folder)
    if not os.path.isdir(path):
        raise SinkError(f"no tables at {path}: there is no such folder. Run the topology that writes it first")
    name = os.path.basename(os.path.abspath(path))
    if os.path.isdir(os.path.join(path, LOG_FOLDER)):
        return {name: path}
    below = sorted(entry.name for entry in os.scandir(path) if os.path.isdir(os.path.join(entry.path, LOG_FOLDER)))
    if not below:
        raise SinkError(
            f"no tables in {path}: neither it nor a folder right below it has a log of eSault ({LOG_FOLDER})"
        )
    return {name: os.path.join(path, name) for name in below}


def _check(folders: Mapping[str, str]) -> None:
    """SinkError when there is nothing to report on."""
    if not folders:
        raise SinkError("there is no table to report on: give the topology a sink SparkTable(path, columns)")
    rows = {name: sum(part.rows for part in table_log(folder).files()) for name, folder in folders.items()}
    if not any(rows.values()):
        said = ", ".join(f"{name} ({folders[name]})" for name in rows)
        raise SinkError(
            f"no rows yet in {said}: nothing was committed. Run the topology first, and let it end or commit"
        )


def _compact(folder: str, say: Callable[[str], None]) -> None:
    small = sum(part.bytes < _SMALL_BYTES for part in table_log(folder).files())
    if small < _SMALL:
        return
    try:
        compact(folder, say=say)
    except SinkError as error:
        say(f"{folder} stays in {small} small parts, which is slow: {error}")


def _asked(
    reports: Callable[[dict[str, DataFrame]], Mapping[str, DataFrame]], tables: dict[str, DataFrame]
) -> Mapping[str, DataFrame]:
    from pyspark.sql import DataFrame

    frames = reports(tables)
    if not isinstance(frames, Mapping) or not frames:
        raise UsageError(
            f'reports(tables) must return a dict of DataFrames by name, such as {{"top words": ...}}, '
            f"got {_kind(frames)}"
        )
    for name, frame in frames.items():
        if not isinstance(name, str) or not isinstance(frame, DataFrame):
            raise UsageError(f"reports(tables): {name!r} must be a str with a DataFrame of Spark, got {_kind(frame)}")
    return frames


def _kind(value: Any) -> str:
    return "nothing; is there a `return`?" if value is None else f"{value!r} of type {type(value).__name__}"


def _default(spark: SparkSession, folders: Mapping[str, str], say: Callable[[str], None]) -> dict[str, DataFrame]:
    """What can be said of any table; nothing of those without rows but that."""
    from pyspark.sql import functions as f

    frames: dict[str, DataFrame] = {}
    for name, folder in folders.items():
        table = read_table(spark, folder)
        key = f.col(f"`{table.columns[0].replace('`', '``')}`")
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


def _collect(name: str, frame: DataFrame) -> ReportTable:
    from pyspark.errors import PySparkException
    from pyspark.sql import types

    def kind(data: types.DataType) -> str:
        if isinstance(data, types.NumericType):
            return "number"
        return "time" if isinstance(data, (types.TimestampType, types.TimestampNTZType, types.DateType)) else "text"

    try:
        columns = tuple(frame.columns)
        kinds = tuple(kind(field.dataType) for field in frame.schema.fields)
        # by place: a report may have two columns of one name
        arrow = frame.limit(KEPT + 1).toArrow()
        rows = list(zip(*(column.to_pylist() for column in arrow.columns)))
    except PySparkException as error:
        raise EsaultError(f"report {name!r}: {error}") from None
    return ReportTable(name, columns, kinds, tuple(rows[:KEPT]), len(rows) > KEPT)
