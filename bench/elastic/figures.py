"""Figures of the elasticity bench from raw runs: pure functions. All times are the paper's (real time times the speed)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from bench.elastic.shape import Shape

__all__ = ["CLAIMS", "Line", "claims", "demand", "figures", "spec_metrics", "window"]

#: share of its time that a sub-unit may be busy where the demand is drawn
BUSY = 0.8
#: heartbeats come through the same mailbox; so many seconds without one is a failure (as the paper tells of its fixed runs)
HEARTBEAT = 10.0
#: (second, tuples, mean latency in seconds, largest)
Line = tuple[int, int, float, float]


def lines(seconds: Mapping[str, Sequence[float]]) -> list[Line]:
    """A run's bins in order."""
    return sorted((int(s), int(n), total / n, most) for s, (n, total, most) in seconds.items())


def window(run: list[Line], first: int, end: int) -> dict[str, float]:
    """Mean, standard deviation and largest of the means of each second, milliseconds."""
    means = [1000 * mean for second, _, mean, _ in run if first <= second < end]
    if len(means) < 2:
        return {"mean": math.nan, "sd": math.nan, "max": math.nan}
    return {"mean": statistics.fmean(means), "sd": statistics.stdev(means), "max": max(means)}


def _integral(trace: Sequence[tuple[float, int]], until: float) -> list[tuple[float, float, int]]:
    """(from, to, parallelism)"""
    points = [(min(t, until), n) for t, n in trace]
    return [(a[0], b[0], a[1]) for a, b in pairwise([*points, (until, 0)]) if b[0] > a[0]]


def figures(run: list[Line], trace: Sequence[tuple[float, int]], until: float) -> dict[str, float]:
    """Return what the issue compares: share of seconds under 100 ms, time-average parallelism, worst latency on the ramp, churn."""
    means = [mean for _, _, mean, _ in run]
    ramp = [most for second, _, _, most in run if second % 250 < 60]
    started = sum(max(0, b[1] - a[1]) for a, b in pairwise(trace) if b[0] < until)
    stopped = sum(max(0, a[1] - b[1]) for a, b in pairwise(trace) if b[0] < until)
    return {
        "below_100_ms": sum(mean < 0.1 for mean in means) / max(1, len(means)),
        "average_parallelism": sum((b - a) * n for a, b, n in _integral(trace, until)) / until,
        "worst_on_ramp_ms": 1000 * max(ramp, default=0.0),
        "started": started,
        "stopped": stopped,
        "started_and_stopped": started + stopped,
        "changes": sum(a[1] != b[1] for a, b in pairwise(trace) if b[0] < until),
        "most": max(n for t, n in trace if t < until),
        "least": min(n for t, n in trace if t < until),
        "heartbeat_failed": float(max((most for *_, most in run), default=0.0) > HEARTBEAT),
    }


def demand(shape: Shape, capacity: float, until: float) -> list[tuple[float, int]]:
    """The fewest sub-units that are busy for at most 80 % of their time, sharing evenly; a point for each step."""
    plain = Shape(shape.base, shape.step, shape.levels)
    return [(t, max(1, math.ceil(rate / (capacity * BUSY)))) for t, rate in plain.steps(until)]


def spec_metrics(
    trace: Sequence[tuple[float, int]], wanted: Sequence[tuple[float, int]], until: float
) -> dict[str, float]:
    """Elasticity as the SPEC Research Group measures it (Herbst et al., 2013 and 2016), relative to the demand.

    accuracy_under and accuracy_over: mean of what was missing or too much, over the demand; timeshare_under and timeshare_over:
    share of the time; jitter: adaptations a minute beyond those of the demand.
    """
    edges = sorted({t for t, _ in trace if t < until} | {t for t, _ in wanted if t < until} | {0.0, until})
    missing = extra = under = over = 0.0
    for a, b in pairwise(edges):
        have = [n for t, n in trace if t <= a][-1]
        need = [n for t, n in wanted if t <= a][-1]
        missing += (b - a) * max(0, need - have) / need
        extra += (b - a) * max(0, have - need) / need
        under += (b - a) * (have < need)
        over += (b - a) * (have > need)
    changes = sum(a[1] != b[1] for a, b in pairwise(trace) if b[0] < until)
    steps = sum(a[1] != b[1] for a, b in pairwise(wanted) if b[0] < until)
    return {
        "accuracy_under": missing / until,
        "accuracy_over": extra / until,
        "timeshare_under": under / until,
        "timeshare_over": over / until,
        "jitter_per_minute": 60 * (changes - steps) / until,
    }


