"""All policies on all load shapes, in the simulator: how long tuples take, and what it costs.

Two models: `count`, one unit over keys, and `chain`, three units of which the middle one is heaviest. Every load is scaled to the same
peak; every policy runs it over the same seeds. Three loads are steady and have a model of their own that drifts: keys that are hot
in turn, a tuple that takes longer and longer until a restart, and a chain each of whose units is the slowest in turn.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.elastic.figures import spec_metrics
from bench.kit.measure import summary
from bench.policies.jobs import Job, kept, run_jobs
from bench.workloads.recorded import recorded
from esault.sim import Model, Operator, Source, simulate
from esault.sim.load_shapes import Lines, Load, Noisy, Steps
from esault.sim.loads import levels, load, scaled

__all__ = ["DRIFTING", "FIXED", "LOADS", "MODELS", "POLICIES", "beaten_by", "compare", "fronts", "one"]

#: tuples a second at the peak of every load
PEAK = 3000.0
#: seconds for a tuple in the heaviest unit: twelve sub-units are busy at the peak
SERVICE = 0.004
#: tuples that come at once, where it is not one: the eSault paper's emitter sends bursts
BURSTS = {"esault": 64.0}
#: share of its time that a sub-unit may be busy where the demand is drawn
BUSY = 0.8
#: seconds below which a tuple's latency is fine
FINE = 0.1

#: (seconds of a cycle, cycles): short enough to run many, long enough that policies can learn
_LENGTHS: Mapping[str, tuple[float, int]] = {
    "constant": (300.0, 1),
    "esault": (250.0, 2),
    "autoscale": (600.0, 1),
    "craa_step": (30.0, 12),
    "craa_jitter": (160.0, 3),
    "craa_sine": (300.0, 2),
    "craa_stage": (400.0, 1),
    "craa_random": (300.0, 1),
    "migration": (600.0, 1),
    "orientstream": (45.0, 8),
    "flash": (600.0, 1),
    "day": (600.0, 1),
    "week": (350.0, 2),
    "sawtooth": (80.0, 3),
    "telegraph": (300.0, 1),
    "slow_growth": (300.0, 1),
    "on_off": (20.0, 12),
}
#: steady loads, whose model drifts: tuples a second
DRIFTING = {"skew_moves": 1800.0, "degrades": 1000.0, "wanders": 1000.0}
#: seconds of these, and after which hot keys and the slowest unit are others
_DRIFT, _TURN = 360.0, 60.0
#: the model of "degrades": a tuple takes three times as long at the end, and is quick again after a restart
_AGE = Lines((0.0, 169.0, 170.0), (1.0, 3.0, 1.0), 180.0)
#: of a recorded load
_RECORDED = 600.0

#: those with windows of minutes run as documented, and with all their times divided, so that they see a load of minutes as theirs of hours
POLICIES: Mapping[str, str] = {
    "auto": "auto",
    "probe": "probe",
    "esault": "esault",
    "autoscale": "autoscale",
    "autoscale quick": "autoscale:period=2",
    "craa": "craa",
    "craa at once": "craa:delivery=at_once",
    "threshold": "threshold",
    "kalman": "kalman",
    "ds2": "ds2",
    "ds2 quick": "ds2:policy_interval=2,warm_up_time=1",
    # with the two ways of its configuration to have more than the model says: busy for 80 %, as `auto` is
    "ds2 roomy": "ds2:policy_interval=2,warm_up_time=1,scaling_factor=0.25,target_rate_ratio=1",
    "flink": "flink",
    "flink quick": "flink:reconcile_interval=2,metrics_window=10,stabilization_interval=5,scale_down_interval=30,"
    "catch_up_duration=20,restart_time=1,backlog_processing_lag_threshold=5",
    "dhalion": "dhalion",
    "dhalion quick": "dhalion:interval=2,wait=6",
    "hpa": "hpa",
    "hpa quick": "hpa:sync_period=2,scale_down_stabilization_window=15,policy_period=2",
    "orientstream": "orientstream",
}
#: numbers that never change: what the peak takes, and what the mean takes
FIXED = ("fixed peak", "fixed mean")
#: of the peak, what a number that never changes is for
FIXED_SHARES = {"fixed peak": 1.0, "fixed 0.8": 0.8, "fixed 0.6": 0.6, "fixed 0.4": 0.4}


def _loads() -> dict[str, tuple[Load, float]]:
    """Name -> load, and seconds to run it."""
    found: dict[str, tuple[Load, float]] = {}
    for name, (seconds, cycles) in _LENGTHS.items():
        made = levels(seconds / 3) if name == "orientstream" else load(name)
        found[name] = (scaled(made, peak=PEAK, duration=seconds), seconds * cycles)
    for name, made in recorded().items():
        shape = Noisy(scaled(made, peak=PEAK, duration=_RECORDED), spread=0.05, every=5.0)
        found[f"recorded {name}"] = (shape, _RECORDED)
    for name, rate in DRIFTING.items():
        found[name] = (Steps((0.0,), (rate,), _DRIFT), _DRIFT)
    return found


LOADS: Mapping[str, tuple[Load, float]] = _loads()


def _count(width: int) -> list[Operator]:
    return [Operator("count", ("in",), SERVICE, width, most=40, keys=[1.0] * 2000, state=20e6)]


def _chain(width: int) -> list[Operator]:
    def share(part: float) -> int:
        return max(1, math.ceil(width * part))

    return [
        Operator("parse", ("in",), SERVICE / 4, share(0.25), most=40),
        Operator("count", ("parse",), SERVICE, width, most=40, keys=[1.0] * 2000, state=20e6),
        Operator("join", ("count",), SERVICE / 3, share(1 / 3), most=40, keys=[1 / (i + 10) for i in range(1000)]),
    ]


def _skew_moves(width: int) -> list[Operator]:
    """Ten keys have two fifths of all tuples, others from turn to turn."""

    def weights(turn: int) -> list[float]:
        return [4.0 if i // 10 == turn else 60.0 / 1990 for i in range(2000)]

    later = [(turn * _TURN, weights(turn)) for turn in range(1, int(_DRIFT / _TURN))]
    return [Operator("count", ("in",), SERVICE, width, most=40, keys=weights(0), later_keys=later, state=20e6)]


def _degrades(width: int) -> list[Operator]:
    return [replace(each, pace=_AGE) for each in _count(width)]


def _wanders(width: int) -> list[Operator]:
    """Each of three takes four times as long in its turn."""
    found = []
    for i, (name, sender) in enumerate((("parse", "in"), ("count", "parse"), ("join", "count"))):
        slow = [4.0 if turn == i else 1.0 for turn in range(3)]
        points = [(t * _TURN + at, slow[t - (at == 0.0)]) for t in range(3) for at in (0.0, 5.0)]
        times, rates = zip(*points)
        pace = Lines(times, rates, 3 * _TURN)
        n = max(1, math.ceil(width * 2 / 3))
        found.append(Operator(name, (sender,), SERVICE / 2, n, most=40, keys=[1.0] * 2000, state=20e6, pace=pace))
    return found


MODELS: Mapping[str, Callable[[int], list[Operator]]] = {
    "count": _count,
    "chain": _chain,
    "skew_moves": _skew_moves,
    "degrades": _degrades,
    "wanders": _wanders,
}


def _demand(rate: Callable[[float], float], operator: Operator, seconds: float) -> list[tuple[float, int]]:
    """The fewest sub-units that are busy for at most `BUSY` of their time, looked at each second; a point for each change."""
    points: list[tuple[float, int]] = []
    for second in range(int(seconds)):
        n = max(1, math.ceil(rate(second + 0.5) * operator.service_at(second + 0.5) / BUSY - 1e-6))
        if not points or points[-1][1] != n:
            points.append((float(second), n))
    return points


def one(job: Job) -> dict[str, Any]:
    """Run it; figures for people."""
    shape, seconds = LOADS[job.load]
    seconds *= job.share
    pace = _AGE.rate if job.model == "degrades" else lambda t: 1.0
    mean = statistics.fmean(shape.rate(t + 0.5) * pace(t + 0.5) for t in range(int(seconds)))
    share = FIXED_SHARES.get(job.policy)
    start = mean if job.policy == "fixed mean" else shape.rate(0.0) if share is None else share * PEAK
    width = max(1, math.ceil(start * SERVICE / BUSY - 1e-6))
    operators = MODELS[job.model](width)
    source = Source("in", shape.rate, burst=BURSTS.get(job.load, 1.0), max_pending=2000.0)
    model = Model([source, *operators], slots=120)
    policy = "none" if job.policy.startswith("fixed") else POLICIES.get(job.policy, job.policy)
    run = simulate(model, policy, seconds=seconds, seed=job.seed)
    spec: list[dict[str, float]] = []
    needed = 0
    for operator in operators:
        wanted = _demand(shape.rate, operator, seconds)
        needed += sum(a[1] != b[1] for a, b in itertools.pairwise(wanted))
        spec.append(spec_metrics(run.operators[operator.name].trace, wanted, seconds))
    return {
        "p50_ms": 1000 * run.latency.percentile(0.5),
        "p99_ms": 1000 * run.latency.percentile(0.99),
        "max_ms": 1000 * run.latency.most,
        "below_100_ms": run.latency.below(FINE),
        "workers": run.worker_seconds / seconds,
        "worker_seconds": run.worker_seconds,
        "changes": float(run.changes),
        "load_changes": float(needed),
        "started": float(sum(o.started for o in run.operators.values())),
        "stopped": float(sum(o.stopped for o in run.operators.values())),
        "lost": run.dropped,
        "unread": run.lag + sum(o.waiting for o in run.operators.values()),
        **{name: statistics.fmean(s[name] for s in spec) for name in spec[0]},
    }


def compare(
    todo: Sequence[Job], told: Callable[[int, int, Job], None], file: Path
) -> dict[tuple[str, str, str], dict[str, Any]]:
    """(load, model, policy) -> for each figure the median over seeds, the least and the most.

    Each run is a line of `file` as soon as it is over, and those that it has are not run again. `told` hears of each that is done.
    """
    done = kept(file)
    run_jobs(todo, one, file, done, told)
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for job in todo:
        own = {name: figure for name, figure in done[job].items() if name not in asdict(job)}
        runs.setdefault((job.load, job.model, job.policy), []).append(own)
    return {key: {name: summary([r[name] for r in group]) for name in group[0]} for key, group in runs.items()}


def fronts(compared: Mapping[tuple[str, str, str], Mapping[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """(load, model) -> the policies that no other beats in both p99 and worker-seconds, the quickest first.

    A run that ends with much that was not processed is no policy's success: its p99 counts only what came out, so what was left for
    more than a second of the peak puts it off the front. Equal to 1 % is equal.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for where in dict.fromkeys((name, model) for name, model, _ in compared):
        group = {p: c for (name, model, p), c in compared.items() if (name, model) == where}
        fit = {p: c for p, c in group.items() if c["unread"]["median"] <= PEAK}
        points = {p: (float(c["p99_ms"]["median"]), float(c["workers"]["median"])) for p, c in fit.items()}
        found[where] = sorted((p for p in fit if not beaten_by(p, points)), key=lambda p: points[p][0])
    return found


def beaten_by(name: str, points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Those with both a lower p99 and fewer worker-seconds than `name`, of name -> (p99, workers). Equal to 1 % is equal."""
    p99, cost = points[name]
    others = ((o, a, b) for o, (a, b) in points.items() if o != name)
    return [o for o, a, b in others if a <= p99 and b <= cost and (a < 0.99 * p99 or b < 0.99 * cost)]
