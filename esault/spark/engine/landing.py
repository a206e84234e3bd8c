"""Sinks on Spark: written and prepared by workers, committed by the driver, which keeps what they said in a journal first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from esault.background import BackgroundLoop
from esault.errors import EsaultError
from esault.flow.operators.user_error import UserError
from esault.flow.send.sink_call import call_sink, waited
from esault.payload.column import PLAIN_TYPES, plain
from esault.spark.engine.job import Job
from esault.spark.engine.layout import Layout
from esault.spark.engine.worker_error import WorkerError
from esault.topology.context import Context, logger_of
from esault.topology.plan import Plan
from esault.topology.sink import Sink

__all__ = ["Landing", "last_sinks", "sinks_remain", "undivided"]


def last_sinks(plan: Plan, layout: Layout, root: str) -> dict[str, Sink]:
    """Return the sinks, by name, that a task of this unit writes itself, and no stage behind it.

    The unit is of the last level: behind it no stage begins, so what it has written is not computed again once the driver has
    heard of it. And no other unit's rows go there: of a partition a sink is told once what is prepared.
    """
    if not layout.levels or root not in layout.levels[-1]:
        return {}
    reached = _reached(plan, layout)
    return {s.name: s.sink for s in plan.sinks if reached[s.name] == {root} and not s.sink.collects}


def _reached(plan: Plan, layout: Layout) -> dict[str, set[str]]:
    """Return sink -> the units in whose processes its rows come to be."""
    roots: dict[str, set[str]] = {}
    reached: dict[str, set[str]] = {}
    for name, unit in plan.units.items():  # senders come first
        senders = plan.senders(name) if layout.inlined(name) else ()
        roots[name] = set().union(*(roots[sender] for sender in senders)) if senders else {name}
        for sink in unit.sinks:
            reached.setdefault(sink.name, set()).update(roots[name])
    return reached


def undivided(plan: Plan, layout: Layout) -> frozenset[str]:
    """Return the spouts of which each part is read by one worker in a batch.

    Their rows go to a table that keeps the last one of each key, and no task stands between. Workers that read two pieces of a part write
    at the same time, and the older row of a key may be written last.
    """
    reached = _reached(plan, layout)
    by_key = [s.name for s in plan.sinks if getattr(s.sink, "primary_key", ())]
    return frozenset(root for name in by_key for root in reached[name] if root in layout.parts)


def sinks_remain(plan: Plan, layout: Layout) -> bool:
    """Return whether any sink is written by no task itself, so that it takes a stage behind the last one."""
    written = {name for unit in (layout.levels or [()])[-1] for name in last_sinks(plan, layout, unit)}
    return any(s.name not in written and not s.sink.collects for s in plan.sinks)


class Landing:
    """The sinks of one partition of one batch, or of one task; on the driver, those that collect. Raises WorkerError."""

    def __init__(self, job: Job, partition: int, sinks: Mapping[str, Sink]) -> None:
        self._job = job
        self._partition = partition
        self._plans = sinks
        self._open: dict[str, Sink] = {}
        self._background = BackgroundLoop()

    def write(self, name: str, batches: Any) -> None:
        """Rows of a sink, as they stand in a frame."""
        sink = self._open.get(name)
        if sink is None:
            sink = self._open[name] = self._plans[name]
            job = self._job
            context = Context(
                name,
                sub_unit=self._partition,
                logger=logger_of(sink),
                run=job.run,
                lineage=job.lineage or job.run,
                run_dir=job.run_dir,
            )
            sink.context = context
            self._call(name, "open", partial(sink.open, context))
        for batch in batches:
            self._call(name, "write", partial(_write, sink, *batch))

    def prepare(self, epoch: int) -> Iterator[tuple[str, Any]]:
        """All that was written is durable; what each sink says of it."""
        for name, sink in self._open.items():
            yield name, self._call(name, "prepare", partial(sink.prepare, epoch))
            self._call(name, "close", sink.close)
        self._background.close()

    def _call(self, name: str, hook: str, call: Callable[[], Any]) -> Any:
        """Call a hook and wait until it is done: a task has nothing else to do."""
        try:
            return call_sink(name, hook, lambda: waited(call(), self._background))
        except (EsaultError, UserError) as error:
            raise WorkerError(str(error)) from None


def _write(sink: Sink, input: int, due: float, keys: Any, values: Any, ids: Any) -> Any:
    if not sink.takes_arrays and (type(keys) not in PLAIN_TYPES or type(values) not in PLAIN_TYPES):
        keys, values = plain(keys), plain(values)
    return sink.write_columns(keys, values, due, ids)
