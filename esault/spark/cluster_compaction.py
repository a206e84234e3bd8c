"""Few large parts in place of many small ones, rewritten by Spark's executors: what `compact` does in one process.

Each group of neighbours is one task, which reads its parts and writes the new one: nothing is shuffled. So many groups
are at work at a time as there are cores, and each is committed by an entry of its own as soon as it is written. A
driver that is killed has done some groups and not the others; what it left no reader sees, and `vacuum` removes.

Of a table with a primary key all parts are merged in one job, by ranges of the key.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from esault.counters import counted
from esault.errors import EsaultError, SinkError
from esault.sinks.landing import table_log
from esault.sinks.landing.compaction import TARGET_ROWS, alone, replace_parts
from esault.sinks.landing.disk import LocalDisk
from esault.sinks.landing.entry import Part
from esault.sinks.landing.log import CommitLog, Conflict
from esault.sinks.landing.schema import Schema
from esault.sinks.landing.vacuum import SAFE_AGE, remove_parts
from esault.spark.compact import TARGET_BYTES, Compacted, neighbours
from esault.spark.executors import cores
from esault.spark.failure import failures, said
from esault.spark.rows import once, parts_with_places
from esault.spark.staging import clear, stage, writing
from esault.spark.table import newest_rows, part_schema, quoted, read_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PREFIX", "compact_by_spark"]

#: of the folders that new parts pass
PREFIX = ".compacting-"
#: groups at work at a time, at most: each has a thread here
_MOST_AT_A_TIME = 64
#: a task streams its rows, so that their number does not matter
_ANY_ROWS = 2**62


@dataclass(frozen=True)
class _Group:
    """Neighbours with the same columns, which become one part."""

    parts: tuple[Part, ...]
    schema: Schema


def compact_by_spark(
    spark: SparkSession,
    path: str | os.PathLike[str],
    target_bytes: int = TARGET_BYTES,
    drop_duplicates: bool = True,
    say: Callable[[str], None] = lambda text: None,
    only: Collection[str] | None = None,
) -> Compacted:
    """As `compact`, by the executors of `spark`, which must see the folder under the same path. Raises the same, and EsaultError for what Spark
    raises. Waits while another process compacts the table."""
    disk = LocalDisk()
    log = table_log(path)
    with alone(log.table, wait=True), writing(spark):
        clear(log.table, PREFIX, disk)
        before = log.files()
        if log.state.primary_key:
            _merge(spark, log, disk, say)
            after = log.files()
            gone = sum(part.rows for part in before) - sum(part.rows for part in after)
            return Compacted(len(before), len(after), gone)
        chosen = [part for part in before if only is None or part.path in only]
        groups = list(_groups(log, chosen, target_bytes))
        if groups:
            count = sum(len(group.parts) for group in groups)
            say(f"compacting {counted(count, 'part')} of {log.table} into {len(groups)}, by Spark ...")
        duplicates = _rewrite_all(spark, log, disk, groups, drop_duplicates)
        return Compacted(len(before), len(log.files()), duplicates)


def _groups(log: CommitLog, parts: Sequence[Part], target_bytes: int) -> Iterator[_Group]:
    """Neighbours in one folder. A part keeps its own columns, of which some were added later, or widened."""
    alike: dict[tuple[str, Schema], list[Part]] = {}
    for part in parts:
        small = part.bytes <= target_bytes // 2
        evolved = log.state.evolved and small
        schema = part_schema(os.path.join(log.table, part.path), log.state.schema) if evolved else log.state.schema
        alike.setdefault((os.path.dirname(part.path), schema), []).append(part)
    for (_, schema), same in alike.items():
        yield from (_Group(tuple(group), schema) for group in neighbours(same, target_bytes, _ANY_ROWS))


def _rewrite_all(
    spark: SparkSession, log: CommitLog, disk: LocalDisk, groups: Sequence[_Group], drop_duplicates: bool
) -> int:
    """Rewrite each group and commit it; return how many repetitions went. After an error no further one is begun."""
    if not groups:
        return 0
    commits, failed = threading.Lock(), threading.Event()

    def rewrite(group: _Group) -> int:
        if failed.is_set():  # the thread is faster than the one that waits here
            return 0
        try:
            made = _staged(spark, log.table, disk, group, drop_duplicates)
        except BaseException:
            failed.set()
            raise
        with commits:
            try:
                replace_parts(log, disk, group.parts, made)
            except Conflict:
                return 0  # a new run replaces the table: it is no use any more
        return sum(part.rows for part in group.parts) - sum(part.rows for part in made)

    at_a_time = min(len(groups), _MOST_AT_A_TIME, cores(spark))
    with ThreadPoolExecutor(at_a_time, "compaction") as pool:
        try:
            futures = [pool.submit(partial(rewrite, group)) for group in groups]
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            pool.shutdown(cancel_futures=True)
    return sum(future.result() for future in futures if not future.cancelled())


def _staged(spark: SparkSession, table: str, disk: LocalDisk, group: _Group, drop_duplicates: bool) -> list[Part]:
    """The new part, written by one task; SinkError where the rows are not those that the log counts."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    names = [part.path for part in group.parts]
    read, kept = Observation(), Observation()
    count = f.count(f.lit(1)).alias("rows")
    try:
        rows = parts_with_places(spark, table, names, group.schema, False).coalesce(1).observe(read, count)
        if drop_duplicates:
            rows = once(rows, (), ())
        columns = [quoted(column.name) for column in group.schema]
        order = [name for name in ("_time", "__part", "__row") if name in rows.columns]
        rows = rows.sortWithinPartitions(*order).select(*columns).observe(kept, count)
        made = stage(rows, table, disk, PREFIX, within=os.path.dirname(names[0]))
        found = {"read": int(read.get["rows"]), "kept": int(kept.get["rows"])}
    except failures() as error:
        raise EsaultError(f"compaction of {table}: {said(error)}") from None
    _check(table, disk, made, found, sum(part.rows for part in group.parts))
    return made


