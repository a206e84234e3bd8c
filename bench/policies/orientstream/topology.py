"""Traffic monitoring, live: fixes -> map -> speed, with service times that are slept, under a load that rises and falls."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from bench.policies.orientstream.exact import fixes, speed
from esault import Bolt, EndOfStream, Spout, Topology, by_key
from esault.sources import Paced

__all__ = ["MAP", "SPEED", "load", "topology"]

#: seconds that a tuple takes a sub-unit
MAP, SPEED = 0.004, 0.010
#: sleeps shorter than this are inexact: they are owed
SHORTEST = 0.005

#: seconds owed by this process; below 0: slept too long
_owed = 0.0


def _serve(seconds: float) -> None:
    global _owed
    _owed += seconds
    if _owed >= SHORTEST:
        start = time.perf_counter()
        time.sleep(_owed)
        _owed -= time.perf_counter() - start


def load(peak: float, wave: float) -> Callable[[float], float]:
    """Tuples a second: from a tenth of the peak up to it and down again in `wave` seconds."""
    return lambda t: peak * (0.1 + 0.45 * (1 - math.cos(2 * math.pi * t / wave)))


class Fixes(Spout):
    """Positions of devices, seeded; as many as come in so many seconds."""

    def __init__(self, count: int, seed: int) -> None:
        self._count, self._seed, self._next = count, seed, 0
        self._rows: list[tuple[int, float, float, float]] = []

    def open(self, context: object) -> None:
        """Make them."""
        self._rows = fixes(self._count, self._seed)

    def read(self, limit: int) -> Sequence[tuple[str, tuple[float, float, float]]]:
        """The next ones, by device."""
        if self._next >= self._count:
            raise EndOfStream
        rows = self._rows[self._next : self._next + limit]
        self._next += len(rows)
        return [(f"d{device}", (at, lat, lon)) for device, at, lat, lon in rows]


class Map(Bolt):
    """A fix to its road."""

    def process(self, key: str, value: tuple[float, float, float]) -> None:
        """The road is the cell of a grid."""
        _serve(MAP)
        at, lat, lon = value
        self.emit(key, (at, lat, lon, f"{lat:.3f}/{lon:.3f}"))


class Speed(Bolt):
    """A device's speed since its last fix, km/h."""

    def __init__(self) -> None:
        self.last: tuple[float, float, float] | None = None

    def process(self, key: str, value: tuple[float, float, float, str]) -> None:
        """From the second fix on."""
        _serve(SPEED)
        at, lat, lon, road = value
        if self.last is not None and at > self.last[0]:
            self.emit(road, speed(self.last[1:], (lat, lon), at - self.last[0]))
        self.last = (at, lat, lon)


def topology(seconds: float = 60.0, peak: float = 500.0, wave: float = 30.0, seed: int = 1) -> Topology:
    """As many fixes as are due in `seconds`."""
    rate = load(peak, wave)
    count = round(sum(rate(i / 100) for i in range(round(100 * seconds))) / 100)
    t = Topology("orientstream")
    source = t.spout("fixes", Paced(Fixes(count, seed), rate))
    source.bolt("map", Map, grouping=by_key()).bolt("speed", Speed, grouping=by_key())
    return t
