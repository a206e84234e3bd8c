"""The jobs that make reports of landed tables, each of which does only what is new.

```
landed table --clean:NAME--> clean table (+ quarantine) --compact:NAME--> fewer parts
                                  '---------------- all of them --reports--> a table for each report
```

All stands in one folder: `clean/NAME`, `quarantine/NAME`, `reports/...`. Spark starts when a job has something to do.

It is one module of over 300 lines: jobs share the look at what is new, and one lock.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from esault.counters import counted
from esault.errors import SinkError, UsageError
from esault.object_store.stored_object import is_url
from esault.sinks.landing import NoTableError, parts, table_log
from esault.sinks.landing.entry import Input
from esault.sinks.landing.lock import HeldError, RunLock
from esault.spark.catalog import Catalog, Registered, catalog_of, metastore, report_name
from esault.spark.clean import Clean, Cleaned
from esault.spark.cluster_compaction import compact_by_spark
from esault.spark.compact import compact
from esault.spark.derived import DerivedTable
from esault.spark.described import described
from esault.spark.failure import JavaDied, is_alive, java_death
from esault.spark.jobs import Busy, Job, NotLanded, Outcome, Rules, Say, Step, Watcher
from esault.spark.master import is_cluster, master_of
from esault.spark.progress import progress
from esault.spark.report import ReportTable
from esault.spark.results import Results, asked
from esault.spark.session import require_pyspark, session
from esault.spark.table import read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Pipeline"]

#: parts of one folder of a clean table that are smaller than so many bytes are put together when there are so many
_SMALL_BYTES = 16 * 2**20
_SMALL = 8


class Pipeline:
    """The jobs over `tables` (folders by name), which write into the folder `into`.

    `say` is told what takes time; `master`, `paths` and `conf` as for `session`. `steps` make more tables, each behind
    those that it reads; `watcher` is told of each job. `catalog`: the database in which all tables are registered. UsageError for rules
    about tables that are not there.
    """

    def __init__(
        self,
        tables: Mapping[str, str],
        into: str,
        rules: Rules | None = None,
        *,
        master: str | None = None,
        say: Say = lambda text: None,
        paths: Iterable[str] = (),
        conf: Mapping[str, str] | None = None,
        steps: Sequence[Step] = (),
        watcher: Watcher | None = None,
        catalog: str | None = None,
    ) -> None:
        rules = rules or Rules()
        if is_url(into):
            raise UsageError(f"{into}: what is made of tables stands in folders; name one with --into DIR")
        self.into = into
        self._rules = rules
        self._say = say
        conf = dict(conf or {})
        self._catalog = None if catalog is None else Catalog(catalog)
        #: the folder of a catalog of its own; None where there is none, or Spark's settings name one
        self.metastore: str | None = None
        if self._catalog is not None:
            theirs = catalog_of(conf)
            self.metastore = os.path.join(into, "metastore") if theirs is None else None
            conf = {**(metastore(self.metastore) if self.metastore is not None else theirs or {}), **conf}
        self._session: dict[str, Any] = {"master": master, "say": say, "paths": list(paths), "conf": conf}
        self._cluster = is_cluster(master_of(master, conf))
        for what, said in (("expectations", rules.expectations), ("partition_by", rules.partition_by)):
            for name in said:
                if name not in tables:
                    raise UsageError(f"{what}: there is no table {name!r}; there are: {', '.join(tables)}")
        self.clean = {
            name: Clean(
                name,
                folder,
                os.path.join(into, "clean", name),
                os.path.join(into, "quarantine", name),
                rules.expectations.get(name),
                rules.partition_by.get(name),
            )
            for name, folder in tables.items()
        }
        self.steps = {step.name: step for step in steps}
        self._watcher = watcher or Watcher()
        self._check_names(())
        self._results = Results(os.path.join(into, "reports"))
        #: a session that several runs share
        self._kept: tuple[contextlib.ExitStack, list[SparkSession]] | None = None

    @property
    def jobs(self) -> list[Job]:
        """All jobs, those first that others need."""
        made = []
        for name, job in self.clean.items():
            made.append(Job(f"clean:{name}", (), job.source, f"clean/{name}, quarantine/{name}"))
        made += [Job(f"compact:{name}", (f"clean:{name}",), f"clean/{name}", f"clean/{name}") for name in self.clean]
        by_table = {step.table_name: step.name for step in self.steps.values()}
        by_table |= {name: f"compact:{name}" for name in self.clean}
        for step in self.steps.values():
            made.append(Job(step.name, tuple(by_table[t] for t in step.reads_tables), step.reads, step.writes))
        read = [*(f"clean/{name}" for name in self.clean), *(step.writes for step in self.steps.values())]
        made.append(Job("reports", tuple(by_table.values()), ", ".join(read), "reports"))
        return made

    def needed(self, name: str) -> list[str]:
        """The job and all that come before it, in order; "tables": all but the reports. UsageError: there is no such job."""
        jobs = {job.name: job for job in self.jobs}
        if name == "tables":
            return [job for job in jobs if job != "reports"]
        if name not in jobs:
            raise UsageError(f"there is no job {name!r}; there are: {', '.join(jobs)}")
        wanted, todo = {name}, [name]
        while todo:
            for need in jobs[todo.pop()].needs:
                wanted.add(need)
                todo.append(need)
        return [job for job in jobs if job in wanted]

    def run(self, job: str | None = None, full: bool = False, done: set[str] | None = None) -> Outcome:
        """Run the job and those that it needs; all by default. `full`: do all that was done again, but by the jobs in `done`, to which
        those are added that are done now.

        NotLanded, SinkError when tables cannot be read or written, UsageError for rules that cannot be, EsaultError for what Spark
        raises; what `reports` raises is passed on.
        """
        wanted, again = self.needed(job or "reports"), set[str]() if done is None else done
        require_pyspark()
        self._check_rows()
        self._check_writable()
        outcome = Outcome()
        with self._locked(), self.spark() as spark:
            for name in wanted:
                kind, _, table = name.partition(":")
                began, anew = time.monotonic(), full and name not in again
                made: Any | None = None
                self._watcher.began(name)
                try:
                    if kind == "clean":
                        made = outcome.cleaned[name] = self._clean(table, spark, anew, began)
                    elif kind == "compact":
                        self._compact(table, spark)
                    elif kind == "table":
                        made = outcome.updated[table] = self._step(self.steps[name], spark, anew)
                    else:
                        outcome.reported = self._report(spark, anew)
                        made = outcome.reported or None
                except BaseException as error:
                    self._watcher.ended(name, None, time.monotonic() - began, error)
                    raise
                again.add(name)
                self._watcher.ended(name, made, time.monotonic() - began, None)
            if "reports" in wanted:
                outcome.reports = self._results.load()
            outcome.registered = self.register(spark)
        outcome.quarantined = {name: counts for name in self.clean if (counts := self.quarantined(name))}
        return outcome

    @contextlib.contextmanager
    def spark(self) -> Iterator[Callable[[], SparkSession]]:
        """A session for the time of the block, which starts when it is first asked for, and anew where its Java has died.

        JavaDied in place of what the block raises because its Java has died.
        """
        with contextlib.ExitStack() as own:
            stack, started = self._kept or (own, [])

            def spark() -> SparkSession:
                if started and not is_alive(started[0]):
                    started.clear()
                    stack.close()
                if not started:
                    started.append(stack.enter_context(session(**self._session)))
                    if self._catalog is not None:
                        self._catalog.make(started[0])  # before hours of work are done
                return started[0]

            try:
                yield spark
            except Exception as error:
                if started and (died := java_death(started[0].sparkContext._gateway)) is not None:
                    raise JavaDied(
                        f"{died}. Nothing is lost: started again, this command goes on behind the job that it had done last"
                    ) from error
                raise

    @contextlib.contextmanager
    def kept_session(self) -> Iterator[None]:
        """All runs within the block share one session."""
        with contextlib.ExitStack() as stack:
            self._kept = stack, []
            try:
                yield
            finally:
                self._kept = None

    def _clean(self, table: str, spark: Callable[[], SparkSession], full: bool, began: float) -> Cleaned | None:
        done = self._clean_step(table, spark, full)
        if done is None:
            return None
        self._say(done.said(table, time.monotonic() - began))
        if not done.resumed:
            return done  # what has landed meanwhile is for the next time: a table that is being written is never done
        more = self._clean(table, spark, full, time.monotonic())
        return done if more is None else done.followed_by(more)

    def _clean_step(self, table: str, spark: Callable[[], SparkSession], full: bool) -> Cleaned | None:
        with self._watched(spark, f"clean {table}") as watched:
            return self.clean[table].run(watched, self._say, full, self._cluster)

    @contextlib.contextmanager
    def _watched(self, spark: Callable[[], SparkSession], name: str) -> Iterator[Callable[[], SparkSession]]:
        """`spark`, whose progress is told from when it is first called to the end of the block."""
        with contextlib.ExitStack() as stack:
            told = False

            def watched() -> SparkSession:
                nonlocal told
                running = spark()
                if not told:
                    stack.enter_context(progress(running, name, self._say))
                    told = True
                return running

            yield watched

    def _step(self, step: Step, spark: Callable[[], SparkSession], full: bool) -> Any | None:
        with self._watched(spark, step.name) as watched:
            done = step.run(watched, self._say, full)
        if done is not None:
            for path in (step.path, *step.beside):
                self._put_together(DerivedTable(path), spark)
        return done

    def _compact(self, table: str, spark: Callable[[], SparkSession]) -> None:
        for made in (self.clean[table].clean, self.clean[table].quarantine):
            self._put_together(made, spark)

    def _put_together(self, made: DerivedTable, spark: Callable[[], SparkSession]) -> None:
        """The table's small parts as few large ones, where a folder has many; on a cluster by its executors."""
        if made.state().version >= 0:
            folders: dict[str, list[str]] = {}
            for part in table_log(made.path).files():
                if part.bytes < _SMALL_BYTES:
                    folders.setdefault(os.path.dirname(part.path), []).append(part.path)
            only = {path for paths in folders.values() if len(paths) >= _SMALL for path in paths}
            if only:
                rewrite = partial(compact_by_spark, spark()) if self._cluster else compact
                rewrite(made.path, drop_duplicates=False, say=self._say, only=only)

    def _inputs(self) -> tuple[Input, ...]:
        """Return the inputs of reports: all that clean tables are made of, and the code."""
        paths = [*(job.clean.path for job in self.clean.values()), *(step.path for step in self.steps.values())]
        made = [one for path in paths for one in DerivedTable(path).state().inputs]
        return (*made, Input("code", 0, self._rules.code))

    def _report(self, spark: Callable[[], SparkSession], full: bool) -> bool:
        inputs = self._inputs()
        if not full and self._results.inputs() == inputs:
            return False
        running = spark()
        with progress(running, "reports", self._say):
            tables = {name: read_table(running, job.clean.path) for name, job in self.clean.items()}
            tables |= {step.table_name: read_table(running, step.path) for step in self.steps.values()}
            if self._rules.reports is None:
                frames: Mapping[str, DataFrame] = described(running, tables, self._say)
            else:
                frames = asked(self._rules.reports, tables)
            self._check_names(frames)
            if self._catalog is not None:
                gone = {name: folder for name, folder in self._results.folders().items() if name not in frames}
                self._catalog.forget(running, [(report_name(name), folder) for name, folder in gone.items()])
            self._results.land(frames, inputs, self._say)
        return True

    def register(self, spark: Callable[[], SparkSession]) -> list[Registered]:
        """Have the catalog show all tables that are there; nothing without a catalog. UsageError, EsaultError as `register_table`."""
        if self._catalog is None:
            return []
        places = [(name, job.clean, f"{name}, each row once") for name, job in self.clean.items()]
        places += [(step.table_name, DerivedTable(step.path), step.comment) for step in self.steps.values()]
        for name, _, _ in list(places):
            aside = DerivedTable(os.path.join(self.into, "quarantine", name))
            places.append((f"{name}_quarantine", aside, f"rows that do not belong into {name}, with the reason"))
        for name, folder in self._results.folders().items():
            places.append((report_name(name), DerivedTable(folder), f"report {name!r}"))
        return self._catalog.register(spark(), [place for place in places if place[1].state().version >= 0])

    def quarantined(self, table: str) -> dict[str, int]:
        """Rows in the table's quarantine, by reason, most first."""
        import pyarrow.parquet as pq

        made = self.clean[table].quarantine
        counts: dict[str, int] = {}
        if made.state().version >= 0:
            for part in parts(made.path):
                rows = pq.read_table(part, columns=["reason", "rows"], partitioning=None)
                for row in rows.group_by("reason").aggregate([("rows", "sum")]).to_pylist():
                    counts[row["reason"]] = counts.get(row["reason"], 0) + row["rows_sum"]
        return dict(sorted(counts.items(), key=lambda one: -one[1]))

    def listing(self) -> list[ReportTable]:
        """The jobs with what each would do now, and the tables; nothing is run."""
        jobs: list[tuple[Any, ...]] = []
        behind: set[str] = set()
        for job in self.jobs:
            kind, _, table = job.name.partition(":")
            if kind == "clean":
                reading = self.clean[table].next()
                todo = "up to date"
                if reading is not None:
                    which = f"all, since {reading.why}" if reading.why is not None else "what is new"
                    todo = f"{counted(reading.rows, 'row')} in {counted(len(reading.parts), 'part')}: {which}"
            elif kind == "compact":
                todo = "when a folder has many small parts"
            elif kind == "table":
                todo = self.steps[job.name].todo()
                if todo == "up to date" and behind.intersection(job.needs):
                    todo = "what it reads is made first"
            else:
                waits = any(one.next() is not None for one in self.clean.values())
                waits = waits or any(step.todo() != "up to date" for step in self.steps.values())
                todo = "up to date" if not waits and self._results.inputs() == self._inputs() else "to be made"
            if (todo != "up to date" and kind != "compact") or behind.intersection(job.needs):
                behind.add(job.name)
            jobs.append((job.name, job.reads, job.writes, todo))
        tables: list[tuple[Any, ...]] = []
        places = []
        for name, made in self.clean.items():
            places += [(name, "landed", made.source), (name, "clean", made.clean.path)]
            places.append((name, "quarantine", made.quarantine.path))
        for step in self.steps.values():
            places.append((step.table_name, "table", step.path))
            places.append((step.table_name, "quarantine", os.path.join(self.into, "quarantine", step.table_name)))
        for name, kind, path in places:
            if is_url(path) or os.path.exists(path):
                with contextlib.suppress(SinkError):
                    files = table_log(path).files()
                    folders = len({os.path.dirname(part.path) for part in files})
                    rows, size = sum(part.rows for part in files), sum(part.bytes for part in files)
                    where = path if is_url(path) else os.path.relpath(path)
                    tables.append((name, kind, rows, len(files), folders, round(size / 2**20, 3), where))
        landed = os.path.relpath(self._results.folder)
        tables += [(r.name, "report", len(r.rows), 1, 1, None, landed) for r in self._results.load().values()]
        heads = ("table", "kind", "rows", "parts", "folders", "MiB", "in")
        return [
            ReportTable(
                f"jobs, which write into {self.into}", ("job", "reads", "writes", "to do"), ("text",) * 4, tuple(jobs)
            ),
            ReportTable("tables", heads, ("text", "text", *("number",) * 4, "text"), tuple(tables)),
        ]

    def _check_names(self, reports: Iterable[str]) -> None:
        """UsageError where two would have one name in the catalog."""
        if self._catalog is not None:
            asides = [*self.clean, *(step.table_name for step in self.steps.values() if step.quarantines)]
            self._catalog.check([*self.clean, *(step.table_name for step in self.steps.values())], asides, reports)

    def _check_rows(self) -> None:
        try:
            rows = {name: sum(part.rows for part in table_log(job.source).files()) for name, job in self.clean.items()}
        except NoTableError as error:
            raise NotLanded(str(error)) from None
        if not any(rows.values()):
            said = ", ".join(f"{name} ({job.source})" for name, job in self.clean.items())
            raise NotLanded(
                f"no rows yet in {said}: nothing was committed. Run the topology first, and let it end or commit"
            )

    def _check_writable(self) -> None:
        try:
            os.makedirs(self.into, exist_ok=True)
            writable = os.access(self.into, os.R_OK | os.W_OK | os.X_OK)
        except OSError:
            writable = False
        if not writable:
            raise UsageError(
                f"{self.into}: the clean tables cannot be written there; name a folder with --into DIR, or say --direct to "
                "report on the landed tables as they are"
            )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One analysis at a time writes into the folder."""
        lock = RunLock(self.into, "")
        try:
            lock.acquire("esault analyze")
        except HeldError as held:
            raise Busy(
                held.holder,
                f"another analysis writes into {self.into}: {held.holder.removeprefix('run ')}. Wait for it, stop it, or name another folder "
                "with --into DIR",
            ) from None
        try:
            yield
        finally:
            lock.release()
