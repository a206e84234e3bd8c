"""AUTOSCALE's experiment: a stream that rises, stays and falls in steps, static tasks against tasks that AUTOSCALE sets.

Columns: the reference (discrete events with time-outs and replays, a reading of the paper of its own) and ours in the
simulator, which has no replays: there a tuple is late when it took longer than the time-out. The paper prints the linear
topology and calls diamond and star similar; those are ours alone, with rates that load the expert's tasks as the linear one's.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.policies.autoscale.claims import claims
from bench.policies.autoscale.model import END, PLATEAU, Figures, rate
from bench.policies.autoscale.model import simulate as reference
from bench.policies.claims import claim_lines
from esault.sim import Model, Operator, Source
from esault.sim import simulate as simulated

__all__ = ["Setup", "experiment", "lines"]

#: seconds until a tuple is late
TIMEOUT = 30.0
#: standard deviation of a factor that is uniform in 0.8 .. 1.2
NOISE = 0.4 / 12**0.5
#: a replay storm is stopped here
MOST_EVENTS = 1_500_000
INTERMEDIATE, SINK = 0.002, 0.08


@dataclass(frozen=True)
class Setup:
    """A configuration of the linear topology: tasks of the sink at the start and at most, and who sets them."""

    width: int
    most: int = 12
    #: parameters of `autoscale`; None: static
    spec: str | None = None
    #: the same for the reference
    parameters: Mapping[str, Any] = field(default_factory=dict)


SETUPS = {
    "ConfExpt static": Setup(12),
    "ConfExpt + AUTOSCALE": Setup(12, spec="autoscale"),
    "ConfMin static": Setup(1),
    "ConfMin + AUTOSCALE": Setup(1, spec="autoscale"),
    "ConfExpt + AUTOSCALE, maxP 24": Setup(12, 24, "autoscale"),
    "ConfMin + AUTOSCALE, maxP 24": Setup(1, 24, "autoscale"),
    "ConfExpt + AUTOSCALE, Delta 30": Setup(12, spec="autoscale:period=5", parameters={"delta": 30.0}),
    "ConfMin + AUTOSCALE, maxP 24, printed (2)": Setup(1, 24, "autoscale:mode=printed", {"mode": "printed"}),
}


@dataclass
class Row:
    """Figures of one run. Latencies in seconds; None where no tuple was in time."""

    late: float
    mean: float
    plateau: float | None
    task_seconds: float
    last_on_time: float
    #: (at, operator, before, after)
    actions: list[tuple[float, str, int, int]]
    #: tuples that were done in time in each minute
    minutes: list[float]
    #: emissions, replays counted; in the simulator the tuples that were due
    emissions: float


def _reference(setup: Setup, seed: int, end: float) -> Row:
    most = MOST_EVENTS if setup.spec is None and setup.width == 1 else 3_000_000
    run: Figures = reference(
        (1, setup.width),
        setup.spec is not None,
        seed,
        most=(24, setup.most),
        timeout=TIMEOUT,
        end=end,
        most_events=most,
        **setup.parameters,
    )
    minutes = [0.0] * (int(min(run.until, end)) // 60)
    for at, _ in run.latencies:
        if at < 60 * len(minutes):
            minutes[int(at // 60)] += 1
    seconds = run.task_seconds
    return Row(run.late, run.mean, run.plateau, seconds, run.last_on_time, run.actions, minutes, run.emissions)


def linear(setup: Setup) -> Model:
    """source -> intermediate -> sink"""
    return Model(
        [
            Source("source", rate, noise=NOISE),
            Operator("intermediate", ("source",), INTERMEDIATE, most=24),
            Operator("sink", ("intermediate",), SINK, setup.width, most=setup.most),
        ]
    )


def diamond(setup: Setup) -> Model:
    """source -> three intermediates -> sink, which gets each tuple of the source from each of them."""
    middle = [f"intermediate {i}" for i in (1, 2, 3)]
    return Model(
        [
            Source("source", lambda t: rate(t) / 3, noise=NOISE),
            *(Operator(name, ("source",), INTERMEDIATE, most=24) for name in middle),
            Operator("sink", tuple(middle), SINK, setup.width, most=setup.most),
        ]
    )


def star(setup: Setup) -> Model:
    """Three sources -> intermediate -> three sinks, each of which gets all tuples, takes three times as long and has a third of the tasks."""
    sources = [f"source {i}" for i in (1, 2, 3)]
    share = (setup.width + 2) // 3
    return Model(
        [
            *(Source(name, lambda t: rate(t) / 27, noise=NOISE) for name in sources),
            Operator("intermediate", tuple(sources), INTERMEDIATE, most=24),
            *(Operator(f"sink {i}", ("intermediate",), 3 * SINK, share, most=setup.most // 3) for i in (1, 2, 3)),
        ]
    )


def _simulated(model: Model, setup: Setup, seed: int, end: float) -> Row:
    run = simulated(model, setup.spec or "none", seconds=end, seed=seed)
    if any(d.outcome.startswith("failed") for d in run.decisions):
        raise RuntimeError(f"policy {setup.spec!r} failed: {run.notices}")
    latency = run.latency
    waiting = sum(o.waiting for o in run.operators.values())
    minutes = [0.0] * (int(end) // 60)
    plateau = [0.0, 0.0]
    last = 0.0
    for second, (count, total, _) in sorted(latency.seconds.items()):
        if total <= TIMEOUT * count:  # in order of arrival the tuples of one second took about the same time
            last = min(end, second + 1.0)
            if second // 60 < len(minutes):
                minutes[second // 60] += count
            if PLATEAU[0] <= second < PLATEAU[1]:
                plateau = [plateau[0] + count, plateau[1] + total]
    late = latency.count * (1 - latency.below(TIMEOUT)) + (waiting if waiting > TIMEOUT * rate(end - 1) else 0.0)
    actions = sorted((c.at, name, c.before, c.after) for name, o in run.operators.items() for c in o.changes)
    mean = plateau[1] / plateau[0] if plateau[0] else None
    return Row(late, latency.mean, mean, run.worker_seconds, last, actions, minutes, run.offered)


def experiment(quick: bool, seeds: Sequence[int]) -> dict[str, Any]:
    """All tables and claims. `quick`: as long, with the first seed and the linear topology only: a shorter stream has no plateau."""
    seeds = seeds[:1] if quick else seeds
    end = float(END)
    rows: dict[str, dict[str, list[Row]]] = {
        "reference": {name: [_reference(s, seed, end) for seed in seeds] for name, s in SETUPS.items()},
        "sim": {name: [_simulated(linear(s), s, seed, end) for seed in seeds] for name, s in SETUPS.items()},
    }
    names = ["ConfExpt static", "ConfExpt + AUTOSCALE", "ConfMin + AUTOSCALE"]
    others = {
        shape: {name: [_simulated(made(SETUPS[name]), SETUPS[name], seed, end) for seed in seeds] for name in names}
        for shape, made in ({} if quick else {"diamond": diamond, "star": star}).items()
    }
    tables = [
        *({"name": "linear topology", "column": column, "rows": _rows(runs)} for column, runs in rows.items()),
        *({"name": f"{shape} topology", "column": "sim", "rows": _rows(runs)} for shape, runs in others.items()),
    ]
    return {
        "paper": "AUTOSCALE: Kotto-Kombi, Lumineau, Lamarre, EGC 2017, pp. 57-68, hal-01460709",
        "seconds": end,
        "seeds": list(seeds),
        "tables": tables,
        "claims": claims(rows, others),
    }


def _rows(runs: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """Means over the seeds, and each seed's task-seconds."""
    means = lambda values: statistics.fmean(values) if values else None
    return [
        {
            "setup": name,
            "late": statistics.fmean(r.late for r in rows),
            "mean_latency": statistics.fmean(r.mean for r in rows),
            "plateau_latency": means([r.plateau for r in rows if r.plateau is not None]),
            "task_seconds": [round(r.task_seconds) for r in rows],
            "last_on_time": max(r.last_on_time for r in rows),
            "actions": [[(round(t, 1), n, a, b) for t, n, a, b in r.actions] for r in rows],
            "in_time_by_minute": [round(statistics.fmean(m)) for m in zip(*(r.minutes for r in rows))],
        }
        for name, rows in runs.items()
    ]


