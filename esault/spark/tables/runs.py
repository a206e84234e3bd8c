"""Runs of a pipeline with its tables: written down, with lineage, tried again when they fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from esault.errors import EsaultError, UsageError
from esault.sinks.landing import table_log
from esault.sinks.landing.schema import Schema
from esault.spark.failure import failures
from esault.spark.jobs import Busy, NotLanded, Outcome, Rules, Watcher
from esault.spark.pipeline import Pipeline
from esault.spark.report import ReportTable
from esault.spark.results import Results
from esault.spark.session import require_pyspark
from esault.spark.tables.declared import Tables
from esault.spark.tables.expectations import ExpectationFailed
from esault.spark.tables.graph import Node, drawn, mermaid, nodes, ordered
from esault.spark.tables.history import History, history_of, quality_of
from esault.spark.tables.lineage import Lineage
from esault.spark.tables.step import TableStep, Updated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["Runs", "checked", "steps_of"]


#: seconds before the first time that a run is tried again; twice as long each time
_FIRST_WAIT = 1.0
#: what a moment does not change
_FINAL = (UsageError, ExpectationFailed, NotLanded)


class _Watchers(Watcher):
    def __init__(self, history: History, lineage: Lineage) -> None:
        self._all: tuple[Watcher, ...] = (history, lineage)

    def ended(self, job: str, outcome: Any | None, seconds: float, error: BaseException | None) -> None:
        for one in self._all:
            one.ended(job, outcome, seconds, error)


class Runs:
    """The runs of pipeline `name` over the landed tables `landed` (folders by name), which writes into folder `into`.

    `tables`: what it declares, if it does; the rest as for `Pipeline`. UsageError for what cannot be.
    """

    def __init__(
        self,
        name: str,
        landed: Mapping[str, str],
        into: str,
        rules: Rules | None = None,
        tables: Tables | None = None,
        **options: Any,
    ) -> None:
        self._landed = dict(landed)
        self._tables = tables or Tables(landed)
        self._say: Callable[[str], None] = options.get("say", lambda text: None)
        self.steps = steps_of(self._tables, into)
        folders = {step.table_name: step.path for step in self.steps}
        folders |= {source: os.path.join(into, "clean", source) for source in landed}
        jobs: dict[str, tuple[list[str], list[str]]] = {
            f"clean:{source}": ([folder], [folders[source]]) for source, folder in landed.items()
        }
        for step in self.steps:
            aside = [step.quarantine.path] if step.expectations.quarantines else []
            jobs[step.name] = ([folders[read] for read in step.reads_tables], [step.path, *aside])
        self._history = History(into)
        lineage, results = Lineage(name, into, jobs), Results(os.path.join(into, "reports"))
        self._watchers = _Watchers(self._history, lineage)
        self.pipeline = Pipeline(landed, into, rules, steps=self.steps, watcher=self._watchers, **options)
        lineage.add("reports", list(folders.values()), lambda: list(results.folders().values()))

    def run(
        self,
        job: str | None = None,
        full: bool = False,
        retries: int = 0,
        wait: Callable[[float], object] = lambda seconds: None,
    ) -> Outcome:
        """As `Pipeline.run`. What fails is tried again `retries` times, after `wait` was called with the seconds to wait:
        jobs that are done stay so. Not tried again: wrong use, rows that must not come, and rows that have not landed."""
        tried, done = 0, set[str]()
        while True:
            self._history.begin()
            try:
                outcome = self.pipeline.run(job, full, done)
            except BaseException as error:
                if not isinstance(error, (Busy, NotLanded)):  # else there was no run
                    self._history.end(error)
                again = isinstance(error, EsaultError) and not isinstance(error, _FINAL)
                if not again or tried >= retries:
                    raise
                seconds = _FIRST_WAIT * 2**tried
                tried += 1
                self._say(f"{error}\ntried again in {seconds:.0f} s ({tried} of {retries})")
                wait(seconds)
                continue
            self._history.end()
            return outcome

    def backfill(self, table: str, where: str) -> Updated:
        """Make the rows of `table` for which `where` (SQL) is true anew. As `TableStep.backfill`; UsageError: no such table."""
        steps = {step.table_name: step for step in self.steps}
        if table not in steps:
            raise UsageError(f"there is no table {table!r}; there are: {', '.join(steps) or 'none: declare one'}")
        self._history.begin()
        try:
            with self.pipeline.spark() as spark:
                done = steps[table].backfill(spark, self._say, where)
                self._watchers.ended(f"table:{table}", done, done.seconds, None)
                self.pipeline.register(spark)
        except BaseException as error:
            self._history.end(error)
            raise
        self._history.end()
        return done

    def dry_run(self) -> ReportTable:
        """The columns that each table would have; nothing is read or written. UsageError for what cannot be."""
        require_pyspark()
        with self.pipeline.spark() as spark:
            try:
                schemas = checked(spark(), self.steps, self._landed)
            except failures() as error:
                raise UsageError(f"dry run: {error}") from None
        rows: list[tuple[Any, ...]] = []
        for step in self.steps:
            said = (step.table_name, step.declared.kind.replace("_", " "), step.reads)
            for i, column in enumerate(schemas[step.table_name]):
                rows.append((*(said if i == 0 else ("", "", "")), column.name, column.type))
        return ReportTable("tables", ("table", "kind", "reads", "column", "type"), ("text",) * 5, tuple(rows))

    def graph(self) -> list[Node]:
        """The tables, and what they read."""
        return nodes(self._tables)

    def draw(self, path: str) -> None:
        """Draw them: SVG, or Mermaid into a file with another name. Raises UsageError: it cannot be written."""
        text = drawn(self.graph()) if path.endswith(".svg") else mermaid(self.graph()) + "\n"
        try:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None

    def history(self) -> ReportTable:
        """The last runs, the newest first."""
        return history_of(self.pipeline.into)

    def quality(self) -> ReportTable:
        """The findings of expectations, over all runs."""
        return quality_of(self.pipeline.into)


def steps_of(tables: Tables, into: str) -> list[TableStep]:
    """A step for each table that has rows of its own; they write into `into`/tables. UsageError for what cannot be."""
    into = os.path.abspath(into)
    declared = {one.name: one for one in ordered(tables)}
    folders = {name: os.path.join(into, "clean", name) for name in tables.sources}
    folders |= {name: os.path.join(into, "tables", name) for name, one in declared.items() if one.stored}
    return [TableStep(name, declared, folders, into) for name, one in declared.items() if one.stored]


def checked(spark: SparkSession, steps: list[TableStep], landed: Mapping[str, str]) -> dict[str, Schema]:
    """The columns that each table would have: all functions are called on tables without rows, and nothing is written.

    `landed`: folders of the landed tables. UsageError for what cannot be, such as a column that is not there.
    """
    schemas: dict[str, Schema] = {name: table_log(folder).state.schema for name, folder in landed.items()}
    for step in steps:
        schemas[step.table_name] = step.check(spark, schemas)
    return schemas
