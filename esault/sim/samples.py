"""Views of modelled units: what the engine's sampler makes of reports, made of the model's own counts."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import deque
from dataclasses import replace
from typing import Any, TypeVar

from esault.elasticity.load_share import LONGEST, SHORTEST, load_shares
from esault.elasticity.totals import Totals
from esault.elasticity.view import ProbeSample, Sample, UnitView
from esault.errors import UsageError
from esault.histogram import Histogram
from esault.messages.probe import KeyLoad
from esault.sim.modelled_source import ModelledSource
from esault.sim.modelled_unit import LONGEST_TURN, ModelledUnit
from esault.sim.station import Station

__all__ = ["ModelledSamples"]

#: seconds of counts that are kept
KEPT = LONGEST + 1.0
#: tuples of which what is told of a sub-unit's keys is a sample, as the engine's
SAMPLED = 2048

#: at, arrived, processed, emitted, busy
_Count = tuple[float, float, float, float, float]
C = TypeVar("C", bound=tuple[float, ...])


class _Probes:
    """Probes to one sub-unit: each waits for what waits before it."""

    def __init__(self) -> None:
        self.number = 0
        self.out: deque[ProbeSample] = deque()
        self.delay: float | None = None
        self.counted: tuple[float, float] | None = None

    def send(self, now: float, delay: float, processed: float) -> None:
        """One more, which will be back after `delay`."""
        self.number += 1
        rate = None
        if self.counted is not None and now > self.counted[0]:
            rate = (processed - self.counted[1]) / (now - self.counted[0])
        self.counted = (now, processed)
        self.out.append(ProbeSample(self.number, now, now + delay, rate))

    def told(self, now: float) -> tuple[ProbeSample, ...]:
        """Return what is new: what was sent just now, and what has come back."""
        fresh: list[ProbeSample] = []
        if self.out and self.out[-1].sent >= now - 1e-9:
            fresh.append(replace(self.out[-1], back=None, rate=None))
        while self.out and self.out[0].back is not None and self.out[0].back <= now:
            probe = self.out.popleft()
            assert probe.back is not None
            self.delay = probe.back - probe.sent
            fresh.append(probe)
        return tuple(fresh)


def _counts_of(station: Station) -> tuple[float, ...]:
    """As `ModelledUnit.counted`, and what waits."""
    return station.arrived, station.processed, station.emitted, station.dropped, station.busy, station.waiting


def _first_since(counts: deque[C], at: float) -> C:
    """Return the oldest of the counts from `at` on, of which the last is one: found from there, since windows are short."""
    found = None
    for count in reversed(counts):
        if count[0] < at:
            break
        found = count
    assert found is not None
    return found


class ModelledSamples:
    """Counts are noted at every tick; samples are differences of them."""

    def __init__(self, net: float, seed: int = 1, reported: float = 0.0) -> None:
        """`reported`: seconds after a window's end at which totals of it are asked for."""
        self._net, self._reported = net, reported
        self._order = random.Random(f"{seed} samples")
        self._counts: dict[tuple[str, int], deque[_Count]] = {}
        self._probes: dict[int, _Probes] = {}
        #: of stations whose tuples are slow: what was counted when the last one was over
        self._told: dict[tuple[str, int], tuple[float, ...]] = {}
        self._sources: dict[str, deque[tuple[float, float, float, float]]] = {}
        self._end_to_end = Histogram()
        #: of a tuple, that is not recorded yet: amounts are fluid
        self._part = 0.0
        #: of the last ticks, as far back as windows are looked at late
        self._totals: dict[str, deque[tuple[float, Totals]]] = {}

    def note(self, parts: dict[str, ModelledUnit | ModelledSource], now: float) -> None:
        """The counts of this moment."""
        for name, part in parts.items():
            stations = {} if isinstance(part, ModelledSource) else part.stations
            told = {number: self._over(name, station) for number, station in stations.items()}
            totals = self._totals.setdefault(name, deque())
            totals.append((now, self._counted(part)))
            while len(totals) > 2 and totals[1][0] < now - self._reported - 1e-9:
                totals.popleft()
            if isinstance(part, ModelledSource):
                queue = self._sources.setdefault(name, deque())
                queue.append((now, part.read, part.lag, part.backpressured))
                while queue[0][0] < now - KEPT:
                    queue.popleft()
                continue
            for station in part.stations.values():
                if not told[station.number]:
                    continue
                counts = self._counts.setdefault((name, station.number), deque())
                counts.append((now, station.arrived, station.processed, station.emitted, station.busy))
                while counts[0][0] < now - KEPT:
                    counts.popleft()

    def forget(self, living: set[int]) -> None:
        """Only these are left."""
        for gone in self._probes.keys() - living:
            del self._probes[gone]
        for counts in (self._counts, self._told):
            for key in [k for k in counts if k[1] and k[1] not in living]:
                del counts[key]

    def ended(self, seconds: float, amount: float) -> None:
        """So many tuples have come to their end, after so long."""
        many = int(amount + self._part)
        self._part += amount - many
        self._end_to_end.record(seconds, many)

    def latencies(self, units: Any, name: str) -> Histogram:
        """Latencies of all tuples, end to end. Raises UsageError for a unit: the model has no frames, from whose packing they count."""
        if name:
            raise UsageError(f"an objective of {name!r} alone cannot be simulated; write one from end to end")
        seen = Histogram()
        seen.merge(self._end_to_end)
        return seen

    def totals(self, unit: Any, at: float) -> Totals:
        """All that the unit has counted by then, a tick and the time of reports ago at most."""
        totals = self._totals[unit.name]
        last = min(max(1, bisect_left(totals, at - 1e-9, key=lambda each: each[0])), len(totals) - 1)
        before, after = totals[max(0, last - 1)], totals[last]
        length = after[0] - before[0]
        share = min(1.0, max(0.0, (at - before[0]) / length)) if length > 0 else 1.0
        a, b = before[1], after[1]
        between: list[Any] = [None if y is None else (x or 0.0) + (y - (x or 0.0)) * share for x, y in zip(a, b)]
        return Totals(*between)._replace(width=b.width)

    def _over(self, name: str, station: Station) -> bool:
        """Return whether the station can tell of itself: it is not within a tuple that takes long."""
        if station.service <= LONGEST_TURN:
            return True
        told = self._told.get((name, station.number))
        over = told is None or station.waiting < 1e-6 or int(station.processed + 1e-6) > int(told[1] + 1e-6)
        if over:
            self._told[name, station.number] = _counts_of(station)
        return over

    def _counted(self, unit: ModelledUnit | ModelledSource) -> Totals:
        if isinstance(unit, ModelledSource):
            read = unit.read
            lag = unit.lag if unit.part.knows_lag else None
            return Totals(read, read, read, 0.0, 0.0, 0.0, lag, unit.backpressured, 1)
        counted = (*unit.counted(), unit.waiting)
        for station in unit.stations.values():
            told = self._told.get((unit.name, station.number))
            if told is not None:
                counted = tuple(a - b + c for a, b, c in zip(counted, _counts_of(station), told))  # type: ignore[assignment]
        arrived, processed, emitted, dropped, busy, waiting = counted
        return Totals(arrived, processed, emitted, dropped, busy, max(0.0, waiting), None, 0.0, unit.width)

    def unit(self, unit: Any, spouts: tuple[str, ...], now: float, window: float, consume: bool) -> UnitView:
        """A view of the unit at the newest tick."""
        if isinstance(unit, ModelledSource):
            return UnitView(unit.name, unit.plan, (self._source(unit, now, window),))
        pooled = unit.pooled
        if pooled:
            shared = self._figures(unit, unit.stations[0], now, window)
        samples = []
        width = unit.width
        last = unit.records[-1] if unit.records else None
        changed_at = None if last is None else last.at + last.seconds
        shares = {} if pooled else self._shares(unit, now, changed_at or 0.0)
        for owner in unit.owners:
            station = unit.stations[0] if pooled else unit.stations.get(owner)
            ranges = unit.ranges[owner]
            started = unit.started.get(owner, now)
            if station is None:
                samples.append(Sample(owner, ranges, unit.host_of.get(owner, "localhost"), age=now - started))
                continue
            length, arrivals, processed, emitted, busy = shared if pooled else self._figures(unit, station, now, window)
            per = 1.0 / width if pooled else 1.0
            backlog = station.waiting * per
            delay = station.waiting * unit.service / max(1.0, station.servers if pooled else 1.0)
            probes = self._probes.setdefault(owner, _Probes())
            if consume:
                probes.send(now, delay + 2 * self._net, station.processed * per)
            samples.append(
                Sample(
                    owner,
                    ranges,
                    unit.host_of[owner],
                    age=now - started,
                    window=length,
                    arrivals=arrivals * per,
                    processed=processed * per,
                    emitted=emitted * per,
                    busy=busy * per,
                    load_share=shares.get(owner),
                    service=unit.service if processed > 0 else None,
                    latency=delay + unit.service,
                    backlog=int(backlog),
                    occupancy=self._occupancy(unit, backlog),
                    probe_delay=probes.delay,
                    probes=probes.told(now) if consume else (),
                    cpu=busy * per * unit.part.cpu,
                    memory=int(unit.part.state * unit.shares.get(owner, 0.0)),
                    key_load=self._key_load(unit, owner, station),
                )
            )
        return UnitView(
            unit.name, unit.plan, tuple(samples), unit.changing, changed_at, spouts, last, buffer=unit.part.buffer
        )

    def _shares(self, unit: ModelledUnit, now: float, changed_at: float) -> dict[int, float]:
        """Return the share of its tuples for each sub-unit since the last change, as the engine's sampler counts it."""
        since = max(changed_at, now - LONGEST)
        counted: dict[int, float] = {}
        for owner in unit.owners:
            counts = self._counts.get((unit.name, owner))
            if not counts or counts[-1][0] - since < SHORTEST:
                return {}
            first = bisect_left(counts, since - 1e-9, key=lambda count: count[0])
            counted[owner] = counts[-1][1] - counts[min(first, len(counts) - 1)][1]
        return load_shares(counted, {o: sum(high - low + 1 for low, high in unit.ranges[o]) for o in unit.owners})

    def _key_load(self, unit: ModelledUnit, owner: int, station: Station) -> KeyLoad:
        """Return a sample of the tuples that came since its ranges are its own: drawn anew when it has become twice as large."""
        since, load = unit.key_loads.get(owner, (station.arrived, KeyLoad()))
        size = min(SAMPLED, int(station.arrived - since))
        if size > load.size and (size >= 2 * load.size or size == SAMPLED):
            load = self._drawn(unit.key_points.get(owner, []), size)
        unit.key_loads[owner] = since, load
        return load

    def _drawn(self, points: list[tuple[int, float]], size: int) -> KeyLoad:
        if not points:
            return KeyLoad()
        drawn = self._order.choices([p for p, _ in points], [w for _, w in points], k=size)
        return KeyLoad.of(drawn, lambda place: f"key at {place}")

    def _figures(self, unit: ModelledUnit, station: Station, now: float, window: float) -> _Count:
        """Seconds, and rates of arrivals, processed, emitted, busy."""
        counts = self._counts.get((unit.name, station.number))
        if not counts or len(counts) < 2:
            return 0.0, 0.0, 0.0, 0.0, 0.0
        newest = counts[-1]
        oldest = _first_since(counts, newest[0] - window * 1.0001)
        length = newest[0] - oldest[0]
        if length <= 0:
            return 0.0, 0.0, 0.0, 0.0, 0.0
        arrivals, processed, emitted, busy = ((newest[i] - oldest[i]) / length for i in (1, 2, 3, 4))
        return length, arrivals, processed, emitted, busy

    @staticmethod
    def _occupancy(unit: ModelledUnit, backlog: float) -> float:
        buffer = unit.part.buffer
        return min(1.0, backlog * unit.width / buffer) if buffer else 0.0

    def _source(self, source: ModelledSource, now: float, window: float) -> Sample:
        counts = self._sources.get(source.name)
        if not counts or len(counts) < 2:
            return Sample(source.number)
        newest = counts[-1]
        oldest = _first_since(counts, newest[0] - max(window, 0.5) * 1.0001)
        length = newest[0] - oldest[0]
        if length <= 0:
            return Sample(source.number)
        knows = source.part.knows_lag
        return Sample(
            source.number,
            age=now,
            window=length,
            emitted=(newest[1] - oldest[1]) / length,
            processed=(newest[1] - oldest[1]) / length,
            lag=int(newest[2]) if knows else None,
            lag_growth=(newest[2] - oldest[2]) / length if knows else 0.0,
            backpressured=min(1.0, (newest[3] - oldest[3]) / length),
        )
