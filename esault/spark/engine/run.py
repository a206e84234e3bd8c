"""A run on the Spark engine, from its checks to its report.

It is one module of over 300 lines: what is opened here is closed here, whatever fails between.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from esault.control.report.late_lines import late_lines
from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.control.report.unit_graph import edges, sinks
from esault.errors import TopologyFailed
from esault.flow.operators.user_error import UserError
from esault.flow.send.end_sinks import end_sinks
from esault.flow.send.sink_call import call_sink, waited
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.payload.class_names import as_script
from esault.report import Checkpoints, Latency, Report, RootCounts, UnitReport, iso
from esault.spark import executors
from esault.spark.engine import query
from esault.spark.engine.adapted import adapted, notices
from esault.spark.engine.job import Job
from esault.spark.engine.journal import Journal
from esault.spark.engine.kept import Generation, Kept, open_kept
from esault.spark.engine.offsets import publish, resumed
from esault.spark.engine.reading import Reading
from esault.spark.engine.refusals import check_options, check_topology
from esault.spark.engine.rescale import rescale
from esault.spark.engine.seeds import ADDED
from esault.spark.engine.tally import Tally
from esault.spark.engine.workers import Workers, shared_places
from esault.spark.failure import gone, java_death
from esault.spark.file_system import hadoop_url, require_file_system
from esault.spark.folder import temporary_folder
from esault.spark.master import check_master, master_of
from esault.spark.session import session
from esault.spark.spark_path import SparkPath
from esault.state.place import place_of
from esault.topology.landing_places import places
from esault.topology.located import Located
from esault.topology.plan import Plan, SinkPlan
from esault.topology.sink import RunInfo

__all__ = ["SparkRun"]

#: seconds between two looks at the run
LOOK = 0.05
#: how often a query is started whose Python did not come in time, and what Spark says then
_STARTS, _NO_WORKER = 8, "Python worker failed to connect back"


@dataclass
class SparkRun:
    """A run as it was asked for; `run` blocks until it is over."""

    located: Located
    params: Mapping[str, Any]
    #: identity, unique over all runs
    run_id: str
    settings: Settings
    parallelism: Mapping[str, int]
    policies: Mapping[str, str]
    slots: int
    seconds: float | None
    #: shows the run: `notice(text)` and `update(snapshot)`
    view: Any
    state: str | Path | None = None
    resume: bool = False
    restart: bool = False
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> Report:
        """To its end. Raises TopologyFailed, and EsaultError before anything has started."""
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what fails in a batch is told once, by us
        topology = self.located.build(dict(self.params))
        self.plan = adapted(topology)
        for notice in notices(topology, self.policies.values()):
            self.view.notice(notice)
        check_topology(self.plan)
        check_options(self.plan, self.settings, self.parallelism, self.policies, self.slots)
        for unit in self.plan.units.values():
            if unit.spout is not None:
                unit.spout.check()
            elif unit.check is not None:
                unit.check()
        if not self.resume:
            self._check_sinks()
        if self.master is not None:
            check_master(self.master)
        with temporary_folder("run-") as folder:
            exactly = self.settings.delivery is Delivery.EXACTLY_ONCE
            address = _address(self.state)
            hold = partial(
                open_kept, self.plan, exactly, self.state, self.resume, self.restart, folder, self.view.notice
            )
            if address is None:
                with hold() as kept:
                    self._check_resumed(kept)
                    with self._session() as spark, query.settled(spark, query.on_disk(spark)):
                        return _Life(self, spark, folder, kept).run()
            with self._session() as spark:
                require_file_system(spark, address)
                with hold(SparkPath(spark, address)) as kept:
                    self._check_resumed(kept)
                    return _Life(self, spark, folder, kept).run()

    def _check_sinks(self) -> None:
        for sink in self.plan.sinks:
            sink.sink.check()

    def _check_resumed(self, kept: Kept) -> None:
        if kept.resumed:
            number = f"checkpoint {kept.resumed_from}" if kept.resumed_from else "its first batch"
            self.view.notice(f"going on from {number} in {kept.path}")
        # Sinks of a run that was over may have been told so already: to one that writes to nothing that exists it looks like another's.
        if self.resume and not (kept.resumed and Journal(kept.folder / "epochs").over()):
            self._check_sinks()

    @contextlib.contextmanager
    def _session(self) -> Iterator[Any]:
        conf = {**query.conf_for(master_of(self.master, self.conf), os.cpu_count() or 1, os.environ), **self.conf}
        with (
            session(self.master, name=self.plan.name, say=self.view.notice, conf=conf) as spark,
            query.settled(spark, conf),
        ):
            yield spark


def _address(state: str | Path | None) -> str | None:
    """Return the address of a state that Spark's own file systems have; None where it is a folder."""
    place = None if state is None else place_of(state)
    if place is None or isinstance(place, Path):
        return None
    return hadoop_url(str(place))


