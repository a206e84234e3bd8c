"""The experiment in virtual time: the engine's policies in its simulator, with the very bursts that the spout sends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bench.elastic.figures import Line, lines
from bench.elastic.shape import WORDS
from bench.elastic.topology import BURST
from esault.sim import Model, Operator, Run, Source, Timing, simulate

__all__ = ["simulated"]

#: seconds of the simulator's steps
STEP = 0.02


def simulated(
    policy: str,
    times: Iterable[float],
    seconds: float,
    seed: int,
    *,
    burst: int = BURST,
    capacity: float = 560.0,
    start: int = 2,
    most: int = 16,
    timing: Timing | None = None,
    whole: bool = False,
    begins: float = 0.0,
) -> tuple[Run, list[Line], list[tuple[float, int]]]:
    """A run with bursts at these times, its latency second by second, and its sub-units over time; `timing`: of changes.

    `begins`: seconds after the begin of a policy's window at which the first second of the load begins.
    """
    count = Operator("count", ("emitter",), 1 / capacity, start, most=most, keys=[1.0] * len(WORDS), whole=whole)
    due = Counter(int((begins + at) / STEP) for at in times)
    source = Source("emitter", lambda t: due[int(t / STEP)] * burst / STEP, burst=0)
    run = simulate(Model([source, count], timing=timing or Timing()), policy, seconds=seconds, seed=seed, step=STEP)
    seen = lines({str(second): each for second, each in run.latency.seconds.items()})
    return run, seen, [(float(t), n) for t, n in run.operators["count"].trace]
