"""From what sub-units report to the samples of a view.

It is one module of over 300 lines: reports and samples share the counts that are kept of each sub-unit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from esault.elasticity.load_share import LONGEST, SHORTEST, load_shares
from esault.elasticity.measured import MeasuredSubUnit, MeasuredUnit
from esault.elasticity.totals import Totals
from esault.elasticity.view import ProbeSample, Sample, UnitView
from esault.messages.probe import Counters, KeyLoad, ProbeReading, Usage
from esault.messages.status import Status

__all__ = ["Sampler"]

#: seconds of counters that are kept
KEPT = 30.0
#: seconds without a probe's answer after which counters are taken from status reports
UNPROBED = 0.5
#: seconds beyond the last report for which a sub-unit is taken to go on as before
FORESEEN = 0.5
#: unanswered probes that are remembered for one sub-unit
MOST_OPEN = 10_000


@dataclass
class _Source:
    """The reports of one sub-unit."""

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
    #: of a spout: (now, backpressured seconds, lag)
    spouting: deque[tuple[float, float, int | None]] = field(default_factory=deque)
    #: of which unit; empty until totals were asked for
    unit: str = ""
    key_load: KeyLoad = field(default_factory=KeyLoad)


class Sampler:
    """Keeps the last seconds of counters of every living sub-unit."""

    def __init__(self) -> None:
        self._sources: dict[int, _Source] = {}
        #: by unit: what those had counted that are gone
        self._gone: dict[str, Totals] = {}
        #: where each sub-unit is, as far as that is known
        self.hosts: Mapping[int, str] = {}

    def status(self, status: Status) -> None:
        """A report that came by the control path."""
        source = self._sources.setdefault(status.incarnation, _Source())
        rows = status.rows
        if status.now - source.probed_at > UNPROBED:
            counters = Counters(
                status.now,
                rows.arrivals,
                rows.tuples_in,
                rows.tuples_out,
                rows.busy_seconds,
                rows.backlog,
                dropped=rows.dropped,
            )
            self._count(source, counters)
        if status.usage_at_start is not None:
            # So the first report tells a share of time, a look before the second one.
            _keep(source.usages, status.usage_at_start, status.now)
        if status.usage is not None:
            _keep(source.usages, (status.now, status.usage), status.now)
        if status.key_load is not None:
            source.key_load = status.key_load
        _keep(source.spouting, (status.now, rows.backpressured, status.lag), status.now)

    def probed(self, readings: Iterable[ProbeReading]) -> None:
        """Take what has happened to probes, in order."""
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
            source = self._sources.pop(gone)
            if source.unit and source.counters:
                last = _totals(source, source.counters[-1].at)._replace(waiting=0.0, lag=None, width=0)
                self._gone[source.unit] = self._gone.get(source.unit, Totals()).plus(last)

    def memory(self, incarnation: int) -> int:
        """Return the bytes of memory of a sub-unit's process, by its last report; 0 while there is none."""
        source = self._sources.get(incarnation)
        return source.usages[-1][1].memory if source is not None and source.usages else 0

    def totals(self, unit: MeasuredUnit, at: float) -> Totals:
        """All that the unit has counted by that moment, which must be a moment ago: all are cut at the same instant."""
        total = self._gone.get(unit.name, Totals())
        for incarnation in unit.subs:
            source = self._sources.get(incarnation)
            if source is not None and source.counters:
                source.unit = unit.name
                total = total.plus(_totals(source, at))
        return total._replace(width=unit.width)

    def unit(self, unit: MeasuredUnit, spouts: tuple[str, ...], now: float, window: float, consume: bool) -> UnitView:
        """A view of the unit; with `consume` probes are told once."""
        samples: list[Sample] = []
        for copy in unit.all_replicas:
            order = list(copy.subs) if copy.plan.kind == "spout" or copy.table is None else copy.table.owners()
            ranges: dict[int, list[tuple[int, int]]] = {}
            if copy.table is not None:
                for low, high, owner in copy.table.intervals():
                    ranges.setdefault(owner, []).append((low, high))
            shares = self._shares(ranges, copy)
            for i in order:
                own = tuple(ranges.get(i, ()))
                sample = self._sample(i, copy.subs.get(i), own, shares.get(i), now, window, consume)
                if copy.plan.replica_index or i in self.hosts:
                    sample = replace(sample, replica=copy.plan.replica_index, host=self.hosts.get(i, sample.host))
                samples.append(sample)
        changing = any(copy.changing for copy in unit.all_replicas)
        ended = [copy.changes[-1] for copy in unit.all_replicas if copy.changes]
        last = max(ended, key=lambda record: record.at + record.seconds, default=None)
        changed_at = None if last is None else last.at + last.seconds
        buffer = None if unit.plan.buffer is None else float(unit.plan.buffer * max(1, unit.width))
        died_at = max((copy.died_at for copy in unit.all_replicas if copy.died_at is not None), default=None)
        return UnitView(
            name=unit.name,
            plan=unit.plan,
            samples=tuple(samples),
            changing=changing,
            changed_at=changed_at,
            spouts=spouts,
            last=last,
            window=None,
            buffer=buffer,
            died_at=died_at,
        )

    def _shares(self, ranges: Mapping[int, list[tuple[int, int]]], copy: MeasuredUnit) -> dict[int, float]:
        """Return the share of the unit's tuples for each sub-unit, since the last change at most; empty until that can be told of all.

        And where ranges do not decide: rows that go to the sub-unit with the fewest waiting may well come unevenly.
        """
        if not copy.keyed:
            return {}
        reports = [source.counters for i in ranges if (source := self._sources.get(i)) is not None and source.counters]
        if not reports or len(reports) < len(ranges):
            return {}
        until = min(counters[-1].at for counters in reports)
        since = max(until - LONGEST, *(counters[0].at for counters in reports))
        if copy.changes:
            since = max(since, copy.changes[-1].at + copy.changes[-1].seconds)
        if until - since < SHORTEST:
            return {}
        counts = {
            i: _totals(self._sources[i], until).arrivals - _totals(self._sources[i], since).arrivals for i in ranges
        }
        return load_shares(counts, {i: sum(high - low + 1 for low, high in own) for i, own in ranges.items()})

    def _sample(
        self,
        incarnation: int,
        record: MeasuredSubUnit | None,
        ranges: tuple[tuple[int, int], ...],
        share: float | None,
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
        ended = max(0.0, busy - newest.open_busy + oldest.open_busy)
        cpu, cpu_wait, memory, read, written = _usage(source.usages)
        backpressured, lag, growth = _spouting(source.spouting, window)
        return Sample(
            incarnation,
            ranges,
            age=age,
            window=length,
            arrivals=(newest.arrivals - oldest.arrivals) * per,
            processed=processed * per,
            emitted=(newest.emitted - oldest.emitted) * per,
            busy=busy * per,
            load_share=share,
            service=ended / processed if processed > 0 else None,
            latency=source.delay,
            backlog=newest.backlog,
            occupancy=newest.occupancy,
            probe_delay=source.delay,
            probes=probes,
            cpu=cpu,
            cpu_wait=cpu_wait,
            memory=memory,
            read=read,
            written=written,
            key_load=source.key_load,
            lag=lag,
            lag_growth=growth,
            backpressured=backpressured,
        )


def _keep(queue: deque, item: tuple, now: float) -> None:  # type: ignore[type-arg]
    queue.append(item)
    while queue and queue[0][0] < now - 5.0:  # also the item, which may be of a start long ago
        queue.popleft()


def _totals(source: _Source, at: float) -> Totals:
    """Return the counts of one sub-unit by then, between the two reports around that moment; beyond the last one as it went on."""
    counters = source.counters
    before, after = counters[0], counters[-1]
    if len(counters) > 1:
        i = min(max(1, bisect_left(counters, at, key=lambda each: each.at)), len(counters) - 1)
        before, after = counters[i - 1], counters[i]
    length = after.at - before.at
    # One that has said nothing for long is not believed to have gone on.
    share = min(max(0.0, (at - before.at) / length), 1.0 + FORESEEN / length) if length > 0 else 1.0
    between: Callable[[float, float], float] = lambda a, b: a + (b - a) * share
    spouting = source.spouting
    backpressured, lag = 0.0, None
    if spouting:
        newest = min(spouting, key=lambda s: abs(s[0] - at))
        backpressured, lag = newest[1], newest[2]
    read = [between(before[i], after[i]) for i in (1, 2, 3, 4)]
    is_spout = spouting and after.arrivals == 0 and after.emitted > 0
    return Totals(
        arrivals=read[2] if is_spout else read[0],
        processed=read[2] if is_spout else read[1],
        emitted=read[2],
        dropped=between(before.dropped, after.dropped),
        busy=read[3],
        open_busy=between(before.open_busy, after.open_busy),
        waiting=max(0.0, between(before.backlog, after.backlog)) if share <= 1.0 else float(after.backlog),
        lag=None if lag is None else float(lag),
        backpressured=backpressured,
    )


def _usage(usages: deque[tuple[float, Usage]]) -> tuple[float | None, float | None, int, float, float]:
    """Processors in use and waited for, memory, bytes read and written a second; over the last second or so."""
    if len(usages) < 2:
        return None, None, usages[-1][1].memory if usages else 0, 0.0, 0.0
    newest_at, newest = usages[-1]
    oldest_at, oldest = usages[max(0, len(usages) - 5)]
    per = 1.0 / max(1e-9, newest_at - oldest_at)
    waited = None
    if newest.cpu_wait is not None and oldest.cpu_wait is not None:
        waited = (newest.cpu_wait - oldest.cpu_wait) * per
    return (
        (newest.cpu - oldest.cpu) * per,
        waited,
        newest.memory,
        (newest.read - oldest.read) * per,
        (newest.written - oldest.written) * per,
    )


def _spouting(spouting: deque[tuple[float, float, int | None]], window: float) -> tuple[float, int | None, float]:
    """Share of the time that it was backpressured, lag, growth of the lag a second."""
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
