"""The job that makes one declared table: reads what is new, has Spark make rows of it, commits them.

Rows and what was read for them are shown by one log entry (`derived`), so a job that is killed has done its step or
nothing. A table with a quarantine has two logs: that one is committed first, and a step that was killed in between is
ended exactly where it has gone. A table by key is rewritten where its files hold keys that have changed.

It is one module of over 300 lines: reading, staging and committing of a step share one table's state and locks.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from esault.counters import counted
from esault.errors import EsaultError, SinkError, UsageError
from esault.sinks.landing.entry import Input, Part
from esault.sinks.landing.schema import Schema
from esault.sinks.landing.state import TableState
from esault.spark.columns import stored
from esault.spark.derived import DerivedTable
from esault.spark.failure import failures, said
from esault.spark.reading import noted, read_of
from esault.spark.rows import folders_of
from esault.spark.staging import writing
from esault.spark.table import quoted, read_parts, spark_schema
from esault.spark.tables.contract import check_contract, evolved
from esault.spark.tables.declared import Declared
from esault.spark.tables.delta_log import publish
from esault.spark.tables.expectations import REASON, Checked, Expectations
from esault.spark.tables.keyed import KeyedRows
from esault.spark.tables.rewriting import conformed, outside
from esault.spark.tables.update import Rows, Update, next_update, resumed

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Observation, SparkSession

__all__ = ["TableStep", "Updated"]

#: folders that a table may be divided into
_MOST_FOLDERS = 1000
Say = Callable[[str], None]


@dataclass(frozen=True)
class Updated:
    """The outcome of one update of a table."""

    name: str
    read: int
    #: rows of the table that were written; of one by key also those that stand in the same files
    written: int
    rows: int
    why: str | None
    #: expectation -> (action, rows that it did not hold for)
    expectations: Mapping[str, tuple[str, int]]
    checked: int
    quarantined: int
    schema: Schema
    seconds: float
    version: int


class TableStep:
    """The step of table `name` of `declared`. `folders`: those of all stored tables by name; `into`: the pipeline's."""

    def __init__(self, name: str, declared: Mapping[str, Declared], folders: Mapping[str, str], into: str) -> None:
        self._one = declared[name]
        self._declared = declared
        self.table_name = name
        self.name = f"table:{name}"
        self.path = folders[name]
        self.table = DerivedTable(self.path, self._one.retention)
        self.quarantine = DerivedTable(os.path.join(into, "quarantine", name))
        self._gone = DerivedTable(os.path.join(into, "deleted", name))
        self.beside: Sequence[str] = (self.quarantine.path, self._gone.path)
        self._keyed = KeyedRows(self._one, self.path, self._gone)
        self.expectations = Expectations(name, self._one.expectations or {})
        reads, stream = _stored_reads(self._one, declared)
        self.reads_tables: Sequence[str] = reads
        self._stream = stream
        self._folders = {read: folders[read] for read in reads}
        self.reads = ", ".join(f"{read} (new rows)" if read in stream else read for read in reads)
        self.writes = os.path.relpath(self.path, into)
        self.comment = self._one.comment
        self.quarantines = self.expectations.quarantines
        # now: what the functions do to the module when they are called is no other code
        self._rules = self._marked()

    @property
    def declared(self) -> Declared:
        """The declaration."""
        return self._one

    def _marked(self) -> str:
        views = sorted(name for name in self._one_and_views() if name != self.table_name)
        return "-".join([self._one.rules, *(self._declared[view].rules for view in views)])

    def _one_and_views(self) -> set[str]:
        found, todo = set(), [self.table_name]
        while todo:
            name = todo.pop()
            found.add(name)
            todo += [
                read
                for read in self._declared[name].reads.values()
                if read in self._declared and not self._declared[read].stored and read not in found
            ]
        return found

    def next(self, full: bool = False) -> tuple[Update | None, bool]:
        """Return the update it would make, None: it is up to date; and whether that ends a step that was killed. SinkError."""
        done = self.table.state().inputs
        if self.expectations.quarantines and not full:
            begun = self.quarantine.state().inputs
            if begun and begun != done:
                update = resumed(self._folders, self._stream, self._rules, done, begun)
                if update is not None:
                    return update, True
                full = bool(done)
        return next_update(self._folders, self._stream, self._rules, done, full), False

    def todo(self) -> str:
        """Say in words what it would do now."""
        try:
            update, _ = self.next()
        except SinkError:
            return "to be made"
        if update is None:
            return "up to date"
        which = "what is new" if update.why is None else f"all, since {update.why}"
        return f"{counted(update.count, 'row')} in {counted(update.parts, 'part')}: {which}"

    def run(self, spark: Callable[[], SparkSession], say: Say, full: bool = False) -> Updated | None:
        """Do one update; None when there was nothing to do. `spark` is called when it is needed.

        SinkError, UsageError; EsaultError for what Spark raises and for rows that must not come. What the table's
        function raises is passed on.
        """
        with self._locked():
            update, interrupted = self.next(full)
            self._publish()  # what a compaction, or a kill, left out: before files of before may go
            made = None
            if update is not None:
                said_why = "that are new" if update.why is None else f"all of them ({update.why})"
                say(f"{self.name}: {counted(update.count, 'row')} in {counted(update.parts, 'part')}, {said_why}")
                made = self._update(spark(), update, interrupted)
                self._publish()
            return made

    def backfill(self, spark: Callable[[], SparkSession], say: Say, where: str) -> Updated:
        """Make the rows for which `where` (SQL) is true anew, of all that was read so far; others stay as they are.

        UsageError for a table that is none of rows which come one after the other.
        """
        if not self._stream or self._one.keys:
            raise UsageError(
                f"{self.table_name} is no table of rows that are added, so none of its ranges can be made anew alone: "
                f"esault analyze --full --job {self.name}"
            )
        with self._locked():
            done = self.table.state().inputs
            if not done:
                raise UsageError(
                    f"table {self.table_name} has not been made yet: run esault analyze without --backfill"
                )
            if self._further_in_its_quarantine(done):
                raise UsageError(
                    f"an update of table {self.table_name} was killed when its quarantine was written and the table was not: run "
                    f"esault analyze --job {self.name}, and then again with --backfill"
                )
            update = next_update(self._folders, self._stream, self._rules, done, True, done)
            assert update is not None  # all of it
            if noted(update.inputs, "rules") != noted(done, "rules"):
                say(f"{self.name}: its code has changed; outside of the range rows of the old one stay")
            number = noted(done, "backfill")
            inputs = (*update.inputs, Input("backfill", 1 if number is None else number.version + 1))
            say(f"{self.name}: rows where {where}, of {update.count:,}")
            made = self._update(spark(), replace(update, inputs=inputs, why=None), False, where)
            self._publish()
            return made

    def _further_in_its_quarantine(self, done: tuple[Input, ...]) -> bool:
        """Return whether rows of an update stand in the quarantine that is not in the table."""
        begun = self.quarantine.state().inputs if self.expectations.quarantines else ()
        return bool(begun) and any(read_of(begun, name) != read_of(done, name) for name in self._stream)

    def _publish(self) -> None:
        if self._one.format == "delta" and self.table.state().version >= 0:
            publish(self.path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if self.expectations.quarantines or self.quarantine.state().parts:
                stack.enter_context(self.quarantine.locked())
            if self._one.apply_as_deletes:
                stack.enter_context(self._gone.locked())
            stack.enter_context(self.table.locked())
            yield

    def _update(self, spark: SparkSession, update: Update, interrupted: bool, where: str | None = None) -> Updated:
        began = time.monotonic()
        before = self.table.state()
        with writing(spark), contextlib.ExitStack() as stack:
            try:
                frame, schema = self._made(spark, update.rows)
                return self._commit(spark, update, frame, schema, before, interrupted, where, began, stack)
            except failures() as error:
                raise EsaultError(f"{self.name}: {said(error)}") from None

    def _made(self, spark: SparkSession, rows: Mapping[str, Rows]) -> tuple[DataFrame, Schema]:
        """The function's rows, of the types that tables have."""

        def read(name: str) -> DataFrame:
            one = rows[name]
            return read_parts(spark, one.folder, one.names, one.schema, one.evolved)

        return self._called(read)

    def _called(self, read: Callable[[str], DataFrame]) -> tuple[DataFrame, Schema]:
        from pyspark.sql import DataFrame

        def called(name: str) -> Any:
            if name not in self._declared or (self._declared[name].stored and name != self.table_name):
                return read(name)
            one = self._declared[name]
            made = one.function(**{p: called(table) for p, table in one.reads.items()})
            if not isinstance(made, DataFrame):
                raise UsageError(
                    f"{one.kind} {name}: its function must return a DataFrame of Spark, got {made!r} of type "
                    f"{type(made).__name__}"
                )
            return made

        made = called(self.table_name)
        check_contract(self.table_name, self._one.schema, made.schema)
        return stored(self.table_name, made)

    def check(self, spark: SparkSession, schemas: Mapping[str, Schema]) -> Schema:
        """The columns that it would have, of inputs with these; no row is read. UsageError for what cannot be."""
        frame, schema = self._called(lambda name: spark.createDataFrame([], spark_schema(schemas[name])))
        if self.expectations.quarantines:
            self.expectations.decided(frame)
        frame.agg(*self.expectations.counts(frame))
        if self._one.keys:
            schema = self._keyed.columns(frame, schema)
        state = self.table.state()
        update, _ = self.next() if state.inputs else (None, False)
        if state.inputs and self._stream and (update is None or update.why is None):
            schema = evolved(self.table_name, state.schema, schema, self._one.on_schema_change)
        self._check_folders(schema)
        return schema

    def _check_folders(self, schema: Schema) -> dict[str, Any]:
        return folders_of(self.table_name, schema, self._one.partition_cols)

    def _commit(
        self,
        spark: SparkSession,
        update: Update,
        frame: DataFrame,
        schema: Schema,
        before: TableState,
        interrupted: bool,
        where: str | None,
        began: float,
        stack: contextlib.ExitStack,
    ) -> Updated:
        from pyspark.sql import Observation

        whole = update.why is not None
        if where is not None:
            frame = frame.where(where)
        put_aside: list[Part] = []
        removed: list[str] = []
        if not whole and self._stream and not self._one.keys:
            schema = evolved(self.table_name, before.schema, schema, self._one.on_schema_change)
            frame = conformed(frame, schema)
        if self.expectations.quarantines:
            frame = self.expectations.decided(frame)
        if self._one.keys or self.expectations.quarantines:
            frame.persist()  # more than one query reads it, and must find the same
            stack.callback(frame.unpersist)
        counts = self.expectations.counts(frame)
        if self._one.keys:
            checked = self.expectations.checked(frame.agg(*counts).first().asDict())
            rows, schema, removed = self._keyed.update(spark, self.expectations.kept(frame), schema, update, before)
            parts = self._staged(self._divided(rows, schema), schema)
        else:
            seen = Observation()
            # behind the shuffle: what a stage before it does again, Spark before 4.3 counts again
            rows = self.expectations.kept(self._divided(frame, schema).observe(seen, *counts))
            if where is not None:
                old, removed = outside(spark, self.table.path, before, where, schema)
                rows = rows.unionByName(self._divided(old, schema))
            parts = self._staged(rows, schema)
            try:
                checked = self.expectations.checked(self._observed(seen, frame, counts))
            except BaseException:
                self.table.discard(parts)
                raise
        if self.expectations.quarantines and not interrupted:
            put_aside = self._put_aside(spark, frame, schema, update, checked, whole, where)
        elif whole and (aside := self.quarantine.state()).parts and not self.expectations.quarantines:
            # of before: its rows are in the table now, or in neither
            self.quarantine.commit([], aside.schema, update.inputs, aside, True)
        self.table.commit(parts, schema, update.inputs, before, whole, removed)
        state = self.table.state()
        assert state.files is not None
        return Updated(
            name=self.table_name,
            read=update.count,
            written=sum(part.rows for part in parts),
            rows=sum(part.rows for part in state.files.values()),
            why=update.why,
            expectations=self.expectations.actions(checked.failed),
            checked=checked.rows,
            quarantined=sum(part.rows for part in put_aside) if where is None else 0,
            schema=state.schema,
            seconds=time.monotonic() - began,
            version=state.version,
        )

    @staticmethod
    def _observed(seen: Observation, frame: DataFrame, counts: Sequence[SparkColumn]) -> Mapping[str, Any]:
        """Return the counts of rows that were written. Where Spark knows before it reads any that none stays, it observes none."""
        counted: dict[str, Any]
        try:
            counted = seen.get
        except failures():
            counted = frame.agg(*counts).first().asDict()
        return counted

    def _divided(self, rows: DataFrame, schema: Schema) -> DataFrame:
        """Rows of a folder in one task: else each task would write a file into each folder."""
        folders = self._check_folders(schema)
        return rows.repartition(*folders.values()) if folders else rows

    def _staged(self, rows: DataFrame, schema: Schema) -> list[Part]:
        from pyspark.sql import functions as f

        folders = self._check_folders(schema)
        columns = [f.col(quoted(column.name)) for column in schema]
        values = [value.alias(f"_folder{i}") for i, value in enumerate(folders.values())]
        parts = self.table.stage(rows.select(*columns, *values), list(folders))
        if len({os.path.dirname(part.path) for part in parts}) > _MOST_FOLDERS:
            self.table.discard(parts)
            raise UsageError(
                f"table {self.table_name}: partition_cols {', '.join(folders)} have more than {_MOST_FOLDERS:,} values, "
                "each of which would be a folder of small files; choose columns with fewer"
            )
        return parts

    def _put_aside(
        self,
        spark: SparkSession,
        frame: DataFrame,
        schema: Schema,
        update: Update,
        checked: Checked,
        whole: bool,
        where: str | None,
    ) -> list[Part]:
        """Commit the quarantine's rows."""
        from pyspark.sql import functions as f

        before = self.quarantine.state()
        aside = self.expectations.aside(frame)
        columns: Schema = (*schema, REASON) if not self._one.keys else stored(self.table_name, aside)[1]
        columns = evolved(self.table_name, before.schema, columns, "append_new_columns") if not whole else columns
        rows = None
        removed: list[str] = []
        if self.expectations.put_aside(checked):
            rows = conformed(aside, columns)
        if where is not None and before.parts:
            old, removed = outside(spark, self.quarantine.path, before, where, columns)
            rows = old if rows is None else rows.unionByName(old)
        parts = (
            self.quarantine.stage(rows.select(*(f.col(quoted(column.name)) for column in columns)))
            if rows is not None
            else []
        )
        self.quarantine.commit(parts, columns, update.inputs, before, whole, removed)
        return parts


def _stored_reads(one: Declared, declared: Mapping[str, Declared]) -> tuple[list[str], tuple[str, ...]]:
    """The tables whose rows it reads, through views; those of which the new ones alone. UsageError where that is both."""
    reads: dict[str, bool] = {}

    def read(table: Declared, streams: Sequence[str]) -> None:
        for name in dict.fromkeys(table.reads.values()):
            new = name in streams
            if name in declared and not declared[name].stored:
                view = declared[name]
                read(view, list(view.reads.values())[:1] if new else ())
            elif reads.setdefault(name, new) != new:
                raise UsageError(
                    f"table {one.name} reads {name} whole and as a stream, through a view; take one of them"
                )

    read(one, one.stream)
    return list(reads), tuple(name for name, new in reads.items() if new)
