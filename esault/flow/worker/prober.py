"""The prober: sends a probe to each sub-unit now and then, down the socket that its data comes in by (Zhan et al. 2017, probes).

A probe waits in the inbox behind all that has been read before it, so what it takes is what a tuple suffers. The
sub-unit answers twice: when it has read it (its counters are fresh even when it is overloaded), and when it has come
through. Both are stamped with the prober's clock on return. The paper sends the probe on through the element that last
processed data; elements share one thread here, so waiting for that thread is the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from esault.errors import FrameError
from esault.flow.channel.frame import PROBE, decode
from esault.flow.channel.wire import Link, Wire
from esault.messages.probe import Counters, ProbeReading
from esault.payload.codec import Codec

__all__ = ["Prober"]


class Prober:
    """A core without sockets or a clock; one for all sub-units of a run."""

    def __init__(self, wire: Wire, epoch: int) -> None:
        self._wire = wire
        self._epoch = epoch
        self._codec = Codec()
        self._links: dict[int, Link] = {}
        self._periods: dict[int, float] = {}
        self._next: dict[int, float] = {}
        self._numbers: dict[int, int] = {}
        #: answers that could not be read
        self.dropped = 0

    def targets(self, targets: Mapping[int, tuple[str, float]], epoch: int) -> None:
        """Probe these from now on: incarnation -> (data endpoint, seconds between two probes), and their epoch."""
        self._epoch = epoch
        for gone in [i for i in self._links if i not in targets]:
            self._links.pop(gone).close()
            for each in (self._periods, self._next, self._numbers):
                each.pop(gone, None)
        for incarnation, (endpoint, period) in targets.items():
            if incarnation not in self._links:
                self._links[incarnation] = self._wire.link(endpoint)
            self._periods[incarnation] = period

    def send(self, now: float) -> list[ProbeReading]:
        """Send the probes that are due."""
        sent = []
        for incarnation, link in self._links.items():
            if now < self._next.get(incarnation, 0.0):
                continue
            period = self._periods[incarnation]
            # Periods that were missed are not made up for.
            self._next[incarnation] = max(self._next.get(incarnation, now) + period, now + period / 2)
            number = self._numbers[incarnation] = self._numbers.get(incarnation, 0) + 1
            # A probe that the link refuses is late by itself: it stays unanswered.
            link.send(self._codec.pack((PROBE, self._epoch, 0, number, now)))
            sent.append(ProbeReading(incarnation, number, now))
        return sent

    def next_at(self) -> float | None:
        """Return when the next probe is due; None where no sub-unit is probed."""
        return min((self._next.get(i, 0.0) for i in self._links), default=None)

    def read(self, data: bytes | memoryview, now: float) -> ProbeReading | None:
        """Take an answer; None if it is none of this run."""
        try:
            frame = decode(data, self._codec)
            sent, through, fields = frame.body
            counters = Counters(*fields)
            good = (
                type(sent) is float
                and type(counters.at) is float
                and type(counters.occupancy) is float
                and type(counters.dropped) is int
                and all(type(each) in (int, float) for each in fields)  # they are added up where no error is expected
            )
        except (FrameError, TypeError, ValueError):
            good = False
        if not good or frame.kind != PROBE or frame.epoch != self._epoch or frame.channel not in self._links:
            self.dropped += 1
            return None
        seen, back = (None, now) if through else (now, None)
        return ProbeReading(frame.channel, frame.seq, sent, seen, back, counters)

    def close(self) -> None:
        """Give up all links."""
        for link in self._links.values():
            link.close()
        self._links.clear()
