"""Sousa's thirteen workers with two copies each, on hosts whose cores are modelled (cores.py).

A minute of the schedule takes 60 / `speed` seconds, rates are `scale` times the dissertation's and the work of an event 1 / `scale` times,
so that hosts are as full as there. In the dissertation's model a copy may use all four cores of its node; a sub-unit is one
thread, so a host is one core that is four times as fast. Each copy writes down what it has processed and when; what the workers put out at the
end says how many events each key had, and the sum of their numbers.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.policies.migration.live.cores import Cores
from bench.policies.migration.live.policy import register
from bench.policies.migration.model import CORES, COST, SECONDS, rate
from esault import Bolt, EndOfStream, Spout, Topology, by_key
from esault.sinks import JsonLines

__all__ = ["GO", "KEYS", "RECORD", "Events", "due_times", "service", "topology"]

#: written when all copies are where they begin: the moment at which the load does, on the clock that all processes share
GO = "go"
#: of an event that a copy has processed: its number, when it was due, and when it was done
RECORD = struct.Struct("<qdd")
KEYS = 20

#: of this process: its host's cores and the file of what was done, by sub-unit
_opened: dict[tuple[str, int], tuple[Cores, int]] = {}

register()


def service(scale: float) -> float:
    """Seconds of the host's core that an event takes."""
    return COST / scale / CORES


def due_times(worker: int, speed: float, scale: float, minutes: float) -> list[float]:
    """Seconds from the start at which each event is due: evenly, at the rate of the moment."""
    step, due, come = 0.01, [], 0.5
    for k in range(round(minutes * 60 / speed / step)):
        more = scale * rate((k + 0.5) * step * speed, worker) * step
        while come < 1.0 and come + more >= 1.0:
            part = (1.0 - come) / more
            due.append((k + part) * step)
            more, come = more * (1 - part), 0.0
        come += more
    return due


class Events(Spout):
    """A worker's events from the moment on that GO says; their values are numbers and when each was due."""

    def __init__(self, folder: str, worker: int, speed: float, scale: float, minutes: float) -> None:
        self._go = Path(folder) / GO
        self._make = partial(due_times, worker, speed, scale, minutes)
        self._due: list[float] | None = None
        self._start: float | None = None
        self._looked = 0.0
        self._next = 0

    def read(self, limit: int) -> Sequence[tuple[int, tuple[int, float]]]:
        """Those that are due."""
        now = time.monotonic()
        if self._start is None:
            if now < self._looked + 0.05:
                return []
            self._looked = now
            if not self._go.is_file():
                return []
            self._start = float(self._go.read_text())
        if self._due is None:
            self._due = self._make()
        if self._next == len(self._due):
            raise EndOfStream
        rows: list[tuple[int, tuple[int, float]]] = []
        while len(rows) < limit and self._next < len(self._due):
            due = self._start + self._due[self._next]
            if due > now:
                break
            rows.append((self._next % KEYS, (self._next, due)))
            self._next += 1
        return rows

    def position(self) -> int:
        """Return how many were read."""
        return self._next

    def seek(self, position: int) -> None:
        """On from there."""
        self._next = position


class Worker(Bolt):
    """Takes `seconds` of its host's core for an event; a key says at the end how many it had, and the sum of their numbers."""

    def __init__(self, folder: str, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self.events = self.sum = 0

    def process(self, key: Any, value: Any) -> None:
        """One event."""
        cores, done = self._open()
        cores.serve(self.seconds)
        self.events += 1
        self.sum += value[0]
        os.write(done, RECORD.pack(value[0], value[1], time.monotonic()))

    def _open(self) -> tuple[Cores, int]:
        me = self.context.unit, self.context.sub_unit
        opened = _opened.get(me)
        if opened is None:
            cores = Cores(f"{self.folder}/cores-{self.context.host}", 1)
            path = f"{self.folder}/{self.context.unit}.{self.context.sub_unit}.done"
            opened = cores, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            _opened[me] = opened
        return opened

    def finish(self) -> None:
        """The sums."""
        self.emit(self.key, (self.events, self.sum))


def topology(
    folder: str, speed: float = 10.0, scale: float = 0.05, workers: int = 13, minutes: float = SECONDS / 60
) -> Topology:
    """See the module; `folder` is one that all hosts share."""
    t = Topology("migration-live")
    for worker in range(1, workers + 1):
        source = t.spout(f"source-{worker}", Events(folder, worker, speed, scale, minutes))
        work = source.bolt(
            f"worker-{worker}", partial(Worker, folder, service(scale)), by_key(), max_parallelism=1, replicas=2
        )
        work.sink(f"sink-{worker}", JsonLines(f"{folder}/sums-{worker}.jsonl", mode="replace"))
    return t
