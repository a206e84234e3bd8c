"""The job that makes a clean table of a landed one: each row once, what is wrong with it put aside, partitioned.

Rows go to the quarantine, with the reason and as JSON, when a value is null where none may be, when a whole number is
none of the floats that its column holds by now, and when the topology file's `expectations` say so; a part that cannot
be read goes there as a whole. Nothing is dropped but repetitions: rows with the same `_run` and `_id`.

A step commits the quarantine first and the clean table second. Where it was killed in between, the next one goes
exactly as far as the quarantine has gone, and leaves that as it is.

It is one module of over 300 lines: reading, damage and staging of a step share two tables and their locks.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from esault.counters import counted
from esault.errors import EsaultError, SinkError, UsageError
from esault.object_store.stored_object import is_url
from esault.sinks.landing import table_log
from esault.sinks.landing.entry import Part
from esault.sinks.landing.part_file import part_file
from esault.spark.cluster_compaction import compact_by_spark
from esault.spark.compact import compact
from esault.spark.derived import DerivedTable
from esault.spark.failure import failures, said
from esault.spark.reading import Reading, read_next, read_of
from esault.spark.repeats import each_once
from esault.spark.rows import (
    DATE,
    QUARANTINE,
    REASON,
    aside,
    check_columns,
    check_folders,
    folders_of,
    parts_with_places,
    reason,
)
from esault.spark.staging import writing
from esault.spark.table import newest_rows, quoted, read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Clean", "Cleaned"]

#: small parts from which putting them together first is faster than reading them with Spark
_SMALL = 32
_SMALL_BYTES = 2**20
#: bytes of parts in their order that are read together, and into how many such groups all are divided at most
_TOGETHER, _GROUPS = 256 * 2**20, 32
Say = Callable[[str], None]


@dataclass(frozen=True)
class Cleaned:
    """The outcome of one step."""

    read: int
    kept: int
    repeats: int
    quarantined: int
    why: str | None
    #: it ended what a killed one had begun: there may be more to do
    resumed: bool = False

    def followed_by(self, more: Cleaned) -> Cleaned:
        """Both steps as one."""
        return Cleaned(
            self.read + more.read,
            self.kept + more.kept,
            self.repeats + more.repeats,
            self.quarantined + more.quarantined,
            self.why,
        )

    def said(self, table: str, seconds: float) -> str:
        """Say it in words, of a step to `table` that took so long."""
        text = f"clean {table}: {self.kept:,} rows kept"
        if self.repeats:
            text += f", {self.repeats:,} repetitions dropped"
        if self.quarantined:
            text += f", {self.quarantined:,} put into the quarantine"
        return f"{text} ({seconds:.1f} s)"


class Clean:
    """Makes the clean table in `clean` and the quarantine in `quarantine` of the landed table in `source`.

    `expectations`: conditions in SQL that a row must fulfil, by what a row that does not is said to lack.
    `partition_by`: columns, or "date" (the day of `_time`, UTC), whose values are folders.
    """

    def __init__(
        self,
        name: str,
        source: str,
        clean: str,
        quarantine: str,
        expectations: Mapping[str, str] | None = None,
        partition_by: Sequence[str] | None = None,
    ) -> None:
        self.name, self.source = name, source
        self.clean, self.quarantine = DerivedTable(clean), DerivedTable(quarantine)
        self._expectations = dict(expectations or {})
        self._partition_by = None if partition_by is None else tuple(partition_by)
        said = repr((sorted(self._expectations.items()), self._partition_by))
        self._rules = f"{zlib.crc32(said.encode()):08x}"

    def next(self, full: bool = False) -> Reading | None:
        """Return what it would read; None: it is up to date. SinkError when a table cannot be read."""
        log = table_log(self.source)
        done = self.clean.state().inputs
        put_aside = self.quarantine.state().inputs
        mine, other = read_of(done, self.name), read_of(put_aside, self.name)
        if mine is not None and other is not None and other.version > mine.version and not full:
            try:
                begun = read_next(self.name, log, done, self._rules, other.version)
            except SinkError:
                begun = None  # that version is no longer kept
            if begun is not None and self.gone_to(begun):
                return begun
        return read_next(self.name, log, done, self._rules, full=full)

    def gone_to(self, reading: Reading) -> bool:
        """Return whether the quarantine has gone as far as this already, in a step that was killed, whatever it was asked."""
        return reading.why is None and self.quarantine.state().inputs[:2] == reading.inputs[:2]

    def run(
        self, spark: Callable[[], SparkSession], say: Say, full: bool = False, cluster: bool = False
    ) -> Cleaned | None:
        """Do one step; None when there was nothing to do. `spark` is called when it is needed, `cluster` says that it has executors.

        SinkError, UsageError; EsaultError for what Spark raises.
        """
        with self.quarantine.locked(), self.clean.locked():
            reading = self.next(full)
            if reading is None:
                return None
            repeats = 0
            interrupted = self.gone_to(reading)
            if not interrupted:
                repeats = self._put_together(reading, spark() if cluster else None, say)
                reading = self.next(full)
                assert reading is not None  # it has rows, however they are cut
            try:
                return self._step(reading, spark, say, repeats, interrupted)
            except _Gone as gone:
                if reading.why is not None:
                    raise SinkError(str(gone)) from None
                say(f"{gone}; all of {self.name} is read again")
                reading = self.next(full=True)
                assert reading is not None
                return self._step(replace(reading, why="parts are gone"), spark, say, repeats, False)

    def _put_together(self, reading: Reading, spark: SparkSession | None, say: Say) -> int:
        """Many small parts as few large ones; how many repetitions went with it."""
        small = [part.path for part in reading.parts if part.bytes < _SMALL_BYTES]
        if len(small) < _SMALL or is_url(self.source):
            return 0
        try:
            rewrite = compact if spark is None else partial(compact_by_spark, spark)
            return rewrite(self.source, say=say, only=set(small)).duplicates
        except EsaultError as error:
            say(f"{self.source} stays in {len(small)} small parts, which is slow: {error}")
            return 0

    def _step(
        self, reading: Reading, spark: Callable[[], SparkSession], say: Say, repeats: int, interrupted: bool
    ) -> Cleaned:
        before, put_before = self.clean.state(), self.quarantine.state()
        whole = reading.why is not None
        say(
            f"clean {self.name}: {counted(reading.rows, 'row')} in {counted(len(reading.parts), 'part')}"
            + (f", all of them ({reading.why})" if whole else " that are new")
        )
        damaged: dict[str, str] = {}
        good = self._readable(reading, damaged)
        parts, bad, put_aside = self._tried(spark, reading, good, damaged, interrupted) if good else ([], 0, [])
        lost = [part for part in reading.parts if part.path in damaged]
        if not interrupted:
            if lost:
                put_aside = [*put_aside, self._whole_parts(lost, damaged)]
            self.quarantine.commit(put_aside, QUARANTINE, reading.inputs, put_before, whole)
        self.clean.commit(parts, reading.schema, reading.inputs, before, whole)
        kept, gone = sum(part.rows for part in parts), sum(part.rows for part in lost)
        return Cleaned(
            reading.rows, kept, repeats + reading.rows - kept - bad - gone, bad + gone, reading.why, interrupted
        )

    def _tried(
        self,
        spark: Callable[[], SparkSession],
        reading: Reading,
        good: list[Part],
        damaged: dict[str, str],
        interrupted: bool,
    ) -> tuple[list[Part], int, list[Part]]:
        """As `_write`; parts at whose rows Spark fails, and only they, go to `damaged`."""
        running = spark()
        with writing(running):
            try:
                return self._write(running, reading, good, interrupted)
            except _Unreadable as error:
                found = self._damaged_inside(good)
                if not found:
                    raise EsaultError(f"clean {self.name}: {error}") from None
            damaged.update(found)
            left = [part for part in good if part.path not in found]
            return self._write(running, reading, left, interrupted) if left else ([], 0, [])

    def _readable(self, reading: Reading, damaged: dict[str, str]) -> list[Part]:
        """The parts whose footers can be read and have as many rows as the log says; the others go to `damaged`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        good = []
        for part in reading.parts:
            path = os.path.join(self.source, part.path)
            try:
                with part_file(path) as file:
                    rows = pq.read_metadata(file).num_rows
            except FileNotFoundError:
                raise _Gone(f"{path} is gone, and the table's log names it") from None
            except (OSError, pa.ArrowException) as error:
                damaged[part.path] = f"the part cannot be read: {error}"
                continue
            if rows == part.rows:
                good.append(part)
            else:
                damaged[part.path] = f"the part has {rows} rows, and the log says {part.rows}"
        return good

    def _damaged_inside(self, parts: Sequence[Part]) -> dict[str, str]:
        """Return the damage of parts whose footers are right."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        found = {}
        for part in parts:
            try:
                with part_file(os.path.join(self.source, part.path)) as source, pq.ParquetFile(source) as file:
                    for _ in file.iter_batches():
                        pass
            except (OSError, pa.ArrowException) as error:
                found[part.path] = f"the part cannot be read: {error}"
        return found

    def _whole_parts(self, parts: Sequence[Part], why: Mapping[str, str]) -> Part:
        """The quarantine's rows for parts of which not a row can be read."""
        import pyarrow as pa

        from esault.sinks.landing.arrow import arrow_schema, parquet_bytes

        schema = arrow_schema(QUARANTINE)
        rows = [{"reason": why[part.path], "part": part.path, "rows": part.rows} for part in parts]
        return self.quarantine.put(memoryview(parquet_bytes(pa.Table.from_pylist(rows, schema))), len(rows))

    def _write(
        self, spark: SparkSession, reading: Reading, good: Sequence[Part], interrupted: bool
    ) -> tuple[list[Part], int, list[Part]]:
        """Stage the step: the clean table's parts, how many rows are bad, the quarantine's parts for them."""
        from pyspark.errors import AnalysisException

        try:
            with contextlib.ExitStack() as stack:
                return self._staged(spark, reading, good, interrupted, stack)
        except AnalysisException as error:
            raise UsageError(f"clean {self.name}: {said(error)}") from None
        except failures() as error:
            raise _Unreadable(said(error)) from None

    def _staged(
        self,
        spark: SparkSession,
        reading: Reading,
        good: Sequence[Part],
        interrupted: bool,
        stack: contextlib.ExitStack,
    ) -> tuple[list[Part], int, list[Part]]:
        """As `_write`; what is kept of rows on the way goes with `stack`."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        check_columns(self.name, reading.schema)
        rows = self._read(spark, reading, good)
        if reading.primary_key:
            rows = newest_rows(rows, reading.primary_key).where("NOT _deleted")
        elif not reading.distinct:
            before = [] if reading.why is not None else [t for t in (self.clean, self.quarantine) if t.state().parts]
            known = [read_table(spark, table.path, duplicates=True) for table in before]
            known_rows = sum(part.rows for table in before for part in table_log(table.path).files())
            rows = stack.enter_context(each_once(rows, known, reading.runs, reading.rows, known_rows))
        marked = rows.withColumn(REASON, reason(self.name, rows, reading.schema, self._expectations))
        folders = folders_of(self.name, reading.schema, self._partition_by)
        fine = marked
        if folders.keys() - {DATE}:
            check_folders(self.name, marked, folders)
            fine = marked.repartition(*folders.values())  # else each task would write a file into each folder
        seen = Observation()
        fine = fine.observe(seen, f.count(REASON).alias("bad")).where(f.col(REASON).isNull())
        columns = [f.col(quoted(column.name)) for column in reading.schema]
        values = [value.alias(f"_folder{i}") for i, value in enumerate(folders.values())]
        parts = self.clean.stage(fine.select(*columns, *values), list(folders))
        bad = int(seen.get["bad"])
        put_aside = self.quarantine.stage(aside(marked, reading.schema)) if bad and not interrupted else []
        return parts, bad, put_aside

    def _read(self, spark: SparkSession, reading: Reading, good: Sequence[Part]) -> DataFrame:
        """The rows of parts, those that came one after the other in one task: so it meets few days, each of which is a file."""
        size = max(_TOGETHER, sum(part.bytes for part in good) // _GROUPS)
        groups: list[list[str]] = [[]]
        taken = 0
        for part in good:
            if taken >= size:
                groups.append([])
                taken = 0
            groups[-1].append(part.path)
            taken += part.bytes
        frames = [parts_with_places(spark, self.source, names, reading.schema, reading.evolved) for names in groups]
        return reduce(lambda one, other: one.unionByName(other), frames)


class _Gone(Exception):
    """A part that the log names is not there."""


class _Unreadable(Exception):
    """Spark failed at the rows themselves."""
