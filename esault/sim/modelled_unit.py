"""An operator while it runs: its queues, its table, and the change that is on.

It is one module of over 300 lines: queues, table and change are served by one clock.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import accumulate

from esault.errors import UsageError
from esault.messages.change_record import ChangeRecord
from esault.messages.probe import KeyLoad
from esault.routing.ring import RING, position
from esault.routing.table import OutputTable
from esault.sim.model import Host, Operator, Timing
from esault.sim.station import Parcel, Station
from esault.topology.grouping import by_key, shuffle
from esault.topology.plan import Input, UnitPlan

__all__ = ["LONGEST_TURN", "ModelledUnit"]

#: seconds of a turn of quick user code in the engine: one of a tuple that takes longer is as long as that
LONGEST_TURN = 0.02


class _Change:
    """From the request to the end."""

    def __init__(
        self, id: int, at: float, kind: str, table: OutputTable, news: set[int], reason: str, policy: str
    ) -> None:
        self.id, self.at, self.kind, self.table, self.news = id, at, kind, table, news
        self.reason, self.policy = reason, policy
        self.before = 0
        self.moved = 0.0
        self.switched_at: float | None = None
        #: when moved keys go on, and when it is over
        self.released_at = self.ends_at = 0.0
        self.released = False
        #: how many serve while it is on, where all take from one queue
        self.serving = 0


class ModelledUnit:
    """Takes parcels in each step and gives what comes out. With keys a queue for each sub-unit, else one for all."""

    def __init__(
        self,
        part: Operator,
        timing: Timing,
        hosts: list[Host],
        new_number: Callable[[], int],
        halved: bool,
        told: Callable[[str, ChangeRecord], None],
    ) -> None:
        self.name = part.name
        self.part = part
        self._timing = timing
        self._hosts = [h.name for h in hosts]
        self._new_number = new_number
        self._told = told
        grouping = by_key() if part.keys else shuffle()
        self.plan = UnitPlan(
            part.name,
            "bolt",
            objects="key" if part.keys else "sub-unit",
            inputs=tuple(Input(sender, sender, grouping) for sender in part.senders),
            parallelism=part.width,
            min_parallelism=part.least,
            max_parallelism=part.most,
        )
        #: seconds that a tuple takes now
        self.service = part.service_at(0.0)
        self.places = self._placed(part.keys)
        self._later_keys = deque(part.later_keys)
        numbers = [new_number() for _ in range(part.width)]
        self.table = (OutputTable.halved if halved else OutputTable.even)(numbers)
        self.pooled = not part.keys and len(hosts) == 1
        self.started = dict.fromkeys(numbers, 0.0)
        self.host_of = {n: self._hosts[i % len(self._hosts)] for i, n in enumerate(numbers)}
        self.stations: dict[int, Station] = {}
        if self.pooled:
            self.stations[0] = Station(0, self.service, part.width)
        else:
            self.stations = {n: Station(n, self.service, host=self.host_of[n]) for n in numbers}
        self._gone = [0.0] * 5
        #: of the table: who owns a part, how many that are, and their ranges
        self.owners: list[int] = []
        self.width = 0
        self.ranges: dict[int, tuple[tuple[int, int], ...]] = {}
        self.shares: dict[int, float] = {}
        self.key_points: dict[int, list[tuple[int, float]]] = {}
        #: what views tell of them, once asked: how many had come then, and the sample of those that came since
        self.key_loads: dict[int, tuple[float, KeyLoad]] = {}
        self._share()
        self.change: _Change | None = None
        self._last_id = 0
        self.records: list[ChangeRecord] = []
        self._cap = float("inf")
        self._cap_until = -1.0
        self._line: deque[tuple[float, list[Parcel]]] = deque()
        self._order = random.Random(part.name)
        #: part of a tuple that has come
        self._rest = 0.0
        self.on_line = 0.0

    # what policies do ------------------------------------------------------------------------------

    @property
    def subs(self) -> dict[int, float]:
        """All that live, and since when."""
        return self.started

    @property
    def changing(self) -> bool:
        """Return whether a change is on."""
        return self.change is not None

    def throttle(self, rate: float, seconds: float, now: float) -> None:
        """Process at most so many a second for so long."""
        self._cap, self._cap_until = rate, now + seconds

    def adopt(self, after: OutputTable, news: int, now: float, kind: str, reason: str, policy: str) -> int:
        """Begin a change to this table; its id. Raises UsageError while one is on."""
        if self.change is not None:
            raise UsageError(f"unit {self.name!r} is changing already")
        table = after.copy()
        made = [self._new_number() for _ in range(news)]
        for i, number in enumerate(made):
            table.replace(-1 - i, number)
            self.started[number] = now
            self.host_of[number] = self._emptiest()
        self._last_id += 1
        self.change = _Change(self._last_id, now, kind, table, set(made), reason, policy)
        self.change.before = self.width
        return self._last_id

    def move(self, owner: int, now: float, reason: str = "", policy: str = "by hand", host: str | None = None) -> int:
        """A new sub-unit takes the owner's place; the change's id. Raises UsageError."""
        if owner not in self.table.owners():
            raise UsageError(f"unit {self.name!r} has no sub-unit {owner}")
        if host is not None and host not in self._hosts:
            raise UsageError(f"there is no host {host!r}; there are: {', '.join(self._hosts)}")
        table = self.table.copy()
        table.replace(owner, -1)
        change = self.adopt(table, 1, now, "move", reason, policy)
        if host is not None:
            for number in self.change.news if self.change is not None else ():
                self.host_of[number] = host
        return change

    def _emptiest(self) -> str:
        counts = {host: sum(h == host for h in self.host_of.values()) for host in self._hosts}
        return min(counts, key=lambda host: counts[host])

    # what drifts -----------------------------------------------------------------------------------

    def _placed(self, weights: Sequence[float]) -> list[tuple[int, float]]:
        """(place on the ring, share of all tuples) of each key, by place."""
        total = sum(weights) or 1.0
        return sorted((position(f"{self.name} {i}"), w / total) for i, w in enumerate(weights))

    def _set_pace(self, service: float) -> None:
        self.service = service
        for station in self.stations.values():
            station.service = service

    # the change ------------------------------------------------------------------------------------

    def _share(self) -> None:
        """Set the part of all tuples that each owner gets by the table."""
        starts, owners = zip(*self.table.snapshot()[1])
        self.owners = self.table.owners()
        self.width = len(self.owners)
        self.ranges = {owner: tuple(self.table.ranges(owner)) for owner in self.owners}
        self.key_points = {owner: [] for owner in self.owners}
        self.key_loads.clear()
        if not self.places:
            n = len(self.key_points)
            self.shares = dict.fromkeys(self.key_points, 1.0 / n)
            return
        for place, weight in self.places:
            self.key_points[owners[bisect_right(starts, place) - 1]].append((place, weight))
        self.shares = {owner: sum(w for _, w in points) for owner, points in self.key_points.items()}

    def _advance(self, now: float) -> None:
        change = self.change
        if change is None:
            return
        if change.switched_at is None:
            if now < change.at + self._timing.preparation(len(change.news)):
                return
            self._switch(change, now)
        if now >= change.released_at and not change.released:
            self._release(change, now)
        if now >= change.ends_at:
            self._end(change, now)

    def _switch(self, change: _Change, now: float) -> None:
        before = self.table
        old_points = self.key_points
        moved = sum(m.high - m.low + 1 for m in before.moves_to(change.table)) / RING
        self.table = change.table
        self._share()
        change.switched_at = now
        change.serving = min(change.before, self.width)
        if not self.pooled:
            for number in change.news:
                self.stations[number] = Station(number, self.service, host=self.host_of[number])
        if self.places:
            moved = self._move_keys(old_points)
        elif not self.pooled:
            self._move_evenly()
        change.moved = moved
        # Owners hand over what they have between two turns: user code that takes long keeps them waiting.
        in_hand = self.service if self.service > LONGEST_TURN and self.waiting > 1e-6 else 0.0
        change.released_at = (
            now
            + self._timing.hold(len(change.news))
            + in_hand
            + moved * self.part.state / self._timing.bytes_per_second
        )
        change.ends_at = change.released_at + self._timing.finish

    def _move_keys(self, old_points: dict[int, list[tuple[int, float]]]) -> float:
        """Waiting tuples of moved keys go along, and wait with what comes for them; the share of all keys that moves."""
        owner_before = {place: owner for owner, points in old_points.items() for place, _ in points}
        weights: dict[int, float] = {o: sum(w for _, w in points) for o, points in old_points.items()}
        flows: dict[tuple[int, int], float] = defaultdict(float)
        count = 0
        for owner, points in self.key_points.items():
            for place, weight in points:
                old = owner_before[place]
                if old != owner:
                    flows[old, owner] += weight
                    count += 1
        for (old, owner), weight in flows.items():
            part = weight / weights[old] if weights[old] > 0 else 0.0
            old_owner, new_owner = self.stations[old], self.stations[owner]
            given = [(born, amount * part) for born, amount in old_owner.parcels]
            new_owner.held += given
            new_owner.waiting += sum(amount for _, amount in given)
            share = self.shares[owner]
            new_owner.moved_in += weight / share if share > 0 else 0.0
        for old in {old for old, _ in flows}:
            gone = sum(weight for (old_owner_of, _), weight in flows.items() if old_owner_of == old)
            kept = max(0.0, 1.0 - gone / weights[old]) if weights[old] > 0 else 1.0
            station = self.stations[old]
            station.parcels = deque((born, amount * kept) for born, amount in station.parcels if amount * kept > 1e-9)
            station.waiting = sum(a for _, a in station.parcels) + sum(a for _, a in station.held)
        return count / len(self.places)

    def _move_evenly(self) -> None:
        """Without keys what waits is shared anew."""
        everything = sorted(p for station in self.stations.values() for p in station.parcels)
        owners = self.owners
        for number, station in self.stations.items():
            part = 1.0 / len(owners) if number in owners else 0.0
            station.parcels = deque((born, amount * part) for born, amount in everything if part)
            station.waiting = sum(a for _, a in station.parcels)

    def _release(self, change: _Change, now: float) -> None:
        change.released, change.released_at = True, now
        for station in self.stations.values():
            station.release()

    def _end(self, change: _Change, now: float) -> None:
        owners = set(self.owners)
        for number in [n for n in self.started if n not in owners]:
            del self.started[number]
            del self.host_of[number]
            if not self.pooled:
                station = self.stations.pop(number)
                counted = (station.arrived, station.processed, station.emitted, station.dropped, station.busy)
                self._gone = [a + b for a, b in zip(self._gone, counted)]
        self.change = None
        assert change.switched_at is not None
        record = ChangeRecord(
            at=change.at,
            unit=self.name,
            kind=change.kind,
            before=change.before,
            after=self.width,
            reason=change.reason,
            policy=change.policy,
            moved_keys=round(change.moved * len(self.places)),
            moved_bytes=round(change.moved * self.part.state),
            held=change.released_at - change.switched_at,
            seconds=now - change.at,
            prepared=change.switched_at - change.at,
            id=change.id,
        )
        self.records.append(record)
        self._told(self.name, record)

    # the flow --------------------------------------------------------------------------------------

    def step(self, now: float, length: float, inflow: list[Parcel]) -> list[Parcel]:
        """Return what comes out in the step that ends now."""
        part = self.part
        if part.pace is not None:
            self._set_pace(part.service_at(now))
        while self._later_keys and self._later_keys[0][0] <= now:
            self.places = self._placed(self._later_keys.popleft()[1])
            self._share()
        self._advance(now)
        most = self._cap * length if now <= self._cap_until else float("inf")
        out: list[Parcel] = []
        if self.pooled:
            station = self.stations[0]
            change = self.change
            on = change is not None and change.switched_at is not None
            station.servers = change.serving if change is not None and on else self.width
            if inflow:
                station.admit(inflow, 1.0, self._room(station, part.buffer, length, most))
            if station.parcels:
                out = self._work(station, length, most)
        else:
            room = None if part.buffer is None else part.buffer / len(self.stations)
            most /= len(self.stations)
            drawn = self._drawn(inflow) if part.whole and inflow else None
            for station in self.stations.values():
                share = self.shares.get(station.number, 0.0)
                if drawn is not None:
                    if station.number in drawn:
                        station.admit(drawn[station.number], 1.0, self._room(station, room, length, most))
                elif inflow and share:
                    station.admit(inflow, share, self._room(station, room, length, most))
                if station.parcels:
                    out += self._work(station, length, most)
        if part.delay and (out or self._line):
            if out:
                self._line.append((now + part.delay, out))
                self.on_line += sum(amount for _, amount in out)
            out = []
            while self._line and self._line[0][0] <= now + 1e-9:
                arrived = self._line.popleft()[1]
                self.on_line = max(0.0, self.on_line - sum(amount for _, amount in arrived))
                out += arrived
        return _merged(out, length)

    def _drawn(self, inflow: list[Parcel]) -> dict[int, list[Parcel]]:
        """Return whole tuples for each sub-unit, by the keys' weights; a part of one that is left over comes with the next."""
        numbers = list(self.shares)
        upto = list(accumulate(self.shares.values()))
        draw, found = self._order.random, defaultdict[int, list[Parcel]](list)
        for born, amount in inflow:
            self._rest += amount
            many = int(self._rest + 1e-6)
            self._rest = max(0.0, self._rest - many)
            counts = Counter(bisect_right(upto, draw() * upto[-1]) for _ in range(many))
            for i, count in counts.items():
                found[numbers[min(i, len(numbers) - 1)]].append((born, float(count)))
        return found

    def _seconds(self, station: Station, length: float) -> float:
        """Of its servers together, in a step."""
        if self.part.cpu and station.level < length * self.part.cpu:
            return station.level / self.part.cpu * station.servers
        return length * station.servers

    def _room(self, station: Station, buffer: float | None, length: float, most: float) -> float:
        """Tuples that find room in a step: while they come others are processed, however small the buffer is."""
        if buffer is None:
            return float("inf")
        return buffer + min(most, self._seconds(station, length) / self.service)

    def _work(self, station: Station, length: float, most: float) -> list[Parcel]:
        done = station.work(self._seconds(station, length), most)
        selectivity, age = self.part.selectivity, self.service + self._timing.net
        out = [(born - age, amount * selectivity) for born, amount in done]
        station.emitted += sum(amount for _, amount in out)
        return out

    def wants(self, length: float) -> list[tuple[Station, float]]:
        """Seconds of a processor that each station's servers would use in a step, one server's."""
        share = self.part.cpu
        if not share:
            return []
        found = []
        for station in self.stations.values():
            # What it did in the last step it will want to do again, and what waits besides.
            work = station.busy - station.busy_before + station.waiting * self.service
            station.busy_before = station.busy
            found.append((station, min(length, work / max(1e-9, station.servers)) * share))
        return found

    @property
    def waiting(self) -> float:
        """Tuples in all of its queues."""
        return sum(station.waiting for station in self.stations.values())

    def counted(self) -> tuple[float, float, float, float, float]:
        """Arrived, processed, emitted, dropped; seconds busy. All so far."""
        a, p, e, d, b = self._gone
        for station in self.stations.values():
            a += station.arrived
            p += station.processed
            e += station.emitted
            d += station.dropped
            b += station.busy
        return a, p, e, d, b


def _merged(parcels: list[Parcel], length: float) -> list[Parcel]:
    """Tuples that came into being at about the same time go on together."""
    if len(parcels) < 2:
        return parcels
    bins: dict[int, list[float]] = {}
    for born, amount in parcels:
        each = bins.get(int(born / length))
        if each is None:
            bins[int(born / length)] = [born * amount, amount]
        else:
            each[0] += born * amount
            each[1] += amount
    return [(total / amount, amount) for _, (total, amount) in sorted(bins.items()) if amount > 1e-12]
