"""Every policy over its published parameters, on every load: the front of all of them, and where `auto` stands to it.

What one seed of the sweep puts on the front of its load is run with more seeds, beside `auto` as it is by default; fronts are then of the
medians. Each run is a line of sweep.jsonl as soon as it is over: a sweep that was ended goes on where it was.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.policies.compare import DRIFTING, FIXED_SHARES, LOADS, PEAK, POLICIES, beaten_by, one
from bench.policies.jobs import Job, kept, run_jobs

__all__ = ["CASES", "GRID", "sweep", "sweep_lines"]

_DS2 = "ds2:warm_up_time=1,policy_interval="
_FLINK = POLICIES["flink quick"]
_HPA = POLICIES["hpa quick"]
#: policy -> what it is run with: its times divided where they are made for minutes, as in the comparison, and then one or two
#: parameters that its authors name, about their default
GRID: Mapping[str, Sequence[str]] = {
    "auto": ("auto", "auto:latency=0.03", "auto:latency=0.5"),
    "probe": ("probe", "probe:target=0.5", "probe:target=0.8,high=0.92", "probe:patience=15"),
    "ds2": (
        f"{_DS2}2",
        f"{_DS2}1,scaling_factor=0.25,target_rate_ratio=1",
        f"{_DS2}2,scaling_factor=0.25,target_rate_ratio=1",
        f"{_DS2}5,scaling_factor=0.25,target_rate_ratio=1",
        f"{_DS2}1,scaling_factor=0.6,target_rate_ratio=1",
        f"{_DS2}2,scaling_factor=0.6,target_rate_ratio=1",
    ),
    "flink": (
        _FLINK,
        f"{_FLINK},utilization_target=0.5",
        f"{_FLINK},utilization_target=0.8,target_utilization_boundary=0.1",
        _FLINK.replace("scale_down_interval=30", "scale_down_interval=0").replace(
            "metrics_window=10", "metrics_window=4"
        ),
    ),
    "hpa": (
        _HPA,
        f"{_HPA},target=0.5",
        f"{_HPA},target=0.65",
        _HPA.replace("sync_period=2", "sync_period=1").replace("policy_period=2", "policy_period=1"),
        _HPA.replace("window=15", "window=60"),
    ),
    "dhalion": ("dhalion:interval=2,wait=6", "dhalion:interval=1,wait=3"),
    "autoscale": ("autoscale:period=1", "autoscale:period=2,theta_max=0.6"),
    "craa": ("craa:delivery=at_once", "craa:delivery=at_once,period=2", "craa:delivery=at_once,period=1,delta=0.5"),
    "threshold": ("threshold:period=1",),
    "kalman": ("kalman:period=1",),
    "esault": ("esault", "esault:max_latency=0.03"),
    "orientstream": ("orientstream", "orientstream:target=0.5"),
    "fixed": tuple(FIXED_SHARES),
}
#: new shapes first, then those of the comparison, then chains: (load, model)
_NEW = ("on_off", "week", "sawtooth", "telegraph", "slow_growth")
CHAINS = ("esault", "craa_step", "craa_jitter", "flash")
CASES: Sequence[tuple[str, str]] = (
    *((name, "count") for name in _NEW),
    *((name, name) for name in DRIFTING),
    *((name, "count") for name in LOADS if name not in _NEW and name not in DRIFTING),
    *((name, "chain") for name in CHAINS),
)
#: of the time of the comparison's loads, from their beginning; the new ones run whole
SHARE = 0.5
#: those of the front are run with so many seeds
SEEDS = 3


def _job(load: str, model: str, policy: str, seed: int, scale: float) -> Job:
    return Job(load, model, policy, seed, scale * (1.0 if load in _NEW or load in DRIFTING else SHARE))


def _timed(job: Job) -> dict[str, Any]:
    began = time.process_time()
    figures = one(job)
    kept = ("p99_ms", "below_100_ms", "workers", "changes", "load_changes", "unread")
    return {
        **{name: round(figures[name], 4) for name in kept},
        "processor_seconds": round(time.process_time() - began, 2),
    }


def _told(i: int, many: int, job: Job) -> None:
    if i % max(1, many // 40) == 0:
        print(f"  {i}/{many} ({job.load}, {job.policy})", flush=True)


def _points(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """Policy -> (p99, workers), medians over its seeds; without those that did not keep up."""
    found: dict[str, tuple[float, float]] = {}
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy]
        if statistics.median(row["unread"] for row in own) <= PEAK:
            found[policy] = statistics.median(r["p99_ms"] for r in own), statistics.median(r["workers"] for r in own)
    return found


def _near(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return the policies on the front, and those that beat `auto`."""
    points = _points(rows)
    beats = beaten_by("auto", points) if "auto" in points else []
    return (p for p in points if p == "auto" or p in beats or not beaten_by(p, points))


