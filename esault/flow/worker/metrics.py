"""Counts and measurements of a sub-unit, and the reports that are made of them."""

from __future__ import annotations

from collections.abc import Callable

from esault.counters import UnitDurations
from esault.flow.delivery.roots import Roots
from esault.flow.send.outputs import Outputs
from esault.flow.worker.frame_reader import FrameReader
from esault.messages.probe import Counters, Usage
from esault.messages.status import Status, SubUnitCounts
from esault.messages.user_metrics import MetricReading
from esault.topology.user_metrics import UserMetrics

__all__ = ["Metrics"]


class Metrics:
    """Counts over the life of a sub-unit, which its loop adds to."""

    def __init__(
        self,
        incarnation: int,
        leaf: bool,
        reader: FrameReader,
        roots: Roots,
        outputs: Outputs,
        clock: Callable[[], float],
        user: UserMetrics,
    ) -> None:
        """`leaf`: no unit comes behind."""
        self._incarnation = incarnation
        self._reader = reader
        self._roots = roots
        self._outputs = outputs
        self._clock = clock
        self._user = user
        #: what is processed here is at its end
        self.leaf = leaf
        self.durations = UnitDurations(ack_latency=roots.ack_latency)
        self.tuples_in = 0
        self.tuples_out = 0
        #: seconds of processing
        self.busy = 0.0
        #: of these, for tuples that are not over; where many are under way at once
        self.open_busy: Callable[[], float] | None = None
        #: says what the process takes from its host, where the shell can tell
        self.usage: Callable[[], Usage] | None = None
        self._usage_at_start: tuple[float, Usage] | None = None

    def start(self) -> None:
        """Processing begins: what the process takes from now on, the first report tells."""
        if self.usage is not None:
            self._usage_at_start = (self._clock(), self.usage())

    def counts(self) -> SubUnitCounts:
        """Return all counts so far."""
        reader, roots = self._reader, self._roots
        return SubUnitCounts(
            tuples_in=self.tuples_in,
            tuples_out=self.tuples_out,
            split_tuples=self._outputs.split_tuples,
            arrivals=reader.arrivals + reader.dropped,
            dropped=reader.dropped,
            errors=self._outputs.errors,
            dead_letters=self._outputs.dead_letters,
            dropped_frames=reader.senders.dropped,
            busy_seconds=self.busy,
            backlog=reader.waiting,
            roots_emitted=roots.emitted,
            roots_acked=roots.acked,
            roots_replayed=roots.replayed,
            roots_open=roots.open_count,
        )

    def counters(self) -> Counters:
        """Return what a probe takes along."""
        reader = self._reader
        return Counters(
            self._clock(),
            reader.arrivals + reader.dropped,
            self.tuples_in,
            self.tuples_out,
            self.busy,
            reader.waiting,
            reader.occupancy,
            reader.dropped,
            0.0 if self.open_busy is None else self.open_busy(),
        )

    def status(self, counts: SubUnitCounts) -> Status:
        """Return what the unit is told now and then, with these counts."""
        started, self._usage_at_start = self._usage_at_start, None
        return Status(
            incarnation=self._incarnation,
            now=self._clock(),
            rows=counts,
            durations=self.durations.snapshots(),
            sent=self._outputs.sent,
            seen={channel.sender: channel.seen for channel in self._reader.senders},
            usage=self.usage() if self.usage is not None else None,
            usage_at_start=started,
            chained={name: bolt.counts() for name, bolt in self._outputs.bolts.items()},
            oldest_root=self._roots.oldest(),
            metrics=tuple(MetricReading(*each) for each in self._user.readings()),
            split_keys=self._outputs.split_keys,
            landed={sink.name: sink.landed for sink in self._outputs.sinks},
            waiting_sinks=self._outputs.sinks.waiting,
        )