class _Last(threading.Thread):
    """Waits until Spark has the last batch in its log, too, so that the caller can hear of a second signal meanwhile."""

    def __init__(self, running: Any) -> None:
        super().__init__(name="esault-last-batch", daemon=True)
        self._running = running
        #: what it ended with in place of that
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._running.processAllAvailable()
        except Exception as error:
            self.error = error


class _Life:
    """One life of a run, in a session."""

    def __init__(self, asked: SparkRun, spark: Any, folder: Path, kept: Kept) -> None:
        self._asked = asked
        self._spark = spark
        self._kept = kept
        self._plan = asked.plan
        self._view = asked.view
        self._workers = Workers(spark, asked.located, asked.view.notice)
        cores = executors.cores(spark)
        layout = kept.lay_out(self._plan, asked.parallelism, cores)
        kept.folder.mkdir(parents=True, exist_ok=True)
        seen = kept.folder if isinstance(kept.folder, Path) else None
        if seen is None:
            asked.view.notice("the report has no times of units: workers and this command share no folder")
        self._workers.check(cores, asked.params, shared_places(seen, self._plan))
        spark.conf.set("spark.sql.shuffle.partitions", str(layout.partitions))
        located = self._workers.located
        self._lineage = kept.lineage or asked.run_id
        if kept.rescaled:
            rescale(spark, kept, asked.view.notice)
        generation = kept.generation
        assert generation is not None
        self._job = Job(
            located=located,
            params=dict(asked.params),
            run=asked.run_id,
            layout=layout,
            run_dir=str(folder),
            shared=str(seen.resolve()) if seen is not None else "",
            lineage=self._lineage,
            first=generation.first,
            seeds=generation.seeds,
            seed_dir=self._seeds(generation),
        )
        self._folder = folder
        self._tally = Tally(self._plan.units)
        self._journal = Journal(kept.folder / "epochs")
        self._epochs = query.Epochs(self._plan.sinks, self._journal, self._tally, self._job)
        offset = resumed(kept.checkpoint) or generation.offset
        # A first batch that was never done begins where it began: Spark asks for that again, and knows no other place.
        publish(folder, generation.offset, first=True)
        publish(folder, offset)
        self._reading = Reading(
            plan=self._plan,
            plans=self._fresh,
            run=asked.run_id,
            run_dir=str(folder),
            folder=folder,
            state=seen or folder,
            offset=offset,
            lineage=self._lineage,
            generation=generation.number,
            between=asked.settings.checkpoint_every,
        )
        self._epochs.on_commit = self._reading.processed
        self._started = time.time()
        self._begun: list[SinkPlan] = []
        self._ended = "failed"
        self._failure: str | None = None
        self._signals = 0

    def _seeds(self, generation: Generation) -> str:
        """Return where workers find the states with which the generation begins."""
        place = self._kept.seeds_of(generation.number)
        if isinstance(place, Path):
            return str(place.resolve())
        if not generation.seeds:
            return ""
        self._spark.sparkContext.addFile(str(place), recursive=True)
        return f"{ADDED}{place.name}"

    def _begin(self, plan: SinkPlan, info: RunInfo) -> None:
        waited(plan.sink.begin(info), self._epochs.background)

    def _fresh(self) -> Plan:
        asked = self._asked
        return adapted(asked.located.build(dict(asked.params)))

    def run(self) -> Report:
        cause: BaseException | None = None
        try:
            with self._signalled():
                try:
                    self._work()
                finally:
                    self._reading.stop()
        except UserError as error:
            self._failure, cause = str(error), error.__cause__
        finally:
            ok = self._failure is None and self._ended == "drained"
            self._epochs.in_thread(partial(end_sinks, self._begun, ok, False, self._epochs.background))
        if self._failure is None and self._ended == "drained":
            self._kept.ended()
        with as_script(self._asked.located.path):
            collected = {
                s.name: s.sink.collected_rows(str(self._folder), s.name) for s in self._plan.sinks if s.sink.collects
            }
        report = self._report(collected)
        for text in late_lines(self._plan, report):
            self._asked.view.notice(text)
        if self._failure is not None:
            raise TopologyFailed(self._failure, report) from cause
        return report

    def _work(self) -> None:
        asked, kept = self._asked, self._kept
        for sink in self._plan.sinks:
            info = RunInfo(asked.run_id, self._plan.name, sink.name, kept.resumed, self._lineage)
            self._epochs.in_thread(partial(call_sink, sink.name, "begin", partial(self._begin, sink, info)))
            self._begun.append(sink)
        kept.begin(asked.run_id)
        self._epochs.again(kept.resumed)
        self._reading.open()
        running = self._query()
        self._reading.start()  # not before: what is read is due from then on, and would have waited for the plan
        self._started = time.time()
        for tries in range(_STARTS):
            try:
                self._watch(running)
            finally:
                self._stop(running)
            if not (_NO_WORKER in (self._failure or "") and tries + 1 < _STARTS and not self._epochs.committed):
                return
            # Spark gives the Python of its data sources ten seconds to start, and a busy machine may take longer.
            self._failure = None
            running = self._query()

    def _query(self) -> Any:
        with self._workers.chosen():
            return query.start(self._spark, self._job, self._plan, self._folder, self._kept.checkpoint, self._epochs)

    def _watch(self, running: Any) -> None:
        """Until it is over, one way or another."""
        pause = self._asked.settings.delivery is Delivery.EXACTLY_ONCE
        told = draining = 0
        last: _Last | None = None
        while True:
            self._view.update(self._snapshot("running", bool(draining)))
            over = last is not None and not last.is_alive()  # before it is asked whether anything failed
            ended = self._epochs.ended.is_set()
            if ended and (over or self._signals > 1):
                self._ended = "drained"
                return
            if not ended:
                self._failure = self._reading.failure or self._epochs.failure or self._what_ended(running, last)
                if self._failure is not None:
                    self._failure = self._java_died() or self._failure
                    return
                if over:
                    self._ended = "paused"
                    return
            seconds = self._asked.seconds
            if seconds is not None and time.time() - self._started >= seconds and not draining:
                draining = 1
                self._reading.drain(pause)
            if self._signals > told:
                told = self._signals
                if told > 1:
                    self._ended = "stopped"
                    return
                self._view.notice("ending in order: what was read is processed (again to stop at once)")
                if not draining:
                    draining = 1
                    self._reading.drain(pause)
            paused = draining and pause and self._reading.over.is_set() and not self._reading.ending
            if last is None and (ended or paused):
                last = _Last(running)
            time.sleep(LOOK)

    def _what_ended(self, running: Any, last: _Last | None) -> str | None:
        """Return why the query is over; None where it is not, or all that was published has been processed."""
        try:
            if running.isActive and (last is None or last.error is None):
                return None
            error = running.exception() or (last.error if last is not None else None)
        except gone() as lost:
            error = lost
        text = str(error) if error is not None else "its query ended by itself"
        return query.what_spark_said(text) or f"Spark: {text}"

    def _java_died(self) -> str | None:
        """Return how Spark's Java ended, and what to do; None where it is there."""
        died = java_death(self._spark.sparkContext._gateway)
        if died is None:
            return None
        if self._kept.exactly:
            return f"{died}. Nothing is lost: go on with --resume"
        return f"{died}. Begin the run again; one with --checkpoint SECONDS can go on, with --resume"

    def _stop(self, running: Any) -> None:
        with contextlib.suppress(Exception):
            running.stop()

    @contextlib.contextmanager
    def _signalled(self) -> Iterator[None]:
        def caught(number: int, frame: Any) -> None:
            self._signals += 1

        previous: dict[int, Any] = {}
        with contextlib.suppress(ValueError):  # not the main thread: the caller has the signals
            previous = {n: signal.signal(n, caught) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    # what people see -------------------------------------------------------------------------------

    def _widths(self) -> dict[str, int]:
        layout = self._job.layout
        return {name: layout.parts.get(name) or layout.tasks.get(name) or 1 for name in self._plan.units}

    def _snapshot(self, phase: str, draining: bool) -> Snapshot:
        now = time.time()
        widths = self._widths()
        units = []
        for name, unit in self._plan.units.items():
            count = self._tally.units[name]
            times = (count.latency if unit.kind == "bolt" else count.end_to_end).summary_ms()
            spout = unit.kind == "spout"
            units.append(
                UnitSnapshot(
                    name=name,
                    kind=unit.kind,
                    sub_units=widths[name],
                    tuples_in=count.rows_in,
                    tuples_out=count.rows_out,
                    backlog=self._reading.waiting(name) if spout else 0,
                    errors=count.errors,
                    dead_letters=count.dead_letters,
                    late=count.late,
                    skipped=self._reading.skipped(name),
                    p50_ms=times["p50"],
                    p99_ms=times["p99"],
                    progress=self._reading.progress(name) if spout else None,
                    edges=edges(unit),
                    sinks=sinks(unit),
                    dead_letter_paths=unit.dead_letter_paths,
                )
            )
        checkpoint = self._epochs.newest + 1 if self._kept.exactly else 0
        return Snapshot(
            topology=self._plan.name,
            phase=phase,
            draining=draining,
            now=now,
            seconds=now - self._started,
            units=tuple(units),
            checkpoint=checkpoint,
        )

    def _report(self, collected: dict[str, list[Any]]) -> Report:
        widths = self._widths()
        units = {
            name: UnitReport(
                tuples_in=count.rows_in,
                tuples_out=count.rows_out,
                arrivals=count.rows_in,
                errors=count.errors,
                dead_letters=count.dead_letters,
                late=count.late,
                skipped=self._reading.skipped(name),
                latency_ms=Latency(**count.latency.summary_ms()),
                busy_seconds=count.busy,
                parallelism=[(0.0, widths[name])],
            )
            for name, count in self._tally.units.items()
        }
        kept, epochs = self._kept, self._epochs
        checkpoints = Checkpoints()
        if kept.exactly:
            checkpoints = Checkpoints(
                taken=epochs.committed,
                newest=epochs.newest + 1,
                last_seconds=epochs.last_seconds,
                resumed_from=kept.resumed_from,
                directory=str(kept.path),
            )
        return Report(
            topology=self._plan.name,
            engine="spark",
            started=iso(self._started),
            seconds=time.time() - self._started,
            ended="failed" if self._failure is not None else self._ended,
            units=units,
            end_to_end_ms=Latency(**self._tally.end_to_end.summary_ms()),
            roots=RootCounts(),
            checkpoints=checkpoints,
            failure=self._failure,
            collected=collected,
            landed=places(self._plan.sinks),
        )
