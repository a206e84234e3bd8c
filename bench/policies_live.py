"""The same load on real actors and in the simulator, under the same policy: whether one can be taken for the other.

The eSault paper's words (bench/elastic_topology.py): bursts of 64, a service of 1/560 s that is slept, one cycle of steps up and down.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from typing import Any

from bench.elastic_figures import figures, lines
from bench.elastic_model import WORDS, Shape
from bench.elastic_topology import BURST, bursts
from esault.sim import Model, Operator, Source, simulate
from esault.sim.latencies import FINE, Latencies

__all__ = ["COMPARED", "compared", "live", "text"]

ROOT = Path(__file__).parents[1]
CAPACITY = 560.0
#: seconds of the simulator's steps
STEP = 0.02
COMPARED = {
    "below_100_ms": "share of seconds under 100 ms",
    "p99_ms": "p99, ms",
    "average_parallelism": "sub-units on average",
    "changes": "changes",
    "most": "most sub-units",
    "worst_on_ramp_ms": "worst latency on the ramp, ms",
}


def live(policy: str, seconds: float, seed: int) -> dict[str, Any]:
    """On actors, in a process of its own, in real time. Raises RuntimeError."""
    command = [sys.executable, "-m", "bench.elastic_run", "--policy", policy, "--seed", str(seed), "--speed", "1"]
    done = subprocess.run(
        [*command, "--seconds", str(seconds)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90 + 2 * seconds,
        check=False,
    )
    if done.returncode or not done.stdout.strip():
        raise RuntimeError(f"the run of {policy!r}, seed {seed}, failed:\n{done.stderr.strip()[-3000:]}")
    run: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    seen = lines(run["seconds"])
    trace = [(float(t), int(n)) for t, n in run["parallelism"]]
    return {
        "lines": seen,
        "trace": trace,
        "figures": {**figures(seen, trace, seconds), "p99_ms": 1000 * _percentile(run["logs"], 0.99)},
        "emitted": run["emitted"],
        "counted": run["counted"],
        "replayed": run["replayed"],
    }


def _percentile(logs: Mapping[str, int], share: float) -> float:
    """Seconds that this share of tuples took at most, from their counts by logarithm."""
    latencies = Latencies()
    for log, count in logs.items():
        latencies.add(0.0, math.exp(int(log) / FINE), count)
    return latencies.percentile(share)


def simulated(policy: str, seconds: float, seed: int) -> dict[str, Any]:
    """In virtual time."""
    count = Operator("count", ("emitter",), 1 / CAPACITY, width=2, most=16, keys=[1.0] * len(WORDS))
    # The very bursts that the spout sends: what one of the two has by chance, the other has, too.
    due = Counter(int(at / STEP) for at in takewhile(lambda at: at < seconds, bursts(Shape(), seed)))
    source = Source("emitter", lambda t: due[int(t / STEP)] * BURST / STEP, burst=0)
    run = simulate(Model([source, count]), policy, seconds=seconds, seed=seed, step=STEP)
    seen = lines({str(second): each for second, each in run.latency.seconds.items()})
    trace = [(float(t), n) for t, n in run.operators["count"].trace]
    found = {**figures(seen, trace, seconds), "p99_ms": 1000 * run.latency.percentile(0.99)}
    return {"lines": seen, "trace": trace, "figures": found}


def compared(policies: Sequence[str], seconds: float, seeds: Sequence[int], side_by_side: int = 3) -> dict[str, Any]:
    """Policy -> its runs live and simulated, one for each seed."""
    todo = [(policy, seed) for seed in seeds for policy in policies]
    with ThreadPoolExecutor(side_by_side) as pool:
        lived = []
        for (policy, seed), run in zip(todo, pool.map(lambda each: live(each[0], seconds, each[1]), todo)):
            lived.append(run)
            print(f"  {len(lived)}/{len(todo)} live runs of {seconds:g} s ({policy}, seed {seed})", flush=True)
    found: dict[str, Any] = {policy: {"live": [], "sim": []} for policy in policies}
    for (policy, seed), run in zip(todo, lived):
        found[policy]["live"].append(run)
        found[policy]["sim"].append(simulated(policy, seconds, seed))
    return found


def text(result: dict[str, Any]) -> list[str]:
    """For people."""
    out = ["live on actors, and the same load, burst by burst, in the simulator; one line for each seed"]
    for policy, runs in result.items():
        for where in ("live", "sim"):
            means = {name: statistics.fmean(run["figures"][name] for run in runs[where]) for name in COMPARED}
            out.append(
                f"  {policy:8} {where:4} mean: "
                + ", ".join(f"{label} {means[name]:.3g}" for name, label in COMPARED.items())
            )
    for policy, runs in result.items():
        for where in ("live", "sim"):
            for run in runs[where]:
                f = run["figures"]
                figures_of = ", ".join(f"{label} {f[name]:.3g}" for name, label in COMPARED.items())
                lost = f"; {run['emitted']:,} emitted, {run['counted']:,} counted" if where == "live" else ""
                out.append(f"  {policy:8} {where:4} {figures_of}{lost}")
    return out
