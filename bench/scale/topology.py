"""A keyed bolt whose tuples each take a slept service time, for as many sub-units as wanted: what `bench/scale/__main__.py` runs."""

from __future__ import annotations

import functools
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.workloads.loads import SEED
from esault import Bolt, EndOfStream, Sink, Spout, Topology, by_key
from esault.routing.ring import RING, position

__all__ = ["CELLS", "KEYS", "Keys", "Marked", "Server", "keys", "served"]

#: parts of the ring that get equally many keys: a multiple of all numbers of sub-units that are measured
CELLS = 64
KEYS = CELLS * 313
#: seconds: shorter debts are not slept one by one, since a sleep costs more than it lasts
QUANTUM = 0.004


def keys(n: int, even: bool, seed: int = SEED) -> list[str]:
    """About `n` keys in random order; `even`: equally many in each of the ring's 64 parts, else as the hash has them."""
    found: list[str] = []
    if even:
        each = max(1, n // CELLS)
        room = dict.fromkeys(range(CELLS), each)
        number = 0
        while len(found) < each * CELLS:
            key = f"key-{number}"
            number += 1
            cell = position(key) * CELLS // RING
            if room[cell]:
                room[cell] -= 1
                found.append(key)
    else:
        found = [f"key-{number}" for number in range(n)]
    random.Random(seed).shuffle(found)
    return found


class Server:
    """One worker that owes so many seconds per tuple, first in, first out.

    It sleeps once it owes `QUANTUM`; what a sleep takes longer than asked for is taken off the next one, so that the
    mean is exact.
    """

    def __init__(self, seconds: float, sleep: Any = time.sleep, clock: Any = time.perf_counter) -> None:
        self.seconds = seconds
        self._sleep, self._clock = sleep, clock
        self._owed = 0.0

    def serve(self) -> None:
        """One tuple."""
        self._owed += self.seconds
        if self._owed >= QUANTUM:
            begun = self._clock()
            self._sleep(self._owed)
            self._owed -= self._clock() - begun


@functools.cache
def _server(seconds: float) -> Server:
    """That of this process: all elements of a sub-unit share it."""
    return Server(seconds)


class Serve(Bolt):
    """Counts its key's tuples, each after its service."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.total = 0

    def process(self, key, value):
        if self.seconds:
            _server(self.seconds).serve()
        self.total += 1
        self.emit(key, self.total)


class Keys(Spout):
    """The same keys again and again for so many seconds, as fast as the window lets it or at a rate in whole reads."""

    def __init__(self, even: bool, seconds: float, rate: float, path: str) -> None:
        self.even, self.seconds, self.rate, self.path = even, seconds, rate, path
        self.rows: list[tuple[str, int]] = []
        self.sent = 0
        self.began = 0.0

    def open(self, context: Any) -> None:
        self.rows = [(key, 1) for key in keys(KEYS, self.even)]

    def read(self, limit):
        now = time.time()
        self.began = self.began or now
        if now - self.began >= self.seconds:
            raise EndOfStream
        if self.rate and (now - self.began) * self.rate - self.sent < limit:
            return []
        at = self.sent % len(self.rows)
        rows = self.rows[at : at + limit]
        self.sent += len(rows)
        return rows

    def close(self) -> None:
        with Path(self.path).open("a") as out:
            out.write(json.dumps({"offered": self.sent, "began": self.began}) + "\n")


class Marked(Sink):
    """Notes how many rows had come by when; a line for each sub-unit of the bolt at the end."""

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self, context: Any) -> None:
        self.sub_unit = context.sub_unit
        self.rows = 0
        self.marks: list[tuple[float, int]] = []

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time_: float, ids: Any) -> None:
        self.rows += len(keys)
        self.marks.append((time.time(), self.rows))

    def close(self) -> None:
        with Path(self.path).open("a") as out:
            out.write(json.dumps({"sub_unit": self.sub_unit, "marks": self.marks}) + "\n")


def served(n: int, service: float, seconds: float, out: str, even: bool = True, rate: float = 0.0) -> Topology:
    """Spout -> keyed bolt that sleeps `service` seconds per tuple, in n sub-units -> sink that notes when what came."""
    t = Topology("bench-scale")
    offered = t.spout("offer", Keys(even, seconds, rate, out))
    bolt = functools.partial(Serve, service)
    # A policy may look at it, and has nothing to change: no fewer than n, and there are no slots for more.
    serve = offered.bolt("serve", bolt, grouping=by_key(), parallelism=n, min_parallelism=n)
    serve.sink("out", Marked(out))
    return t