def lines(result: dict[str, Any]) -> list[str]:
    """For people."""
    said = [
        result["paper"],
        f"{result['seconds']:g} s, seeds {', '.join(map(str, result['seeds']))}; mean latency of all tuples, in "
        "the reference of those in time",
    ]
    for table in result["tables"]:
        said += ["", f"{table['name']}: {table['column']}"]
        said.append(f"  {'':42} {'late':>9} {'mean s':>9} {'plateau s':>9} {'last in time':>12}  task-seconds")
        for row in table["rows"]:
            plateau = "-" if row["plateau_latency"] is None else f"{row['plateau_latency']:.3f}"
            said.append(
                f"  {row['setup']:42} {row['late']:9.0f} {row['mean_latency']:9.3f} {plateau:>9} "
                f"{row['last_on_time']:12.1f}  {' / '.join(map(str, row['task_seconds']))}"
            )
    said.append("")
    for table in result["tables"]:
        for row in table["rows"]:
            if row["setup"] == "ConfMin + AUTOSCALE, maxP 24":
                path = ", ".join(f"{a} to {b} at {t:g} s" for t, n, a, b in row["actions"][0] if n == "sink")
                said.append(f"sink of {row['setup']}, {table['column']}: {path}")
    said.append("")
    said += claim_lines(result["claims"])
    return said
