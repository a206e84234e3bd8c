"""From what sub-units report to the samples of a view."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from esault.control.elastic_unit import ElasticUnit
from esault.control.elasticity.view import ProbeSample, Sample, UnitView
from esault.control.unit import SubUnitRecord
from esault.messages.probe import Counters, KeyLoad, ProbeReading, Usage
from esault.messages.status import Status

__all__ = ["Sampler"]

#: seconds of counters that are kept
KEPT = 30.0
#: seconds without a probe's answer after which counters are taken from status reports
UNPROBED = 0.5
#: unanswered probes that are remembered for one sub-unit
MOST_OPEN = 10_000


@dataclass
class _Source:
    """What is known of one sub-unit."""

    counters: deque[Counters] = field(default_factory=deque)
    #: sent and not back, by number
    open: dict[int, float] = field(default_factory=dict)
    #: sent or back since the last view
    fresh: list[ProbeSample] = field(default_factory=list)
    #: at and count of the last probe that came through
    through: tuple[float, int] | None = None
    delay: float | None = None
    probed_at: float = 0.0
    usages: deque[tuple[float, Usage]] = field(default_factory=deque)
    #: of a spout: (now, throttled seconds, lag)
    spouting: deque[tuple[float, float, int | None]] = field(default_factory=deque)
    key_load: KeyLoad = field(default_factory=KeyLoad)


class Sampler:
    """Keeps the last seconds of counters of every living sub-unit."""

    def __init__(self) -> None:
        self._sources: dict[int, _Source] = {}

    def status(self, status: Status) -> None:
        """A report that came by the control path."""
        source = self._sources.setdefault(status.incarnation, _Source())
        rows = status.rows
        if status.now - source.probed_at > UNPROBED:
            counters = Counters(status.now, rows.arrivals, rows.tuples_in, rows.tuples_out, rows.busy, rows.backlog)
            self._count(source, counters)
        if status.usage is not None:
            _keep(source.usages, (status.now, status.usage), status.now)
        if status.key_load is not None:
            source.key_load = status.key_load
        _keep(source.spouting, (status.now, rows.throttled, status.lag), status.now)

    def probed(self, readings: Iterable[ProbeReading]) -> None:
        """What has happened to probes, in order."""
        for reading in readings:
            source = self._sources.setdefault(reading.incarnation, _Source())
            if reading.counters is None:
                source.open[reading.number] = reading.sent
                if len(source.open) > MOST_OPEN:
                    del source.open[min(source.open)]
                source.fresh.append(ProbeSample(reading.number, reading.sent))
                continue
            source.probed_at = reading.counters.at
            self._count(source, reading.counters)
            if reading.back is not None:
                source.open.pop(reading.number, None)
                source.delay = reading.back - reading.sent
                at, count = reading.counters.at, reading.counters.processed
                rate = None
                if source.through is not None and at > source.through[0]:
                    rate = (count - source.through[1]) / (at - source.through[0])
                source.through = (at, count)
                source.fresh.append(ProbeSample(reading.number, reading.sent, reading.back, rate))

    @staticmethod
    def _count(source: _Source, counters: Counters) -> None:
        if not source.counters or counters.at > source.counters[-1].at:
            source.counters.append(counters)
            while source.counters[0].at < counters.at - KEPT:
                source.counters.popleft()

    def forget(self, living: set[int]) -> None:
        """Only these are left."""
        for gone in self._sources.keys() - living:
            del self._sources[gone]

    def unit(self, unit: ElasticUnit, spouts: tuple[str, ...], now: float, window: float, consume: bool) -> UnitView:
        """A view of the unit; with `consume` probes are told once."""
        order = list(unit.subs) if unit.plan.kind == "spout" or unit.table is None else unit.table.owners()
        ranges: dict[int, list[tuple[int, int]]] = {}
        if unit.table is not None:
            for low, high, owner in unit.table.intervals():
                ranges.setdefault(owner, []).append((low, high))
        samples = tuple(
            self._sample(i, unit.subs.get(i), tuple(ranges.get(i, ())), now, window, consume) for i in order
        )
        last = unit.changes[-1] if unit.changes else None
        changed_at = None if last is None else last.at + last.seconds
        return UnitView(unit.name, unit.plan, samples, unit.changing, changed_at, spouts)

    def _sample(
        self,
        incarnation: int,
        record: SubUnitRecord | None,
        ranges: tuple[tuple[int, int], ...],
        now: float,
        window: float,
        consume: bool,
    ) -> Sample:
        source = self._sources.get(incarnation)
        started = record.started_at if record is not None else None
        age = now - started if started is not None else 0.0
        if source is None or not source.counters:
            return Sample(incarnation, ranges, age=age)
        newest = source.counters[-1]
        oldest = newest
        for counters in reversed(source.counters):
            if counters.at < newest.at - window * 1.2:
                break
            oldest = counters
            if counters.at <= newest.at - window * 0.95:
                break
        length = newest.at - oldest.at
        probes = tuple(source.fresh)
        if consume:
            source.fresh.clear()
        per = 1.0 / length if length > 0 else 0.0
        processed = newest.processed - oldest.processed
        busy = newest.busy - oldest.busy
        cpu, memory, read, written = _usage(source.usages)
        throttled, lag, growth = _spouting(source.spouting, window)
        return Sample(
            incarnation,
            ranges,
            age=age,
            window=length,
            arrivals=(newest.arrivals - oldest.arrivals) * per,
            processed=processed * per,
            emitted=(newest.emitted - oldest.emitted) * per,
            busy=busy * per,
            service=busy / processed if processed > 0 else None,
            backlog=newest.backlog,
            occupancy=newest.occupancy,
            probe_delay=source.delay,
            probe_age=max((now - sent for sent in source.open.values()), default=0.0),
            probes=probes,
            cpu=cpu,
            memory=memory,
            read=read,
            written=written,
            key_load=source.key_load,
            lag=lag,
            lag_growth=growth,
            throttled=throttled,
        )


def _keep(queue: deque, item: tuple, now: float) -> None:  # type: ignore[type-arg]
    queue.append(item)
    while queue[0][0] < now - 5.0:
        queue.popleft()


def _usage(usages: deque[tuple[float, Usage]]) -> tuple[float | None, int, float, float]:
    """Processors in use, memory, bytes read and written a second; over the last second or so."""
    if len(usages) < 2:
        return None, usages[-1][1].memory if usages else 0, 0.0, 0.0
    newest_at, newest = usages[-1]
    oldest_at, oldest = usages[max(0, len(usages) - 5)]
    per = 1.0 / max(1e-9, newest_at - oldest_at)
    return (
        (newest.cpu - oldest.cpu) * per,
        newest.memory,
        (newest.read - oldest.read) * per,
        (newest.written - oldest.written) * per,
    )


def _spouting(spouting: deque[tuple[float, float, int | None]], window: float) -> tuple[float, int | None, float]:
    """Share of the time that it was throttled, lag, growth of the lag a second."""
    if not spouting:
        return 0.0, None, 0.0
    newest = spouting[-1]
    oldest = next((s for s in spouting if s[0] >= newest[0] - max(window, 0.6)), newest)
    length = newest[0] - oldest[0]
    if length <= 0:
        return 0.0, newest[2], 0.0
    growth = 0.0
    if newest[2] is not None and oldest[2] is not None:
        growth = (newest[2] - oldest[2]) / length
    return min(1.0, (newest[1] - oldest[1]) / length), newest[2], growth