#: what the paper says of its Fig. 6 and 7, see docs/explanation/elasticity.md
CLAIMS = ("R1", "R2", "R3", "R4", "R5", "R6")


def claims(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Those of `CLAIMS` whose runs are there, on medians over seeds; `groups` holds processed runs by name. Names what was seen."""

    def median(name: str, what: str) -> float:
        return float(statistics.median(run["plateau"][what] for run in groups[name]))

    made: list[dict[str, Any]] = []

    def claim(name: str, text: str, holds: bool, seen: str) -> None:
        made.append({"claim": name, "text": text, "reproduced": bool(holds), "seen": seen})

    ours = groups["esault"]
    peaks = [n for run in ours for n in run["peaks"]]
    troughs = [n for run in ours for n in run["troughs"]]
    claim(
        "R1",
        "elastic parallelism starts at 2, reaches 7 to 9 in each cycle, returns to 1 in each trough",
        all(run["trace"][0][1] == 2 for run in ours)
        and all(7 <= n <= 9 for n in peaks)
        and all(n == 1 for n in troughs),
        f"peaks {peaks}, troughs {troughs}",
    )
    shares = [run["figures"]["below_100_ms"] for run in ours]
    claim(
        "R2",
        "at least 90 % of the seconds have a mean latency below 100 ms",
        statistics.median(shares) >= 0.9,
        ", ".join(f"{s:.1%}" for s in shares),
    )
    if all(name in groups for name in ("fixed 1", "fixed 2")):
        fails = {
            n: [bool(r["figures"]["heartbeat_failed"]) for r in groups[n]] for n in ("fixed 1", "fixed 2", "esault")
        }
        claim(
            "R3",
            "fixed 1 and 2 fail the heartbeat check, elastic never does",
            all(fails["fixed 1"]) and all(fails["fixed 2"]) and not any(fails["esault"]),
            "; ".join(f"{n}: {sum(f)} of {len(f)} failed" for n, f in fails.items()),
        )
    if all(f"fixed {n}" in groups for n in (4, 6, 8, 10)):
        mean = {n: median(f"fixed {n}", "mean") for n in (4, 6, 8, 10)}
        elastic = median("esault", "mean")
        wide = all(median(f"fixed {n}", what) >= 2 * median("fixed 8", what) for n in (4, 6) for what in ("sd", "max"))
        order = mean[4] > mean[6] > elastic >= mean[8] >= mean[10]
        seen = ", ".join(f"{n}: {m:.1f}" for n, m in mean.items())
        claim(
            "R4",
            "in 60 to 110 s mean(4) > mean(6) > elastic >= mean(8) >= mean(10), sd and max of 4 and 6 at least twice those of 8",
            order and wide,
            f"{seen}, elastic: {elastic:.1f} ms; sd and max {'are' if wide else 'are not'} twice as large",
        )
        claim("R5", "mean(10) >= 0.7 x mean(8)", mean[10] >= 0.7 * mean[8], f"{mean[10] / mean[8]:.2f}")
    runs = [run for group in groups.values() for run in group]
    exact = all(run["emitted"] == run["counted"] and not run["words_in_two_places"] for run in runs)
    claim(
        "R6",
        "no word is lost: final counts equal what was emitted, in every run",
        exact,
        f"{sum(r['emitted'] for r in runs):,} emitted, {sum(r['counted'] for r in runs):,} counted, "
        f"{sum(r['replayed'] for r in runs)} roots replayed",
    )
    return made
