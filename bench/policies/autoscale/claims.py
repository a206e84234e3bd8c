"""Claims of AUTOSCALE's paper, each with a check. A check reads the reference's runs and ours in the same way."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from bench.policies.claims import Checks, Verdict

__all__ = ["claims"]

#: by setup, one run for each seed
Runs = Mapping[str, Sequence[Any]]
#: tuples that may be late where none should be: fluid amounts are not whole
NONE_LATE = 0.5


def _degrees(run: Any, operator: str, first: int, at: float) -> int:
    """Tasks at a moment."""
    return next((b for t, n, _, b in reversed(run.actions) if n == operator and t <= at), first)


def _saved(runs: Runs) -> list[float]:
    """Share of the static expert's task-seconds that AUTOSCALE spared, by seed."""
    pairs = zip(runs["ConfExpt + AUTOSCALE"], runs["ConfExpt static"])
    return [1 - ours.task_seconds / static.task_seconds for ours, static in pairs]


def _plateaus(runs: Runs) -> list[float]:
    """Latency on the plateau over the static expert's, by seed."""
    pairs = zip(runs["ConfExpt + AUTOSCALE"], runs["ConfExpt static"])
    return [o.plateau / static.plateau if o.plateau and static.plateau else math.inf for o, static in pairs]


def _spares(runs: Runs) -> tuple[str, bool]:
    saved, ratio = _saved(runs), _plateaus(runs)
    late = max(r.late for r in runs["ConfExpt + AUTOSCALE"])
    good = statistics.fmean(saved) >= 0.25 and all(0.9 <= v <= 1.1 for v in ratio) and late < NONE_LATE
    said = ", ".join(f"{v:.1%}" for v in saved)
    return f"{said} fewer task-seconds, latency on the plateau x {statistics.fmean(ratio):.3f}, late {late:.0f}", good


def _in_simulator(runs: Runs, column: str) -> Verdict:
    return _spares(runs) if column == "sim" else None


def claims(rows: Mapping[str, Runs], others: Mapping[str, Runs]) -> list[dict[str, Any]]:
    """One entry for each. `rows`: by column, the linear topology; `others`: ours, by topology."""
    claim = Checks("autoscale")

    @claim(
        "congestion",
        "one task each, static: the rise is not taken, and nothing is in time any more (the simulator replays nothing)",
        "total congestion, every tuple is replayed for ever",
        "no minute with a tuple in time from the rise to the end, and over 10 000 late emissions",
    )
    def congestion(column: str) -> Verdict:
        runs = rows[column]["ConfMin static"]
        last = max(r.last_on_time for r in runs)
        silent = all(not any(r.minutes[int(last // 60) + 1 :]) for r in runs)
        late = statistics.fmean(r.late for r in runs)
        return f"last tuple in time at {last:.0f} s, {late:,.0f} late", silent and last < 600 and late > 10_000

    @claim(
        "follows",
        "one task each, AUTOSCALE: the degree of the critical operator rises with the stream, and falls with it",
        "variations are absorbed",
        "no late tuple, 10 sink tasks or more on the plateau, 1 at the end",
    )
    def follows(column: str) -> Verdict:
        runs = rows[column]["ConfMin + AUTOSCALE"]
        late = max(r.late for r in runs)
        top = min(_degrees(r, "sink", 1, 1200.0) for r in runs)
        bottom = max(_degrees(r, "sink", 1, 2220.0) for r in runs)
        return f"late {late:.0f}, {top} tasks on the plateau, {bottom} at the end", (
            late < NONE_LATE and top >= 10 and bottom == 1
        )

    claim(
        "spares",
        "12 sink tasks at the start, AUTOSCALE against static: resources and latency",
        "about 30 % fewer, equivalent latency",
        "25 % fewer task-seconds in the mean of the seeds, latency on the plateau within 10 %, no late tuple",
    )(lambda column: _spares(rows[column]))

    @claim(
        "untouched",
        "an operator that has capacity is left alone",
        "one task in all configurations",
        "no change of the intermediate operator in any run",
    )
    def untouched(column: str) -> Verdict:
        names = [n for n in rows[column] if "AUTOSCALE" in n]
        changed = sum(n == "intermediate" for name in names for r in rows[column][name] for _, n, _, _ in r.actions)
        return f"{changed} changes of the intermediate operator", changed == 0

    @claim(
        "anticipates",
        "formula (2) as printed forecasts what has been: mean latency, maxP 24",
        "(the forecast anticipates)",
        "more than twice the mean latency as printed",
    )
    def anticipates(column: str) -> Verdict:
        means = [
            statistics.fmean(r.mean for r in rows[column][name])
            for name in ("ConfMin + AUTOSCALE, maxP 24, printed (2)", "ConfMin + AUTOSCALE, maxP 24")
        ]
        return f"{means[0]:.3f} s as printed, {means[1]:.3f} s extrapolated", means[0] > 2 * means[1]

    for shape, runs in others.items():
        claim(
            shape,
            f"{shape} topology, AUTOSCALE against static: resources and latency",
            "results are said to be similar",
            "as for the linear topology",
        )(partial(_in_simulator, runs))
    return claim.found
