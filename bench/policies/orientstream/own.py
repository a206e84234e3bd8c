"""The use of pipelines, by leaving them out: the same load, and the engine's own changes as the simulator models them.

A change of the engine takes as long as OrientStream's, but stops nothing until its last moments: the old sub-units go on until new
ones stand ready. So units may follow each change of the rate, and no window need be collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.policies.orientstream.model import LEVELS, PARALLELISM
from bench.policies.orientstream.stops import LOAD, STEP_MS, WINDOW_MS, asked_for
from esault.elasticity.action import Action, Rescale
from esault.elasticity.view import RunView
from esault.sim import Model, Operator, Source, simulate

__all__ = ["SYSTEMS", "Follow", "own"]

RATES = dict(LEVELS)
#: seconds a tuple takes a sub-unit, so that each configuration is busy for LOAD of its time at its rate
SERVICE = LOAD * PARALLELISM["B"] / RATES["B"]


@dataclass
class Follow:
    """A topology-wide policy that knows what each slice asks for, and wants it at once: switch each time."""

    asked: Sequence[str]
    period: float = 0.1

    def decide(self, view: RunView) -> Sequence[Action]:
        """The configuration of the slice that begins now."""
        unit = view.units["work"]
        n = PARALLELISM[self.asked[min(len(self.asked) - 1, round(1000 * view.since_start) // STEP_MS)]]
        if unit.changing or n == unit.width:
            return ()
        return [Rescale("the rate has changed", n, unit="work")]


#: `follow` knows the load; the policy sees windows of a second, with all that happens within one
SYSTEMS = ("follow", "orientstream")


def own(system: str, delta: float | None, seconds: float, seed: int) -> dict[str, Any]:
    """One of SYSTEMS. Latencies from arrival in seconds: mean of the second at each third of the run, and the worst; changes; mean width."""
    asked = list(asked_for(delta, seconds, seed))
    rate = lambda t: RATES[asked[min(len(asked) - 1, int(1000 * t + 1e-6) // STEP_MS)]]
    model = Model([Source("source", rate), Operator("work", ("source",), SERVICE, width=2, most=8)])
    policy = Follow(asked) if system == "follow" else f"orientstream:latency={WINDOW_MS / 1000},seed={seed}"
    run = simulate(model, "none", policies={"work": policy}, seconds=seconds, seed=seed)
    thirds = [round(third * seconds / 3) - 2 for third in (1, 2, 3)]
    return {
        "system": system,
        "delta": delta,
        "seed": seed,
        "latency": [run.latency.seconds[t][1] / run.latency.seconds[t][0] for t in thirds],
        "worst_from_arrival": run.latency.most,
        "changes": run.changes,
        "longest_change": max((c.seconds for c in run.operators["work"].changes), default=0.0),
        "parallelism": run.worker_seconds / seconds,
        "processed": run.operators["work"].processed / run.offered,
    }
