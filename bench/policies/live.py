"""The same load on real actors and in the simulator, under the same policy: whether one can be taken for the other.

The eSault paper's words (bench/elastic/topology.py): bursts of 64, a service of 1/560 s that is slept, one cycle of steps up and down.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from bench.elastic.figures import figures, lines
from bench.elastic.shape import Shape
from bench.elastic.simulated import simulated as in_virtual_time
from bench.elastic.topology import BURST, bursts
from esault.sim import Timing
from esault.sim.latencies import FINE, Latencies

__all__ = ["COMPARED", "Trial", "compared", "live", "simulated", "text", "words"]

ROOT = Path(__file__).parents[2]
CAPACITY = 560.0
COMPARED = {
    "below_100_ms": "share of seconds under 100 ms",
    "p99_ms": "p99, ms",
    "average_parallelism": "sub-units on average",
    "changes": "changes",
    "most": "most sub-units",
    "worst_on_ramp_ms": "worst latency on the ramp, ms",
}


@dataclass(frozen=True)
class Trial:
    """A load on one unit over keys."""

    #: seconds at which bursts are due, and tuples in one
    times: tuple[float, ...]
    seconds: float
    burst: int = BURST
    #: tuples a second of one sub-unit
    capacity: float = CAPACITY
    #: sub-units at the start and at most
    start: int = 2
    most: int = 16


def words(seconds: float, seed: int) -> Trial:
    """The eSault paper's."""
    return Trial(tuple(takewhile(lambda at: at < seconds, bursts(Shape(), seed))), seconds)


def live(policy: str, trial: Trial, seed: int) -> dict[str, Any]:
    """On actors, in a process of its own, in real time. Raises RuntimeError."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(trial.times, file)
        file.flush()
        command = [sys.executable, "-m", "bench.elastic.run", "--policy", policy, "--speed", "1", "--times", file.name]
        given = {"seed": seed, **{n: getattr(trial, n) for n in ("seconds", "burst", "capacity", "start", "most")}}
        done = subprocess.run(
            [*command, *(part for name, value in given.items() for part in (f"--{name}", str(value)))],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=90 + 2 * trial.seconds,
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
        "figures": {**figures(seen, trace, trial.seconds), "p99_ms": 1000 * _percentile(run["logs"], 0.99)},
        "emitted": run["emitted"],
        "counted": run["counted"],
        "replayed": run["replayed"],
        "changes": run["changes"],
    }


def _percentile(logs: Mapping[str, int], share: float) -> float:
    """Seconds that this share of tuples took at most, from their counts by logarithm."""
    latencies = Latencies()
    for log, count in logs.items():
        latencies.add(0.0, math.exp(int(log) / FINE), count)
    return latencies.percentile(share)


def simulated(
    policy: str, trial: Trial, seed: int, timing: Timing | None = None, whole: bool = False, begins: float = 0.0
) -> dict[str, Any]:
    """In virtual time, with the very bursts that the spout sends: what one of the two has by chance, the other has, too.

    `timing`: what changes take; `whole`: tuples are drawn one by one; `begins`: of the load, after a policy's window has begun.
    """
    given: dict[str, Any] = {n: getattr(trial, n) for n in ("burst", "capacity", "start", "most")}
    given |= {"timing": timing, "whole": whole, "begins": begins}
    run, seen, trace = in_virtual_time(policy, trial.times, trial.seconds, seed, **given)
    found = {**figures(seen, trace, trial.seconds), "p99_ms": 1000 * run.latency.percentile(0.99)}
    return {"lines": seen, "trace": trace, "figures": found}


def compared(policies: Mapping[str, str], trials: Mapping[int, Trial], side_by_side: int = 3) -> dict[str, Any]:
    """Policy -> its runs live and simulated, one for each seed."""
    todo = [(name, seed) for seed in trials for name in policies]
    lived = []
    with ThreadPoolExecutor(side_by_side) as pool:
        runs = pool.map(lambda each: live(policies[each[0]], trials[each[1]], each[1]), todo)
        for (name, seed), found in zip(todo, runs):
            lived.append(found)
            took = f"{trials[seed].seconds:g} s"
            print(f"  {len(lived)}/{len(todo)} live runs of {took} ({name}, seed {seed})", flush=True)
    result: dict[str, Any] = {name: {"live": [], "sim": []} for name in policies}
    for (name, seed), found in zip(todo, lived):
        result[name]["live"].append(found)
        result[name]["sim"].append(simulated(policies[name], trials[seed], seed))
    return result


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
