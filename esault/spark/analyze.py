"""Reports on landed tables as they are, at once: nothing is kept. `pipeline` keeps clean tables, and does only what is new."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from esault.errors import SinkError
from esault.object_store.object_path import ObjectPath
from esault.object_store.stored_object import is_url, local_path
from esault.sinks.landing import LOG_FOLDER, table_log
from esault.sinks.landing.table import LandedTable
from esault.spark.compact import compact
from esault.spark.described import described
from esault.spark.plot import plot
from esault.spark.report import ReportTable, render
from esault.spark.results import KEPT, asked, collect
from esault.spark.session import require_pyspark, session
from esault.spark.table import read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["KEPT", "ReportTable", "analyze", "beside", "is_place", "render", "tables_in"]

#: small parts from which compacting first is faster than reading them with Spark
_SMALL = 32
_SMALL_BYTES = 2**20

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
        tables = {name: read_table(spark, folder) for name, folder in folders.items()}
        if reports is None:
            frames: Mapping[str, DataFrame] = described(spark, tables, say)
        else:
            frames = asked(reports, tables)
        results = {}
        for name, frame in frames.items():
            say(f"report {name!r} ...")
            results[name] = collect(name, frame)
    if plot_dir is not None:
        results = {name: replace(result, plot=plot(result, plot_dir)) for name, result in results.items()}
    return results


def is_place(what: str) -> bool:
    """Return whether that is a folder, or an address such as s3://bucket/tables."""
    return is_url(what) or os.path.isdir(what)


def beside(tables: Mapping[str, str]) -> str:
    """Return the folder that all these tables are in; the current one, where they are at addresses."""
    folders = [os.path.dirname(os.path.abspath(folder)) for folder in tables.values() if not is_url(folder)]
    return os.path.commonpath(folders or [os.getcwd()])


def tables_in(folder: str | os.PathLike[str]) -> dict[str, str]:
    """The landed tables in a folder, or at an address, by name: itself, or those right below it. SinkError: there is none."""
    path = local_path(os.fspath(folder))
    if is_url(path):
        return _tables_at(ObjectPath(path, SinkError))
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


def _tables_at(place: ObjectPath) -> dict[str, str]:
    if (place / LOG_FOLDER).is_dir():
        return {place.name: str(place)}
    below = sorted(name for name, size in place.children().items() if size is None)
    found = {name: str(place / name) for name in below if (place / name / LOG_FOLDER).is_dir()}
    if not found:
        raise SinkError(
            f"no tables at {place}: neither it nor what is right below it has a log of eSault ({LOG_FOLDER})"
        )
    return found


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
    if is_url(folder):
        return
    small = sum(part.bytes < _SMALL_BYTES for part in table_log(folder).files())
    if small < _SMALL:
        return
    try:
        compact(folder, say=say)
    except SinkError as error:
        say(f"{folder} stays in {small} small parts, which is slow: {error}")
