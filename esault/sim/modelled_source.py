"""A source while it runs."""

from __future__ import annotations

import math
import random
from collections import deque

from esault.errors import UsageError
from esault.routing.table import OutputTable
from esault.sim.model import Source
from esault.sim.station import Parcel
from esault.topology.plan import UnitPlan

__all__ = ["ModelledSource", "arrivals"]

#: mean from which a normal number is as good
MANY = 40.0


class ModelledSource:
    """Tuples come due at a rate; they are read as far as the window and a throttle allow."""

    table: OutputTable | None = None
    width = 1
    changing = False

    def __init__(self, part: Source, number: int, seed: int) -> None:
        self.name = part.name
        self.part = part
        self.plan = UnitPlan(part.name, "spout")
        self.number = number
        self.subs = {number: None}
        self._order = random.Random(f"{seed} {part.name}")
        self._rate = part.at
        self._second = -1
        self._factor = 1.0
        self.due: deque[Parcel] = deque()
        self.lag = 0.0
        self.offered = self.read = self.backpressured = 0.0
        self._cap = float("inf")
        self._cap_until = 0.0

    def throttle(self, rate: float, seconds: float, now: float) -> None:
        """Read at most so many a second for so long."""
        self._cap, self._cap_until = rate, now + seconds

    def adopt(self, after: OutputTable, news: int, now: float, kind: str, reason: str, policy: str) -> int:
        """Raises UsageError: a source has no table."""
        raise UsageError(f"unit {self.name!r} is a source: it cannot be scaled")

    def move(self, owner: int, now: float, reason: str = "", policy: str = "by hand", host: str | None = None) -> int:
        """Raises UsageError: a source stays."""
        raise UsageError(f"unit {self.name!r} is a source: it cannot be moved")

    def step(self, now: float, length: float, in_flight: float) -> list[Parcel]:
        """Return what is read in the step that ends now."""
        if int(now) != self._second:
            self._second = int(now)
            self._factor = max(0.0, self._order.gauss(1.0, self.part.noise)) if self.part.noise else 1.0
        rate = self._rate(now - length / 2) * self._factor
        count = arrivals(self._order, rate * length, self.part.burst)
        self.offered += count
        if count > 0:
            self.due.append((now, count))
            self.lag += count
        room = float("inf")
        if self.part.max_pending is not None:
            room = max(0.0, self.part.max_pending - in_flight)
        if now <= self._cap_until:
            room = min(room, self._cap * length)
        out: list[Parcel] = []
        while self.due and room > 1e-9:
            born, amount = self.due[0]
            if amount <= room:
                self.due.popleft()
            else:
                amount, rest = room, amount - room
                self.due[0] = (born, rest)
            out.append((born, amount))
            room -= amount
            self.lag = max(0.0, self.lag - amount)
            self.read += amount
        if self.due:
            self.backpressured += length
        return out


def arrivals(order: random.Random, mean: float, burst: float) -> float:
    """Return the number of arrivals where `mean` are expected, in bursts of so many at random times; exactly `mean` where burst is 0."""
    if burst <= 0 or mean <= 0:
        return max(0.0, mean)
    expected = mean / burst
    if expected > MANY:
        return max(0.0, order.gauss(expected, math.sqrt(expected))) * burst
    limit, count, product = math.exp(-expected), 0, order.random()
    while product > limit:
        count += 1
        product *= order.random()
    return count * burst
