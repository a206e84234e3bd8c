"""The number of sub-units that a load takes: enough for the work, and for waits to stay short where the load comes in bursts."""

from __future__ import annotations

import math

__all__ = ["enough"]

#: of an exponential tail: the 99th percentile over the mean
TAIL = math.log(100.0)


def enough(rate: float, service: float, most_busy: float, latency: float, burst: float = 1.0) -> int:
    """The fewest sub-units that are busy for `most_busy` of their time at most, and let 99 % of tuples wait `latency` at most.

    `rate` tuples/s of `service` seconds each, shared evenly; `burst`: variance over mean of what comes in a moment, at all of them.
    The wait is that of a queue with constant service (Pollaczek and Khinchine) whose arrivals come in batches, its tail taken
    as exponential: rough, and on the safe side for short queues.
    """
    work = rate * service
    n = max(1, math.ceil(work / most_busy - 1e-6))
    for _ in range(64):
        busy = work / n
        batch = max(1.0, burst / n)
        if busy < 1.0 and TAIL * service * batch * busy / (2.0 * (1.0 - busy)) <= max(latency, 2 * service * batch):
            return n
        n += 1
    return n
