"""The next seconds of a unit's queue: what will wait there, if so many sub-units serve what is going to come.

A fluid queue in equal steps, in the manner of CRAA's association model (Li et al. 2017, (2) to (4)): what a unit receives is what its
senders emit, which follows from what comes to them, what waits there, and how fast they are.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["STEP", "outflow", "sized"]

#: seconds of a step
STEP = 0.25


def outflow(
    inflow: Sequence[float], waiting: float, before: float, after: float, ready: float
) -> tuple[list[float], list[float]]:
    """(processed tuples/s, tuples that wait at the end) of each step; capacity goes from `before` to `after` at `ready` seconds."""
    processed: list[float] = []
    queue: list[float] = []
    for i, rate in enumerate(inflow):
        capacity = before if (i + 0.5) * STEP < ready else after
        done = min(waiting + rate * STEP, capacity * STEP)
        waiting = max(0.0, waiting + rate * STEP - done)
        processed.append(done / STEP)
        queue.append(waiting)
    return processed, queue


def sized(
    inflow: Sequence[float],
    waiting: float,
    width: int,
    per_unit: float,
    ready: float,
    by: float,
    latency: float,
    most: int,
) -> int:
    """The fewest sub-units, `width` at least, with which from `by` seconds on nothing waits longer than `latency`.

    Each processes `per_unit` tuples a second; new ones serve from `ready` on.
    """
    for n in range(width, most + 1):
        starts = 0.0 if n == width else ready
        _, queue = outflow(inflow, waiting, width * per_unit, n * per_unit, starts)
        late = [q for i, q in enumerate(queue) if (i + 1) * STEP >= by and q > latency * n * per_unit]
        if not late:
            return n
    return most
