"""The units of one process of Spark's: a spout or a task with state, and all that is inlined behind it."""

from __future__ import annotations

import secrets
import time
from typing import Any
from zlib import crc32

from esault.flow.watermark.clock import BEGINNING, END_OF_TIME
from esault.payload.codec import Codec
from esault.spark.engine.async_runner import AsyncRunner
from esault.spark.engine.dead_letters import DeadLetterBox
from esault.spark.engine.event_time import SILENT, Heard, way
from esault.spark.engine.frames import HANDLE, Outbox
from esault.spark.engine.job import Job
from esault.spark.engine.landing import Landing, last_sinks
from esault.spark.engine.runner import Runner
from esault.topology.plan import Plan

__all__ = ["Runners"]


class Runners:
    """See the module. `root` is a spout or a unit with state; `here` the partition, or its task."""

    def __init__(self, job: Job, root: str, sub_unit: int, part: int = 0) -> None:
        self.job = job
        self.plan: Plan = job.plan()
        self.codec = Codec()
        self.outbox = Outbox(self.codec)
        self._sub_unit = sub_unit
        self._part = part
        self._members: dict[str, Runner] = {}
        self._dead_letters: dict[str, DeadLetterBox] = {}
        #: sinks that are written here, by name, and those of this batch
        self.sinks = last_sinks(self.plan, job.layout, root)
        self.landing: Landing | None = None
        #: who sends in this batch, from which of its rows on, and how many dead letters there were
        self._place, self._dead = "", 0
        #: the partition in which it is at work
        self.partition = 0
        #: the time of the batch, in whichever worker it is computed
        self.now = time.time()
        self.root = self.member(root)

    def begin(self, partition: int, sender: str, base: int, now: float) -> None:
        """A batch begins; what is sent follows from it alone. `base`: place of its first frame among those of the sender."""
        self.partition, self.now = partition, now
        self._place, self._dead = f"{sender} {base}", 0
        self.landing = Landing(self.job, partition, self.sinks) if self.sinks else None
        self.outbox.begin(sender, base, now)
        turn = crc32(f"{sender} {base} {now}".encode())
        for runner in self._members.values():
            runner.begin(turn)

    def land(self, epoch: int) -> None:
        """All rows of the batch are on their way, and what sinks were written here is prepared. Raises WorkerError."""
        self.settle()
        landing, self.landing = self.landing, None
        for sink, handle in landing.prepare(epoch) if landing is not None else ():
            self.send((HANDLE, sink, self.codec.pack_value(handle)))

    def member(self, name: str) -> Runner:
        """The runner of a unit here, which is made if need be."""
        found = self._members.get(name)
        if found is None:
            inlined = self.job.layout.inlined(name)
            # Many processes have an object of an inlined unit: rows are named by a number that none of the others has.
            number = secrets.randbits(40) if inlined else self._sub_unit
            unit = self.plan.units[name]
            kind = AsyncRunner if unit.concurrency is not None else Runner
            found = self._members[name] = kind(self, unit, number, 0 if inlined else self._part)
        return found

    def dead_letters(self, path: str | None) -> DeadLetterBox:
        """Return the box for dead letters of this path."""
        found = self._dead_letters.get(path or "")
        if found is None:
            found = self._dead_letters[path or ""] = DeadLetterBox(path or "", self.send, self._next_dead_letter)
        return found

    def send(self, frame: Any) -> None:
        """Send what the driver is to have."""
        passing = self.job.layout.passing
        self.outbox.put(passing[self.partition % len(passing)], frame)

    def _next_dead_letter(self) -> str:
        self._dead += 1
        return f"{self._place} {self._dead}"

    def settle(self) -> None:
        """All that the rows of this batch came to is on its way when it returns. Raises WorkerError."""
        for name in self.plan.units:  # senders come first: what they put out is waited for by those behind them
            if name in self._members:
                self._members[name].settle()

    def say(self, root: str, own: Any, between: bool = False, furthest: float = BEGINNING) -> None:
        """Tell tasks behind the units here how far time has come; `own`: the watermark of a task, None for idle.

        `furthest`: where that was before time was over: who hears that it is is told so first, since what is done at the end follows from it.
        `between`: more rows of this batch follow. Then nothing is said of ways on which rows are held until it ends.
        """
        layout, told = self.job.layout, dict[str, list[Any]]()
        said: dict[Heard, Any] = {}  # several ways may begin at one clock
        for name, unit in self.plan.units.items():  # senders come first
            runner = self._members.get(name)
            if runner is None or not unit.watermark_targets:
                continue
            mine = own if runner is self.root else _least(told.get(name, []))
            for number, (target, clock) in enumerate(runner.edges):
                if between and runner.holds(number):
                    continue
                word = mine if clock is None else SILENT
                if isinstance(clock, Heard):
                    word = said[clock] = said[clock] if clock in said else clock.word(between)
                if word is SILENT or target not in unit.watermark_targets:
                    continue
                if layout.inlined(target):
                    told.setdefault(target, []).append(word)
                    continue
                groups = [layout.groups[target, task] for task in range(layout.tasks[target])]
                if word == END_OF_TIME and furthest > BEGINNING:
                    self.outbox.say(groups, way(root, name, number), furthest, between)
                self.outbox.say(groups, way(root, name, number), word, between)

    def counts(self) -> dict[str, Any]:
        """Return what was counted since it was last asked, by unit."""
        return {name: runner.count.pop() for name, runner in self._members.items() if runner.count}

    def times(self) -> dict[str, Any]:
        """Return what was measured since it was last asked, by unit."""
        return {name: runner.count.pop_times() for name, runner in self._members.items() if runner.count.busy}

    def close(self) -> None:
        """The end: `close` of all objects."""
        for runner in self._members.values():
            runner.close()
        self.let_go()

    def let_go(self) -> None:
        """Nothing is sent to user code any more, for the run is over or goes on elsewhere."""
        for runner in self._members.values():
            runner.let_go()


def _least(words: list[Any]) -> Any:
    """Return the least of the watermarks that were told: None where none is known, SILENT where there are no senders."""
    known = [word for word in words if word is not None]
    return min(known) if known else None if words else SILENT