def _check(table: str, disk: LocalDisk, made: Sequence[Part], found: dict[str, int], expected: int) -> None:
    """SinkError, and the new parts are removed, where other rows were read than the log counts, or others written than were kept."""
    written = sum(part.rows for part in made)
    if found["read"] == expected and found["kept"] == written:
        return
    remove_parts(table, [part.path for part in made], disk)
    if found["read"] != expected:
        raise SinkError(f"parts of {table} have {found['read']} rows, and the log says {expected}; it is not compacted")
    raise SinkError(
        f"executors wrote {found['kept']} rows of {table}, and {written} are here: they must see the folder under the same path; it is "
        "not compacted"
    )


def _merge(spark: SparkSession, log: CommitLog, disk: LocalDisk, say: Callable[[str], None]) -> None:
    """All parts of a table with a primary key: of each key the newest row, and deletions that are younger than a week."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    state = log.refresh()
    assert state.files is not None
    parts = list(state.files.values())
    if all(part.base for part in parts):
        return
    say(f"compacting {counted(len(parts), 'part')} of {log.table}, by Spark ...")
    keys = [quoted(name) for name in state.primary_key]
    pieces = -(-sum(part.rows for part in parts) // TARGET_ROWS)
    try:
        rows = read_parts(spark, log.table, list(state.files), state.schema, state.evolved)
        kept = Observation()
        read = rows.count()
        # by ranges of the key, so that all rows of one are in one task
        rows = rows.coalesce(1) if pieces < 2 else rows.repartitionByRange(pieces, *(f.col(key) for key in keys))
        young = f.col("_updated") > f.timestamp_micros(f.lit(round((time.time() - SAFE_AGE) * 1e6)))
        newest = newest_rows(rows, state.primary_key).where(~f.col("_deleted") | young)
        newest = newest.sortWithinPartitions(*keys).observe(kept, f.count(f.lit(1)).alias("rows"))
        made = stage(newest, log.table, disk, PREFIX)
        found = {"read": read, "kept": int(kept.get["rows"])}
    except failures() as error:
        raise EsaultError(f"compaction of {log.table}: {said(error)}") from None
    _check(log.table, disk, made, found, sum(part.rows for part in parts))
    with contextlib.suppress(Conflict):  # a new run replaces the table
        replace_parts(log, disk, parts, [replace(part, base=True) for part in made])
