"""Values that probes and samples carry: plain, known to both paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from esault.value_class import value_class

__all__ = ["Counters", "HostUsage", "KeyLoad", "ProbeReading", "Usage"]

#: points of a summary of sampled keys, and heavy keys in it
POINTS, HEAVIEST = 128, 3


class Counters(NamedTuple):
    """The counts of a sub-unit by some moment, cumulative over its life unless said otherwise."""

    #: seconds since the epoch, by the sub-unit's clock
    at: float = 0.0
    #: tuples read from the channels
    arrivals: int = 0
    #: tuples processed
    processed: int = 0
    #: tuples emitted
    emitted: int = 0
    #: seconds of processing, waiting not counted
    busy: float = 0.0
    #: tuples that wait in the inbox, now
    backlog: int = 0
    #: share of the inbox that is taken, now: of its bytes, or where it is bounded of its tuples
    occupancy: float = 0.0
    #: of the arrivals, tuples that came when a bounded inbox was full
    dropped: int = 0
    #: of `busy`, seconds that went into tuples which are not over, now: calls of `async def process` that are open
    open_busy: float = 0.0


class ProbeReading(NamedTuple):
    """Something that has happened to a probe.

    `seen` and `back` are None until the sub-unit has read it, and until it has come through the inbox.
    """

    incarnation: int
    #: 1, 2, 3 ... for one sub-unit
    number: int
    #: seconds since the epoch, by the prober's clock, as are `seen` and `back`
    sent: float
    seen: float | None = None
    back: float | None = None
    counters: Counters | None = None


@value_class(frozen=True)
class Usage:
    """The resources that a process takes from its host."""

    #: seconds of processor time since its start
    cpu: float = 0.0
    #: seconds since its start in which it could have run and had no processor; None where the system does not tell
    cpu_wait: float | None = None
    #: bytes of memory, now
    memory: int = 0
    #: bytes read and written since its start
    read: int = 0
    written: int = 0
    #: bytes sent to other hosts since its start, by host, encrypted
    sent: Mapping[str, int] = field(default_factory=dict)


@value_class(frozen=True)
class KeyLoad:
    """The places on the ring where a sub-unit's tuples fall, from a sample of those that came of late."""

    #: ring positions that divide the sampled tuples into equal parts, in order; a heavy key's position stands repeatedly
    points: tuple[int, ...] = ()
    #: (the key as text, its position, its share of the sampled tuples), heaviest first
    heaviest: tuple[tuple[str, int, float], ...] = ()
    #: tuples in the sample
    size: int = 0

    @classmethod
    def of(cls, places: Iterable[int], name: Callable[[int], str]) -> KeyLoad:
        """Of sampled tuples by their places on the ring; `name` tells a heavy key by its place."""
        ordered = sorted(places)
        n = len(ordered)
        step = max(1.0, n / POINTS)
        points = tuple([ordered[int(i * step + step / 2)] for i in range(min(n, POINTS))])
        counts = Counter(ordered).most_common(HEAVIEST)
        return cls(points, tuple([(name(place), place, count / n) for place, count in counts]), n)


@value_class(frozen=True)
class HostUsage:
    """The load of a host."""

    name: str
    #: processors that the run may use
    cores: int = 1
    #: share of them that was busy of late
    cpu: float = 0.0
    #: bytes in use, and in all
    memory: int = 0
    memory_total: int = 0
