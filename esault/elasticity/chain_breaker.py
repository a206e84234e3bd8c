"""Chained bolts that would be better off in processes of their own, by what was measured while they run in another's.

A chain takes one core. Where that is full and there are others, the bolts behind some place of the chain go to processes of their own:
what each row takes there, and what passing it on costs more, is divided among more cores then. What is in front of the place cannot
do more than one core's work all the same.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from esault.value_class import value_class

__all__ = ["ChainBreaker", "ChainLoad", "ChainedLoad"]

#: seconds that are looked at
WINDOW = 1.0
#: share of its time from which a process is full
FULL = 0.85
#: seconds that passing a row on costs: packed, sent, unpacked and acked (bench `real`, five small bolts apart and chained)
PASSING = 1.0e-6
#: times as many rows that it must bring
GAIN = 1.3
#: gains of which one is as good as the other
ALIKE = 0.95
#: share of its time from which it counts that a process is busy
LEAST = 0.1
#: share of its busy time in which a process has work for the processor, below which it waits for something else
WAITS = 0.5


class ChainedLoad(NamedTuple):
    """One chained bolt, counted since the start."""

    name: str
    #: seconds of its own processing
    busy: float
    #: tuples that came to it
    rows: int
    #: names of the bolts that are chained behind it, itself included
    behind: frozenset[str]


@value_class(frozen=True)
class ChainLoad:
    """A unit with chained bolts at one moment, counted since the start, all of its sub-units together."""

    at: float
    #: sub-units
    width: int
    #: seconds of processing, chained bolts included, and seconds on the processor or waiting for one; None: not known
    busy: float
    cpu: float | None
    bolts: tuple[ChainedLoad, ...]


class ChainBreaker:
    """Looks at one unit and the bolts that are chained to it."""

    def __init__(self) -> None:
        self._seen: deque[ChainLoad] = deque()

    def look(self, load: ChainLoad, spare: float) -> tuple[str, str] | None:
        """Return the bolt to give processes of its own, and why; None: all are well where they are. `spare`: processors that are free."""
        seen = self._seen
        if seen and (seen[-1].width != load.width or len(seen[-1].bolts) != len(load.bolts)):
            seen.clear()
        seen.append(load)
        while len(seen) > 2 and load.at - seen[1].at >= WINDOW:
            seen.popleft()
        before = seen[0]
        seconds = (load.at - before.at) * load.width
        if load.at - before.at < WINDOW or seconds <= 0:
            return None
        busy = (load.busy - before.busy) / seconds
        if busy < FULL:
            return None
        waits = load.cpu is not None and before.cpu is not None and load.cpu - before.cpu < WAITS * busy * seconds
        cores = math.inf if waits else 1.0 + spare / load.width
        return self._best(load.bolts, before.bolts, seconds, busy, cores)

    @staticmethod
    def _best(
        now: Sequence[ChainedLoad], before: Sequence[ChainedLoad], seconds: float, busy: float, cores: float
    ) -> tuple[str, str] | None:
        share = {b.name: (b.busy - a.busy) / seconds for a, b in zip(before, now)}
        best, found = GAIN / ALIKE, None
        for old, bolt in zip(before, now):
            moved = sum(share[each] for each in bolt.behind)
            passing = PASSING * (bolt.rows - old.rows) / seconds
            rest = max(0.0, busy - moved) + passing / 2
            gain = busy * min(cores / (busy + passing), 1.0 / max(LEAST, rest))
            if gain >= best * ALIKE:  # where two bring as much, the one that takes fewer along
                best = max(best, gain)
                found = (
                    bolt.name,
                    f"the process that it ran in was busy for {busy:.0%} of {WINDOW:g} s, for {moved:.0%} with it and what is chained behind it",
                )
        return found
