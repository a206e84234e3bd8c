"""One unit in one process of Spark's: the plain cores of `esault.flow` around its objects, and its ways out."""

from __future__ import annotations

import random
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.lineage import Lineage
from esault.flow.operators.batch_emitter import emitter
from esault.flow.operators.dead_letter import dead_letter
from esault.flow.operators.factory import operator
from esault.flow.operators.operator import Operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import failure_text, traceback_of
from esault.flow.send.outlet import OutletRunner
from esault.flow.send.route import Route
from esault.flow.send.route_factory import route
from esault.flow.watermark.clock import Clock
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.payload.column import PLAIN_TYPES, plain
from esault.routing.table import OutputTable
from esault.spark.engine.combining import Combining, combines_of, without_combine
from esault.spark.engine.event_time import Heard
from esault.spark.engine.outputs import Inlined, Passing, Written
from esault.spark.engine.tally import Count
from esault.spark.engine.worker_error import WorkerError
from esault.topology.context import Context, logger_of
from esault.topology.plan import Edge, SinkPlan, UnitPlan
from esault.topology.step import Step

if TYPE_CHECKING:
    from esault.spark.engine.runners import Runners

__all__ = ["Runner"]

#: nothing is acked on Spark
_ROOT = (0, 0, 0)
_SETTINGS = Settings(delivery=Delivery.NONE)


