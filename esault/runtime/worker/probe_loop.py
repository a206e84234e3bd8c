"""The prober's thread, in the driver's process: data traffic and actor messages do not delay it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Mapping

from esault.flow.worker.prober import Prober
from esault.messages.probe import ProbeReading
from esault.runtime.net.inlets import LOOK_EVERY, Inlet
from esault.runtime.net.links import UnixWire, path_of

__all__ = ["ProbeLoop", "probe_endpoint"]

#: seconds between two looks for new targets
LONGEST_WAIT = 0.05


def probe_endpoint(run_dir: str) -> str:
    """Return the endpoint for answers to probes."""
    return f"unix:{os.path.join(run_dir, 'probes')}"


class ProbeLoop(threading.Thread):
    """Serves the prober until `stop`. The driver's actor takes the readings away."""

    def __init__(self, run_dir: str, epoch: int, clock_offset: float) -> None:
        super().__init__(name="esault-probes", daemon=True)
        self._endpoint = probe_endpoint(run_dir)
        self._epoch = epoch
        self._offset = clock_offset
        self._targets: tuple[Mapping[int, tuple[str, float]], int] = ({}, epoch)
        self._stopping = False
        self._readings: deque[ProbeReading] = deque()

    def probe(self, targets: Mapping[int, tuple[str, float]], epoch: int) -> None:
        """Set the sub-units to probe from now on: incarnation -> (data endpoint, seconds between two probes), and their epoch."""
        self._targets = (targets, epoch)

    def take_readings(self) -> list[ProbeReading]:
        """Return what was read since the last call."""
        readings = []
        while self._readings:
            readings.append(self._readings.popleft())
        return readings

    def stop(self) -> None:
        """End soon."""
        self._stopping = True

    def run(self) -> None:
        """The thread."""
        answers, wire = Inlet(path_of(self._endpoint)), UnixWire()
        try:
            self._serve(answers, wire)
        finally:
            answers.close()
            wire.close()

    def _serve(self, answers: Inlet, wire: UnixWire) -> None:
        prober = Prober(wire, self._epoch)
        known: tuple[Mapping[int, tuple[str, float]], int] | None = None
        look_at = 0.0
        while not self._stopping:
            if self._targets is not known:
                known = self._targets
                prober.targets(*known)
            now = time.monotonic() + self._offset
            if now >= look_at:
                look_at = now + LOOK_EVERY
                answers.mend()
            self._readings.extend(prober.send(now))
            due = prober.next_at()
            wait = LONGEST_WAIT if due is None else min(LONGEST_WAIT, max(0.0, due - now))
            answers.wait(wait)
            answers.read(lambda data: self._read(prober, data))
            wire.retry()
        prober.close()

    def _read(self, prober: Prober, data: memoryview) -> None:
        reading = prober.read(data, time.monotonic() + self._offset)
        if reading is not None:
            self._readings.append(reading)
