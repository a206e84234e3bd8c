"""The engine's CPU time over that of a bare loop that does the same user's work, both in this process in turns.

The loop splits, packs and unpacks columns, counts and puts out, as the engine does, but has no units, routes, acks or sinks. What makes
the machine slow makes both slow, so that their ratio is a property of the code; counts see more, but not what C does.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import msgpack

from bench.smoke.workloads import WORKLOADS, Workload

__all__ = ["RATIOS", "least_middle", "measure"]

#: rows of a frame, and of what is read at a time
FRAME, READ = 512, 128
#: rows of the load in a round: some 20 ms of the engine
SIZES = {"A": 3072, "B": 30_720}


def _over(rows: list[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Columns of these rows, over a wire."""
    keys, values = msgpack.unpackb(msgpack.packb([[k for k, _ in rows], [v for _, v in rows]]), use_list=False)
    return keys, values


class _Counts:
    """A running count by key, in frames."""

    def __init__(self) -> None:
        self._totals: dict[str, int] = {}
        self._keys: list[str] = []
        self._values: list[int] = []
        self.rows = 0

    def add(self, key: str, value: int) -> None:
        self._keys.append(key)
        self._values.append(value)

    def frames(self, end: bool = False) -> None:
        """Count what waits, once it fills a frame."""
        if not self._keys or (len(self._keys) < FRAME and not end):
            return
        keys, values = msgpack.unpackb(msgpack.packb([self._keys, self._values]), use_list=False)
        self._keys.clear()
        self._values.clear()
        out_keys, out_values = [], []
        for key, value in zip(keys, values):
            total = self._totals[key] = self._totals.get(key, 0) + value
            out_keys.append(key)
            out_values.append(total)
        self.rows += len(out_keys)


def _bare_words(rows: list[Any]) -> int:
    counts = _Counts()
    for at in range(0, len(rows), READ):
        for line in _over(rows[at : at + READ])[1]:
            for word in line.split():
                counts.add(word, 1)
        counts.frames()
    counts.frames(end=True)
    return counts.rows


def _bare_sums(rows: list[Any]) -> int:
    counts = _Counts()
    for at in range(0, len(rows), READ):
        for key, value in zip(*_over(rows[at : at + READ])):
            plus = value + 1
            if plus % 2 == 0:
                counts.add(key, plus)
        counts.frames()
    counts.frames(end=True)
    return counts.rows


BARE: dict[str, Callable[[list[Any]], int]] = {"A": _bare_words, "B": _bare_sums}
RATIOS = [each for each in WORKLOADS if each.name in BARE]


def _timed(call: Callable[[], object]) -> float:
    """CPU time of this thread in seconds, without the garbage collector's."""
    gc.collect()
    gc.disable()
    try:
        begun = time.thread_time()
        call()
        return time.thread_time() - begun
    finally:
        gc.enable()


def measure(workload: Workload, rounds: int, timed: Callable[[Callable[[], object]], float] = _timed) -> list[float]:
    """Engine over bare loop, round by round; who begins changes. Raises RuntimeError where the loop puts out other than it must."""
    rows = workload.rows(SIZES[workload.name])
    bare = BARE[workload.name]
    if bare(rows) != workload.results(rows):
        raise RuntimeError(
            f"workload {workload.name}: the bare loop puts out {bare(rows):,} rows in place of {workload.results(rows):,}"
        )
    workload.run(rows)
    ratios = []
    for turn in range(rounds):
        if turn % 2:
            engine, loop = timed(lambda: workload.run(rows)), timed(lambda: bare(rows))
        else:
            loop, engine = timed(lambda: bare(rows)), timed(lambda: workload.run(rows))
        ratios.append(engine / loop)
    return ratios


def least_middle(workload: Workload, rounds: int, limit: float | None) -> float:
    """The median of the rounds; above the limit it is measured again, twice at most, and the least counts: noise does not last."""
    least = statistics.median(measure(workload, rounds))
    for _ in range(2):
        if limit is None or least <= limit:
            break
        least = min(least, statistics.median(measure(workload, rounds)))
    return least