class Runner:
    """One unit in one process."""

    def __init__(self, runners: Runners, plan: UnitPlan, number: int, part: int) -> None:
        self.plan = plan
        self.count = Count()
        self._runners = runners
        self.codec = runners.codec
        job = runners.job
        self.context = Context(
            unit=plan.name,
            sub_unit=number,
            logger=logger_of(plan.spout or plan.factory),
            part=part,
            parts=job.layout.parts.get(plan.name, 1),
            run=job.run,
            lineage=job.lineage or job.run,
            now=time.time if plan.kind == "spout" else self._now,
            run_dir=job.run_dir,
        )
        self.emitter = emitter(plan, _SETTINGS, runners.codec)
        self._several = len(plan.inputs) > 1
        self._leaf = not plan.edges
        self.operator: Operator | None = None
        self._told: set[str] = set()
        self._counted = (0, 0, 0)
        self._guarded = False
        if plan.kind == "bolt":
            self.operator = self.another()
            self._begin()
            self._guarded = job.layout.inlined(plan.name)
        self._fresh = self.call(self._kept) if self._guarded else None
        #: (target, what makes the watermark on the way there) of all routes; None: the unit's own goes on
        self.edges: list[tuple[str, Clock | None]] = []
        self._routes: list[Route | Combining] = []
        self._combines = {edge: each for outlet in plan.streams.values() for edge, each in combines_of(outlet)}
        chance = random.Random(f"{job.run}/{plan.name}/{number}").random
        self._outlets = {
            stream: OutletRunner(
                without_combine(outlet),
                self._sink,
                self._route,
                self._clock,
                self._survive,
                pause=time.sleep,
                chance=chance,
            )
            for stream, outlet in plan.streams.items()
        }

    def another(self) -> Operator:
        """A new operator of the unit, without a state. Raises WorkerError."""
        runners, plan = self._runners, self.plan
        dead_letters = runners.dead_letters(plan.on_error.path)
        of = OperatorParameters(plan, self.context, self.emitter, runners.codec, dead_letters, runners.now, time.sleep)
        made: Operator = self.call(lambda: operator(of))
        return made

    def finish(self, surplus: Operator, due: float) -> None:
        """Finish another operator of the unit, and send what it puts out. Raises WorkerError."""
        self.call(lambda: deque(surplus.finishing(), 0))
        self.send(due)
        self.count.errors += surplus.errors
        self.count.dead_letters += surplus.dead_letters
        self.call(surplus.close)

    def _begin(self) -> None:
        """The operator is there."""

    def _now(self) -> float:
        """Return the time of the batch: however often it is computed, bolts and clocks find the same one."""
        return self._runners.now

    def begin(self, turn: int) -> None:
        """A batch begins, whose tuples are spread from this turn on."""
        for each in self._routes:
            each.restart(turn)
        for _, clock in self.edges:
            if isinstance(clock, Heard):
                clock.restart()

    def holds(self, edge: int) -> bool:
        """Return whether rows on this way wait until the batch ends."""
        return isinstance(self._routes[edge], Combining)

    # ways out --------------------------------------------------------------------------------------

    def _sink(self, sink: SinkPlan) -> Any:
        if sink.name in self._runners.sinks:
            return Written(self._runners, sink.name, sink.sink.takes_arrays)
        return Passing(self._runners, self.plan.name, sink.name)

    def _clock(self, step: Step) -> Clock:
        assert step.event_time is not None
        return Heard(step.event_time, self._now, self.plan.kind == "bolt")

    def _route(self, edge: Edge, clock: Clock | None) -> Any:
        layout = self._runners.job.layout
        self.edges.append((edge.target, clock))
        made = route(self.plan.name, edge, _SETTINGS.route_cache, by_rows=True)
        combine = self._combines.get((edge.target, edge.input))
        way = made if combine is None else Combining(made, combine)
        self._routes.append(way)
        channels: dict[int, Any]
        if layout.inlined(edge.target):
            channels = {0: Inlined(self._runners.member(edge.target))}
        else:
            channels = {
                task: self._runners.outbox.port(self.plan.name, layout.groups[edge.target, task], edge.target)
                for task in range(layout.tasks[edge.target])
            }
        made.install(OutputTable.even(list(channels)), channels)
        return way

    # rows ------------------------------------------------------------------------------------------

    def run(self, input: int, due: float, sent: float, keys: Any, values: Any, ids: Sequence[str] | None) -> None:
        """Process tuples; what comes of them goes on at once. Raises WorkerError."""
        operator = self.operator
        assert operator is not None
        started = time.time()
        if (type(keys) not in PLAIN_TYPES or type(values) not in PLAIN_TYPES) and not operator.takes_arrays:
            keys, values = plain(keys), plain(values)
        ids = self._named(input, ids)
        operator.input = input
        self.call(lambda: operator.run(input, keys, values, ids))
        self.count.busy += time.time() - started
        self.send(due)
        if self._guarded:
            self._check_stateless()
        self._count(len(keys), sent, due)
        self._errors()

    def settle(self) -> None:
        """All tuples that came have been processed, and are on their way, when it returns. Raises WorkerError."""
        for each in self._routes:
            if isinstance(each, Combining):
                self.call(each.flush)

    def _named(self, input: int, ids: Sequence[str] | None) -> Sequence[str] | None:
        """A row may come here by two ways, such as through either side of a diamond."""
        return [f"{id}/{input}" for id in ids] if ids is not None and self._several else ids

    def _count(self, rows: int, sent: float, due: float) -> None:
        """Tuples that have been processed."""
        now, count = time.time(), self.count
        count.rows_in += rows
        count.latency.record(now - sent, rows)
        if self._leaf:
            count.end_to_end.record(now - due, rows)

    def send(self, due: float) -> None:
        """Send what was emitted on its way. Raises WorkerError."""
        for stream, keys, values, ids in self.emitter.pop_emitted(self.plan.wants_id):
            self.push(stream, due, keys, values, ids)

    def push(self, stream: str, due: float, keys: Any, values: Any, ids: Sequence[str] | None) -> None:
        """Rows of a stream. Raises WorkerError."""
        self.count.rows_out += len(keys)
        runner = self._outlets.get(stream)
        if runner is None:
            return
        lineage, now = Lineage(_ROOT, due), time.time()
        if type(keys) in PLAIN_TYPES and type(values) in PLAIN_TYPES:
            self.call(lambda: runner.push(lineage, keys, values, ids, now))
        else:
            self.call(lambda: runner.push_arrays(lineage, ArrayBatch(keys, values), ids, now))

    def each(self, hook: Callable[[Operator], Any], due: float) -> None:
        """Tick, or finish, the unit's objects, or close windows. Raises WorkerError."""
        operator = self.operator
        assert operator is not None
        started = time.time()
        self.call(lambda: deque(hook(operator) or (), 0))
        self.count.busy += time.time() - started
        self.send(due)
        self._errors()

    def close(self) -> None:
        """The end: `close` of the unit's objects."""
        if self.operator is not None:
            self.operator.close()

    def let_go(self) -> None:
        """The run is over, or goes on elsewhere."""

    # errors ----------------------------------------------------------------------------------------

    def call(self, call: Callable[[], Any]) -> Any:
        """Call what may be user code. Raises WorkerError."""
        try:
            return call()
        except WorkerError:
            raise
        except Exception as error:
            raise WorkerError(failure_text(self.plan.name, error)) from None

    def _errors(self) -> None:
        """Counts of the operator are those of its life; ours those of a batch."""
        operator = self.operator
        if operator is not None:
            errors, dead_letters, late = self._counted
            self._counted = operator.errors, operator.dead_letters, operator.late
            self.count.errors += operator.errors - errors
            self.count.dead_letters += operator.dead_letters - dead_letters
            self.count.late += operator.late - late

    def _survive(self, step: Step, error: BaseException, key: Any, value: Any) -> None:
        self.count.errors += 1
        text = f"{type(error).__name__}: {error}"
        if step.name not in self._told:
            self._told.add(step.name)
            what = "skipped"
            if step.on_error.kind == "dead_letter":
                what = f"kept in {self._runners.dead_letters(step.on_error.path)}"
            print(f"step {step.name!r}, key {key!r}: {text}\n{traceback_of(error)}", file=sys.stderr)
            print(f"(the tuple is {what}; further errors of this step are only counted)", file=sys.stderr)
        if step.on_error.kind == "dead_letter":
            self.count.dead_letters += 1
            box = self._runners.dead_letters(step.on_error.path)
            codec = self._runners.codec
            box.put(
                dead_letter(
                    context=self.context,
                    codec=codec,
                    error=error,
                    hook=step.name,
                    key=key,
                    value=value,
                    number=self.count.dead_letters,
                    at=f"step:{step.name}",
                    rows=[(key, value)],
                )
            )

    def _kept(self) -> Any:
        operator = self.operator
        assert operator is not None
        if self.plan.batch:
            return operator.states
        return operator.state.peek(None)

    def _check_stateless(self) -> None:
        if self._kept() != self._fresh:
            what = "keeps something in self.keyed" if self.plan.batch else "keeps something in its attributes"
            raise WorkerError(
                f"unit {self.plan.name!r} {what}, which could not be seen in its methods, so that its state would be lost "
                "on Spark: make the attribute in __init__, or group the unit by_key() or single()"
            )
