"""The prober's thread, in the driver's process: data traffic and actor messages do not delay it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import zmq

from esault.flow.prober import Prober
from esault.messages.probe import ProbeReading
from esault.runtime.sockets import ZmqWire

__all__ = ["ProbeLoop", "probe_endpoint"]

#: seconds between two looks for new targets
LONGEST_WAIT = 0.05


def probe_endpoint(run_dir: str) -> str:
    """Where answers to probes go."""
    return f"ipc://{os.path.join(run_dir, 'probes')}"


class ProbeLoop(threading.Thread):
    """Serves the prober until `stop`. `readings` is filled here and emptied by the driver's actor."""

    def __init__(self, run_dir: str, epoch: int, clock_offset: float) -> None:
        super().__init__(name="esault-probes", daemon=True)
        self._endpoint = probe_endpoint(run_dir)
        self._epoch = epoch
        self._offset = clock_offset
        self._targets: tuple[Mapping[int, tuple[str, float]], int] = ({}, epoch)
        self._stopping = False
        self.readings: deque[ProbeReading] = deque()

    def probe(self, targets: Mapping[int, tuple[str, float]], epoch: int) -> None:
        """Whom to probe from now on: incarnation -> (data endpoint, seconds between two probes), and their epoch."""
        self._targets = (targets, epoch)

    def stop(self) -> None:
        """End soon."""
        self._stopping = True

    def run(self) -> None:
        """The thread."""
        context: zmq.Context[Any] = zmq.Context(1)
        answers = context.socket(zmq.PULL)
        answers.setsockopt(zmq.LINGER, 0)
        answers.setsockopt(zmq.MAXMSGSIZE, 1 << 16)
        try:
            answers.bind(self._endpoint)
            self._serve(answers, Prober(ZmqWire(context), self._epoch))
        finally:
            answers.close(linger=0)
            with contextlib.suppress(OSError):
                os.unlink(self._endpoint.removeprefix("ipc://"))
            context.destroy(linger=0)

    def _serve(self, answers: zmq.Socket[bytes], prober: Prober) -> None:
        known: tuple[Mapping[int, tuple[str, float]], int] | None = None
        while not self._stopping:
            if self._targets is not known:
                known = self._targets
                prober.targets(*known)
            now = time.monotonic() + self._offset
            self.readings.extend(prober.send(now))
            due = prober.next_at()
            wait = LONGEST_WAIT if due is None else min(LONGEST_WAIT, max(0.0, due - now))
            if not answers.poll(int(wait * 1000) + 1):
                continue
            while True:
                try:
                    data = answers.recv(zmq.NOBLOCK)
                except zmq.Again:
                    break
                reading = prober.read(data, time.monotonic() + self._offset)
                if reading is not None:
                    self.readings.append(reading)
        prober.close()
