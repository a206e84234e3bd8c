"""Upkeep of tables in folders: few large files in place of many small ones, and none that no version needs any more.

Of eSault's own tables, and of those of Delta Lake: these by `OPTIMIZE` and `VACUUM` where Spark has Delta's jar, and
else by deltalake. A table of a pipeline that has both logs is kept by ours, and Delta's is told.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from esault.counters import counted
from esault.errors import EsaultError, SinkError, UsageError
from esault.object_store.stored_object import is_url, local_path
from esault.sinks.landing import LOG_FOLDER, SAFE_AGE, table_log, vacuum
from esault.sinks.landing.disk import LocalDisk
from esault.sinks.landing.lock import RunLock
from esault.spark.cluster_compaction import PREFIX, compact_by_spark
from esault.spark.compact import TARGET_BYTES, Compacted, compact
from esault.spark.delta_jar import has_delta
from esault.spark.failure import failures, said
from esault.spark.settings import settings
from esault.spark.staging import clear
from esault.spark.table import quoted
from esault.spark.tables.delta_log import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Upkeep", "is_ours", "tables_below"]

_DELTA = "_delta_log"
#: seconds for which a folder that new parts pass is taken for one in use
_HOUR = 3600.0
Say = Callable[[str], None]


def tables_below(folders: Iterable[str]) -> list[str]:
    """The folders of all tables: these folders, or what is below them. SinkError: there is none in one of them."""
    found: dict[str, None] = {}
    for folder in map(local_path, folders):
        if is_url(folder):
            raise SinkError(f"{folder}: tables in object stores are not compacted or vacuumed; name a folder")
        below = list(_below(folder))
        if not below:
            why = "no table is in there" if os.path.isdir(folder) else "there is no such folder"
            raise SinkError(f"{folder}: {why}; name the folder of a SparkTable, a DeltaSink or of a pipeline")
        found |= dict.fromkeys(below)
    return list(found)


def _below(folder: str) -> Iterator[str]:
    for path, folders, _ in os.walk(folder):
        if LOG_FOLDER in folders or _DELTA in folders:
            folders.clear()
            yield os.path.normpath(path)
        folders.sort()


class Upkeep:
    """The upkeep of tables. `spark`: a session whose executors rewrite files; without it this process does. `say` is told what takes time."""

    def __init__(self, spark: SparkSession | None = None, say: Say = lambda text: None) -> None:
        self._spark = spark
        self._say = say

    def compact(self, table: str, target_bytes: int = TARGET_BYTES, drop_duplicates: bool = False) -> Compacted:
        """Rewrite the small files of the table in this folder as files of up to so many bytes.

        `drop_duplicates`: of rows of our tables with the same `_run` and `_id` that come into one file, the first stays. SinkError,
        UsageError; EsaultError for what Spark raises.
        """
        if not is_ours(table):
            return self._optimize(table, target_bytes)
        if self._spark is None:
            done = compact(table, target_bytes, drop_duplicates, self._say)
        else:
            done = compact_by_spark(self._spark, table, target_bytes, drop_duplicates, self._say)
        _publish(table)
        return done

    def vacuum(self, table: str, keep: float = SAFE_AGE, force: bool = False) -> int:
        """Remove the files of the table in this folder that no version of the last `keep` seconds has; return how many.

        Less than a week needs `force` where the last run has not ended: what it staged may be committed when it is resumed.
        So does any Delta table. UsageError where it is missing; SinkError: a run writes the table now; the rest as `compact`.
        """
        if not is_ours(table):
            return self._vacuum_delta(table, keep, force)
        state = table_log(table).state
        if keep >= SAFE_AGE:
            return _removed(table, keep)
        if state.run is not None and state.ended is not True and not force:
            raise UsageError(
                f"{table}: its run {state.run} has not ended, and may hold rows that it will commit when it is resumed; files that are "
                "younger than 7 days are removed only with --force: when it will never be"
            )
        lock = RunLock(table)
        lock.acquire("esault vacuum")
        try:
            return _removed(table, keep)
        finally:
            lock.release()

    def _optimize(self, table: str, target_bytes: int) -> Compacted:
        before = len(_delta(table).file_uris())
        self._say(f"compacting {counted(before, 'file')} of {table}, by {self._who} ...")
        if self._by_jar:
            self._sql(table, f"OPTIMIZE {_named(table)}", {"spark.databricks.delta.optimize.maxFileSize": target_bytes})
        else:
            _refused(table, lambda: _delta(table).optimize.compact(target_size=target_bytes))
        return Compacted(before, len(_delta(table).file_uris()), 0)

    def _vacuum_delta(self, table: str, keep: float, force: bool) -> int:
        hours = keep / 3600
        if keep < SAFE_AGE and not force:
            raise UsageError(
                f"{table}: a run may have staged what it will commit, and a reader be at an older version; files that are younger than 7 "
                "days are removed only with --force: when there is neither"
            )
        before = _files(table)
        if self._by_jar:
            assert self._spark is not None
            chosen = {
                "spark.databricks.delta.retentionDurationCheck.enabled": str(not force).lower(),
                # else Delta cuts its list of files into 10 000 tasks
                "spark.sql.sources.parallelPartitionDiscovery.parallelism": 4
                * self._spark.sparkContext.defaultParallelism,
            }
            self._sql(table, f"VACUUM {_named(table)} RETAIN {hours} HOURS", chosen)
        else:
            whole = math.ceil(hours)
            _refused(table, lambda: _delta(table).vacuum(whole, False, enforce_retention_duration=not force))
        return before - _files(table)

    @property
    def _by_jar(self) -> bool:
        return self._spark is not None and has_delta(self._spark)

    @property
    def _who(self) -> str:
        if self._by_jar:
            return "Spark"
        return "deltalake" if self._spark is None else "deltalake in this process: Spark has no jar of Delta Lake here"

    def _sql(self, table: str, statement: str, chosen: dict[str, Any]) -> None:
        assert self._spark is not None
        try:
            with settings(self._spark, {key: str(value) for key, value in chosen.items()}):
                self._spark.sql(statement).collect()
        except failures() as error:
            raise EsaultError(f"{table}: {said(error)}") from None


def is_ours(table: str) -> bool:
    """Return whether the table in this folder has a log of eSault, also if it has one of Delta Lake beside it."""
    return os.path.isdir(os.path.join(table, LOG_FOLDER))


def _removed(table: str, keep: float) -> int:
    _publish(table)  # else Delta's log would name what is removed
    clear(table, PREFIX, LocalDisk(), time.time() - max(keep, _HOUR))
    done = vacuum(table, keep)
    return done.parts


def _publish(table: str) -> None:
    if os.path.isdir(os.path.join(table, _DELTA)):
        publish(table)


def _named(table: str) -> str:
    return f"delta.{quoted('file://' + os.path.abspath(table))}"


def _delta(table: str) -> Any:
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise UsageError(f"{table} is a table of Delta Lake: pip install 'esault[delta]'") from None
    return _refused(table, lambda: DeltaTable(table))


def _refused(table: str, call: Callable[[], Any]) -> Any:
    """Return what the library returns; SinkError for what it raises."""
    from deltalake.exceptions import DeltaError

    try:
        return call()
    except DeltaError as error:
        raise SinkError(f"{table}: {error}") from None


def _files(table: str) -> int:
    return sum(name.endswith(".parquet") for _, _, names in os.walk(table) for name in names)
