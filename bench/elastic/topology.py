"""The paper's experiment (Zhan et al. 2017): words in bursts, counted by sub-units of a set service time.

The service time is slept, not computed: each sub-unit is one FIFO server. What each tuple took goes to a file by the sub-unit's
process, summed up by second of the experiment.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections import Counter as Counts
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.elastic.shape import WORDS, Shape
from esault import Bolt, EndOfStream, Spout, Topology, by_key
from esault.sim.latencies import FINE
from esault.sinks import Collect

__all__ = ["BURST", "bursts", "noted", "topology"]

#: tuples in a burst
BURST = 64
#: seconds that a server may be ahead before it sleeps: a sleep for each of short services would be inexact. A longer service than
#: `LONG` is slept at once: lone tuples would seem to take nothing, and policies would think them quick
AHEAD, LONG = 0.005, 0.0025
#: seconds between two lines in a server's file
FLUSH_EVERY = 0.5


def bursts(shape: Shape, seed: int) -> Iterator[float]:
    """Yield when bursts are due, seconds from the start: at random, at a rate that changes with time; the same for the same seed."""
    order, at = random.Random(seed), 0.0
    while True:
        at += order.expovariate(shape.rate(at) / BURST)
        yield at


def noted(path: str) -> Iterator[float]:
    """Times from a file of JSON."""
    yield from json.loads(Path(path).read_text())
    yield math.inf


class Emitter(Spout):
    """Bursts at times that are known beforehand, however late the engine is; open loop."""

    def __init__(self, times: Callable[[], Iterator[float]], seconds: float, seed: int, burst: int) -> None:
        self._seconds, self._burst = seconds, burst
        self._times = times
        self._bursts: Iterator[float] = iter(())
        self._order = random.Random(f"{seed} words")
        self._next = 0.0
        self._start: float | None = None
        self._due: float | None = None
        self._ahead: list[float] = []

    def _advance(self) -> None:
        self._next = next(self._bursts)

    def _fill(self, now: float) -> None:
        assert self._start is not None
        while self._start + self._next <= now and self._next < self._seconds:
            self._ahead.append(self._next)
            self._advance()

    def read(self, limit: int) -> Sequence[tuple[str, tuple[float, float]]]:
        """One burst, when it is due; its tuples carry when that was, and the second of the experiment."""
        now = self.context.now()
        if self._start is None:
            self._start, self._bursts = now, self._times()
            self._advance()
        self._fill(now)
        self._due = None
        if not self._ahead:
            if self._next >= self._seconds:
                raise EndOfStream
            return []
        at = self._ahead.pop(0)
        self._due = self._start + at
        choose = self._order.choice
        return [(choose(WORDS), (self._due, at)) for _ in range(self._burst)]

    def due(self) -> float | None:
        """Return when the burst was due."""
        return self._due

    def lag(self) -> int | None:
        """Tuples that are due and have not been read."""
        if self._start is None:
            return 0
        self._fill(self.context.now())
        return len(self._ahead) * self._burst


class _Server:
    """One process's FIFO server, and the figures of what it served."""

    def __init__(self) -> None:
        self.free_at = 0.0
        self.path: Path | None = None
        self.bins: dict[int, list[float]] = {}
        #: tuples by logarithm of their latency
        self.logs: Counts[int] = Counts()
        self.flush_at = 0.0
        self.slept = False

    def serve(self, due: float, at: float, service: float, speed: float, now: float) -> None:
        """Owe the service time of one tuple; sleep when ahead. Latencies are in the experiment's time."""
        # What a sleep took too long is the machine's, not the server's: it goes on from where it would have been.
        late = self.slept and now - self.free_at < 2 * AHEAD
        start = max(self.free_at, due) if self.free_at > now or late else now
        self.slept = False
        self.free_at = start + service
        latency = (self.free_at - due) * speed
        each = self.bins.get(int(at * speed))
        if each is None:
            self.bins[int(at * speed)] = [1, latency, latency]
        else:
            each[0] += 1
            each[1] += latency
            each[2] = max(each[2], latency)
        self.logs[round(FINE * math.log(latency))] += 1
        if self.free_at - now > (AHEAD / speed if service < LONG else 0.0):
            time.sleep(self.free_at - now)
            self.slept = True
        if now >= self.flush_at:
            self.flush(now)

    def flush(self, now: float) -> None:
        """A line with what is new."""
        self.flush_at = now + FLUSH_EVERY
        if self.bins and self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps({"seconds": self.bins, "logs": self.logs}) + "\n")
            self.bins, self.logs = {}, Counts()


_SERVER = _Server()


class Counter(Bolt):
    """A word's count; what it takes is slept."""

    service = 1 / 560
    speed = 1.0
    folder = "."

    def __init__(self) -> None:
        self.total = 0

    def open(self, context: Any) -> None:
        """Know where figures go."""
        if _SERVER.path is None:
            _SERVER.path = Path(self.folder) / f"server-{os.getpid()}.jsonl"

    def process(self, key: str, value: tuple[float, float]) -> None:
        """Count, and take the time."""
        self.total += 1
        _SERVER.serve(value[0], value[1], self.service, self.speed, self.context.now())

    def finish(self) -> None:
        """The final count; the figures that are left."""
        self.emit(self.key, self.total)
        _SERVER.flush(self.context.now())

    def close(self) -> None:
        """Moved or stopped."""
        _SERVER.flush(self.context.now())


def topology(
    folder: str,
    seconds: float = 200.0,
    speed: float = 2.5,
    seed: int = 1,
    start: int = 2,
    least: int = 1,
    most: int = 16,
    capacity: float = 560.0,
    times: str = "",
    burst: int = BURST,
) -> Topology:
    """Words at the paper's rates times `speed`, for so many seconds of real time; or bursts at the times in a file."""
    t = Topology("elastic")
    due = partial(noted, times) if times else partial(bursts, Shape(speed=speed), seed)
    words = t.spout("emitter", Emitter(due, seconds, seed, burst))
    made = type("Counter", (Counter,), {"service": 1 / (capacity * speed), "speed": speed, "folder": folder})
    counts = words.bolt(
        "count", made, grouping=by_key(), parallelism=start, min_parallelism=least, max_parallelism=most
    )
    counts.sink("totals", Collect())
    return t