def sweep(folder: Path, quick: bool, seeds: int, scale: float) -> dict[str, Any]:
    """Run what is not in sweep.jsonl yet; the rows."""
    file = folder / "sweep.jsonl"
    done = kept(file)
    cases = CASES[:2] if quick else CASES
    grid = [spec for name, specs in GRID.items() for spec in (specs[:1] if quick else specs)]
    first = [_job(load, model, spec, 1, scale) for load, model in cases for spec in grid]
    run_jobs(first, _timed, file, done, _told)
    more: list[Job] = []
    for load, model in cases:
        rows = [done[_job(load, model, spec, 1, scale)] for spec in grid]
        chosen = list(_near(rows))
        more += [_job(load, model, spec, seed, scale) for spec in chosen for seed in range(2, seeds + 1)]
    run_jobs(more, _timed, file, done, _told)
    return {"seeds": seeds, "rows": [done[job] for job in dict.fromkeys([*first, *more])]}


def family(spec: str) -> str:
    """Name of the policy without its parameters."""
    return next((name for name, specs in GRID.items() if spec in specs), spec)


def fronts(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each case `auto`, the front of all sweeps, and who beats it: those with as many seeds alone."""
    found = []
    for load, model in dict.fromkeys((row["load"], row["model"]) for row in result["rows"]):
        rows = [row for row in result["rows"] if (row["load"], row["model"]) == (load, model)]
        seeds = {p: sum(row["policy"] == p for row in rows) for p in {row["policy"] for row in rows}}
        points = _points([row for row in rows if seeds[row["policy"]] == max(seeds.values())])
        front = sorted((p for p in points if not beaten_by(p, points)), key=lambda p: points[p])
        beats = sorted(beaten_by("auto", points), key=lambda p: points[p]) if "auto" in points else []
        own = {"points": points, "swept": _points(rows), "front": front, "beat auto": beats}
        found.append({"load": load, "model": model, **own})
    return found


def sweep_lines(result: Mapping[str, Any]) -> list[str]:
    """For people."""
    found = fronts(result)
    on = sum("auto" in each["front"] for each in found)
    out = [
        f"every policy over its published parameters, in the simulator: {len({r['policy'] for r in result['rows']})} configurations, "
        f"{len(found)} loads; one seed, those of each front and `auto` {result['seeds']} (medians)",
        f"auto with its defaults is on the front of all sweeps on {on} of {len(found)}",
        f"  {'load':24} {'model':10} {'auto: p99 ms, sub-units':>24}   the front: p99 ms, sub-units",
    ]
    for each in found:
        points = each["points"]
        own = f"{points['auto'][0]:.0f}, {points['auto'][1]:.2f}" if "auto" in points else "did not keep up"
        mark = " " if "auto" in each["front"] else "*"
        out.append(f"{mark} {each['load']:24} {each['model']:10} {own:>24}")
        for policy in each["front"]:
            if policy != "auto":
                beats = " BEATS auto" if policy in each["beat auto"] else ""
                out.append(f"  {'':60}   {points[policy][0]:8.0f}, {points[policy][1]:6.2f}  {policy}{beats}")
    return out
