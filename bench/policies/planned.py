"""The forecasts of `esault plan` beside live runs: a little run says what a tuple takes, and the same policy then meets the load.

Work is slept (bench/policies/planned_topology.py), so that a machine of few cores can have many sub-units. What else goes on
there delays the live runs alone: the load average stands beside each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.policies.planned_topology import LOADS

__all__ = ["experiment", "lines", "width"]

ROOT = Path(__file__).parents[2]
TOPOLOGY = "bench/policies/planned_topology.py"
POLICY, OBJECTIVE = "auto", "p99 < 100 ms"
#: tuples that one of the load becomes before it comes to a unit
PARTS = {"count": 8}
#: slots of bolts; the spout takes one more
SLOTS = 16
#: live runs of each load
RUNS = 3
#: what is compared, in the words of a trial of `esault plan`
COMPARED = {"p99": "p99, s", "mean": "sub-units", "most": "at most", "changes": "changes"}


def _esault(*arguments: str) -> str:
    """Return what the command prints. Raises RuntimeError."""
    command = [sys.executable, "-m", "esault", arguments[0], TOPOLOGY, *arguments[1:]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode:
        raise RuntimeError(f"esault {' '.join(arguments)} failed:\n{done.stderr.strip()[-3000:]}")
    return done.stdout


def width(traces: Sequence[Sequence[tuple[float, int]]], seconds: float) -> tuple[float, int]:
    """Return how many sub-units several units had together, on average and at most, from (time, number) of each."""
    mean, changes = 0.0, sorted({at for trace in traces for at, _ in trace})
    for trace in traces:
        for (at, many), (until, _) in pairwise([*trace, (max(seconds, trace[-1][0]), 0)]):
            mean += many * (until - at) / seconds
    most = max(sum([many for at, many in trace if at <= moment][-1] for trace in traces) for moment in changes)
    return mean, most


def _live(report: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a report."""
    bolts = {name for name in report["units"] if name != "in"}
    traces = [[(float(at), int(many)) for at, many in report["units"][name]["parallelism"]] for name in bolts]
    # A unit has its first sub-unit from the beginning.
    due = sum(LOADS[report["topology"].removeprefix("planned-")])
    mean, most = width([[(0.0, trace[0][1]), *trace[1:]] for trace in traces], report["seconds"])
    return {
        "p99": report["end_to_end_ms"]["p99"] / 1000,
        "mean": mean,
        "most": most,
        "changes": sum(change["unit"] in bolts and not change["dropped"] for change in report["changes"]),
        "amiss": sum(abs(report["units"][name]["tuples_in"] - due * PARTS.get(name, 1)) for name in bolts),
    }


def _case(name: str, runs: int, folder: Path) -> dict[str, Any]:
    load, little, report = folder / f"{name}.csv", folder / f"{name}.little.json", folder / f"{name}.json"
    load.write_text("time,rate\n" + "".join(f"{second},{rate}\n" for second, rate in enumerate(LOADS[name])))
    chosen = ("--set", f"load={name}")
    _esault("run", *chosen, "--set", "little=true", "--report", str(little))
    asked = ("--load", str(load), "--objective", OBJECTIVE, "--slots", str(SLOTS), "--json")
    planned = json.loads(_esault("plan", *chosen, "--report", str(little), *asked))
    trials = next(each for each in planned if each["policy"] == POLICY)["trials"]
    lived = []
    for _ in range(runs):
        before = os.getloadavg()[0]
        _esault("run", *chosen, "--slots", str(SLOTS + 1), "--objective", OBJECTIVE, "--report", str(report))
        lived.append({**_live(json.loads(report.read_text())), "loads": [before, os.getloadavg()[0]]})
        print(f"  {name}: live p99 {lived[-1]['p99']:.3g} s, load average {lived[-1]['loads'][1]:.1f}", flush=True)
    return {"load": name, "planned": trials, "live": lived}


def experiment(quick: bool, runs: int | None) -> dict[str, Any]:
    """Each load: a little run, the plan, and live runs."""
    names = ["calls"] if quick else list(LOADS)
    with tempfile.TemporaryDirectory() as folder:
        cases = [_case(name, runs or (1 if quick else RUNS), Path(folder)) for name in names]
    return {"quick": quick, "cases": cases}


def _told(values: Sequence[float]) -> str:
    return " ".join(f"{value:.3g}" for value in values)


def lines(result: Mapping[str, Any]) -> list[str]:
    """For people."""
    out = [
        f"`esault plan` with `{POLICY}` beside live runs of it: slept work, {SLOTS} slots, objective {OBJECTIVE}; a load of 30 s",
        "planned: with what was measured, and (least to most) of all six trials; live: each run",
    ]
    for case in result["cases"]:
        loads = [load for run in case["live"] for load in run["loads"]]
        amiss = sum(run["amiss"] for run in case["live"])
        out.append(
            f"  {case['load']}: load average {min(loads):.1f} to {max(loads):.1f}; {amiss} tuples lost or repeated"
        )
        for what, label in COMPARED.items():
            values = [float(trial[what]) for trial in case["planned"]]
            lived = [float(run[what]) for run in case["live"]]
            inside = sum(min(values) <= value <= max(values) for value in lived)
            out.append(
                f"    {label:10} planned {values[0]:.3g} ({min(values):.3g} to {max(values):.3g}), live {_told(lived)}; "
                f"{inside} of {len(lived)} within"
            )
    return out
