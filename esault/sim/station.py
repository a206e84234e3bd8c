"""A queue and the servers behind it: parcels of tuples in order, in fluid amounts."""

from __future__ import annotations

from collections import deque
from heapq import merge

__all__ = ["Parcel", "Station"]

#: (when its tuples came into being, how many there are)
Parcel = tuple[float, float]
#: amounts below are rounding errors
NOTHING = 1e-9


class Station:
    """FIFO. `servers` take `service` seconds a tuple each."""

    __slots__ = ("arrived", "busy", "busy_before", "dropped", "emitted", "held", "host", "level", "moved_in", "number", "parcels", "processed", "servers", "service", "waiting")  # fmt: skip

    def __init__(self, number: int, service: float, servers: float = 1.0, host: str = "localhost") -> None:
        self.number = number
        self.service = service
        self.servers = servers
        self.host = host
        self.parcels: deque[Parcel] = deque()
        #: tuples in `parcels` and `held`
        self.waiting = 0.0
        #: what came for keys that are on their way here
        self.held: list[Parcel] = []
        #: share of what comes that is for keys on their way here
        self.moved_in = 0.0
        #: seconds of a processor that one of its servers gets in a step at most
        self.level = float("inf")
        self.arrived = self.processed = self.emitted = self.dropped = self.busy = 0.0
        #: at the last look at what it wants
        self.busy_before = 0.0

    def admit(self, parcels: list[Parcel], share: float, room: float) -> None:
        """This share of the parcels comes in; what finds no room is dropped."""
        for born, whole in parcels:
            amount = whole * share
            self.arrived += amount
            left = room - self.waiting
            if amount > left:
                self.dropped += amount - max(0.0, left)
                amount = max(0.0, left)
            if amount <= NOTHING:
                continue
            self.waiting += amount
            if self.moved_in:
                self.held.append((born, amount * self.moved_in))
            self.parcels.append((born, amount * (1.0 - self.moved_in)))

    def work(self, seconds: float, most: float = float("inf")) -> list[Parcel]:
        """Process for so many seconds of the servers together, and at most so many tuples; return what was processed."""
        able = min(seconds / self.service, most)
        done: list[Parcel] = []
        parcels = self.parcels
        begun = able
        while parcels and able > NOTHING:
            born, amount = parcels[0]
            if amount <= able:
                parcels.popleft()
                done.append((born, amount))
                able -= amount
            else:
                parcels[0] = (born, amount - able)
                done.append((born, able))
                able = 0.0
        worked = begun - able if done else 0.0
        self.waiting = max(0.0, self.waiting - worked)
        self.processed += worked
        self.busy += worked * self.service
        return done

    def release(self) -> None:
        """Release what was held for processing, in the order in which it came into being."""
        if self.held:
            self.parcels = deque(merge(self.parcels, sorted(self.held)))
            self.held = []
        self.moved_in = 0.0
