"""The units of one process of Spark's: a spout or a task with state, and all that is inlined behind it."""

from __future__ import annotations

import secrets
import time
from typing import Any
from zlib import crc32

from esault.payload.codec import Codec
from esault.spark.engine.async_runner import AsyncRunner
from esault.spark.engine.event_time import SILENT, Heard, way
from esault.spark.engine.frames import WORD, Outbox
from esault.spark.engine.job import Job
from esault.spark.engine.runner import Runner
from esault.state.dead_letter_file import DeadLetterFile
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
        self._dead_letters: dict[str | None, DeadLetterFile] = {}
        #: the partition in which it is at work
        self.partition = 0
        #: the time of the batch, in whichever worker it is computed
        self.now = time.time()
        self.root = self.member(root)

    def begin(self, partition: int, sender: str, base: int, now: float) -> None:
        """A batch begins; what is sent follows from it alone. `base`: place of its first frame among those of the sender."""
        self.partition, self.now = partition, now
        self.outbox.begin(sender, base, now)
        turn = crc32(f"{sender} {base} {now}".encode())
        for runner in self._members.values():
            runner.begin(turn)

    def member(self, name: str) -> Runner:
        """The runner of a unit here, which is made if need be."""
        found = self._members.get(name)
        if found is None:
            inlined = self.job.layout.inlined(name)
            # Many processes have an object of an inlined unit: files and rows are named by a number that none of the others has.
            number = secrets.randbits(40) if inlined else self._sub_unit
            unit = self.plan.units[name]
            kind = AsyncRunner if unit.concurrency is not None else Runner
            found = self._members[name] = kind(self, unit, number, 0 if inlined else self._part)
        return found

    def dead_letters(self, path: str | None, number: int) -> DeadLetterFile:
        """Return the file for dead letters of this path."""
        return self._dead_letters.setdefault(path, DeadLetterFile(path, number))

    def settle(self) -> None:
        """All that the rows of this batch came to is on its way when it returns. Raises WorkerError."""
        for name in self.plan.units:  # senders come first: what they put out is waited for by those behind them
            if name in self._members:
                self._members[name].settle()

    def say(self, root: str, own: Any) -> None:
        """Tell tasks behind the units here how far time has come; `own`: the watermark of a task, None for idle."""
        layout, told = self.job.layout, dict[str, list[Any]]()
        for name, unit in self.plan.units.items():  # senders come first
            runner = self._members.get(name)
            if runner is None or not unit.watermark_targets:
                continue
            mine = own if runner is self.root else _least(told.get(name, []))
            for number, (target, clock) in enumerate(runner.edges):
                word = mine if clock is None else clock.word() if isinstance(clock, Heard) else SILENT
                if word is SILENT or target not in unit.watermark_targets:
                    continue
                if layout.inlined(target):
                    told.setdefault(target, []).append(word)
                    continue
                for task in range(layout.tasks[target]):
                    self.outbox.put(layout.groups[target, task], (WORD, way(root, name, number), word, self.now))

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
        """Close files; nothing is sent to user code any more, for the run is over or goes on elsewhere."""
        for runner in self._members.values():
            runner.let_go()
        for dead_letters in self._dead_letters.values():
            dead_letters.close()


def _least(words: list[Any]) -> Any:
    """Return the least of the watermarks that were told: None where none is known, SILENT where there are no senders."""
    known = [word for word in words if word is not None]
    return min(known) if known else None if words else SILENT
