"""OrientStream+'s experiment: switching at each change of a stream against grouping, its learners, and what it takes.

Columns: the reference is the queue model (`model`) and the learner trial (`trial`); ours (sim) are the engine's own
pipelines over an operator that stops for each change, and the policy itself in the simulator, where changes stop nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from bench.policies.claims import claim_lines
from bench.policies.orientstream.claims import claims
from bench.policies.orientstream.exact import QUERIES, compare
from bench.policies.orientstream.live import live
from bench.policies.orientstream.model import MODES, latency_at, simulate
from bench.policies.orientstream.own import SYSTEMS as OWN
from bench.policies.orientstream.own import own
from bench.policies.orientstream.stops import SYSTEMS, run
from bench.policies.orientstream.trial import ENSEMBLES, over_seeds
from bench.policies.orientstream.use import MODELS, SHARE, THRESHOLD
from bench.policies.orientstream.use import compare as use_of
from esault.elasticity.policies.orientstream.learners import LEARNERS

__all__ = ["experiment", "lines"]

#: seconds between two changes of the rate; None: 0.2 to 0.6 at random
DELTAS = (0.25, 0.45, None)
#: of the queue model's table
MODEL_DELTAS = (0.20, 0.25, 0.30, 0.40, 0.45, 0.50, 1.0)
POLICIES = {
    "od": f"orientstream:latency={THRESHOLD},ensemble=od",
    "edk": f"orientstream:latency={THRESHOLD},ensemble=edk",
    "blend": f"orientstream:latency={THRESHOLD},ensemble=blend",
    "capacity": f"orientstream:latency={THRESHOLD},warm_up=1000000",
    "probe": "probe",
}


def experiment(quick: bool, seeds: Sequence[int], live_seconds: float = 0.0) -> dict[str, Any]:
    """All tables and claims. `quick`: one seed, shorter runs, fewer samples and only the first query.

    `live_seconds`: of each run on actors, two for each seed; 0: none.
    """
    seeds = list(seeds[:1] if quick else seeds)
    queries = list(QUERIES)[: 1 if quick else None]
    tables: list[dict[str, Any]] = [
        {"name": "latency by interval of change", "column": "reference", "rows": _model(60.0 if quick else 300.0)},
        {"name": "pipelines", "column": "sim", "rows": _pipelines(60.0 if quick else 300.0, seeds)},
        {"name": "own changes", "column": "sim", "rows": _own(60.0 if quick else 300.0, seeds)},
        {"name": "exact results", "column": "sim", "rows": _exact(20.0 if quick else 60.0, seeds)},
        {"name": "learners", "column": "reference", "rows": over_seeds(400 if quick else 3000, seeds, queries)},
        {"name": "use", "column": "sim", "rows": _use(120.0 if quick else 600.0, seeds, queries)},
    ]
    if live_seconds > 0:
        tables.append({"name": "live", "column": "live", "rows": live(live_seconds, seeds)})
    return {
        "paper": "OrientStream+: Wang, Zhuang, Shi, CAAI Trans. on Intelligent Systems 14(6), 2019, 10.11992/tis.201908011",
        "quick": quick,
        "seeds": seeds,
        "tables": tables,
        "claims": claims({table["name"]: table["rows"] for table in tables}),
    }


def _model(seconds: float) -> list[dict[str, Any]]:
    """Mean latency at each third of a run: of `switch` from arrival, of the others from release."""
    rows = []
    for delta in MODEL_DELTAS:
        for mode in MODES:
            passed = simulate(delta, mode, seconds=seconds)
            rows.append(
                {
                    "delta": delta,
                    "mode": mode,
                    "latency": [latency_at(passed, third * seconds / 3, mode != "switch") for third in (1, 2, 3)],
                    "from_arrival": latency_at(passed, seconds),
                    "worst_from_release": max(p.from_release for p in passed),
                }
            )
    return rows


def _pipelines(seconds: float, seeds: Sequence[int]) -> list[dict[str, Any]]:
    rows = []
    for delta in DELTAS:
        for system in SYSTEMS:
            for longest in (True, False):
                runs = [run(system, delta, seconds, seed, longest) for seed in seeds]
                thirds = [[latency_at(r.passed, at * seconds / 3, True) for at in (1, 2, 3)] for r in runs]
                rows.append(
                    {
                        "delta": delta,
                        "system": system,
                        "change": "0.3 s" if longest else "0.1 to 0.3 s",
                        "latency": [statistics.fmean(third) for third in zip(*thirds)],
                        "worst_from_release": max(r.worst for r in runs),
                        "worst_from_arrival": max(r.worst_from_arrival for r in runs),
                        "processed": min(r.processed / r.offered for r in runs),
                        "parallelism": statistics.fmean(r.parallelism for r in runs),
                        "different": statistics.fmean(r.different for r in runs),
                        "changes_per_window": statistics.fmean(r.changes_per_window for r in runs),
                    }
                )
    return rows


def _own(seconds: float, seeds: Sequence[int]) -> list[dict[str, Any]]:
    return [own(system, delta, seconds, seed) for system in OWN for delta in DELTAS for seed in seeds]


def _exact(seconds: float, seeds: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"delta": delta, "seed": seed, **compare(query, run("always", delta, seconds, seed), 5, seed)}
        for query in QUERIES
        for delta in DELTAS
        for seed in seeds
    ]


def _use(seconds: float, seeds: Sequence[int], queries: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for query in [q for q in MODELS if q in queries]:
        runs = [use_of(query, POLICIES, seconds, seed) for seed in seeds]
        for name in runs[0]:
            mean = {k: statistics.fmean(r[name][k] for r in runs) for k in runs[0][name] if k != "kept"}
            rows.append({"query": query, "policy": name, **mean, "kept": all(r[name]["kept"] for r in runs)})
    return rows


def lines(result: dict[str, Any]) -> list[str]:
    """For people."""
    tables = {table["name"]: table["rows"] for table in result["tables"]}
    said = [result["paper"], f"seeds {', '.join(map(str, result['seeds']))}{', quick' if result['quick'] else ''}", ""]
    said.append("reference: latency in s at each third of a run, from release (switch: from arrival), changes of 0.3 s")
    said += [
        f"  every {row['delta']:4.2f} s  {row['mode']:8} {_thirds(row['latency'])}"
        for row in tables["latency by interval of change"]
    ]
    said += ["", "ours (sim): the engine's pipelines over an operator that stops for each change"]
    said.append(
        f"  {'':40} {'thirds, from release':>24} {'worst':>7} {'arrival':>8} {'done':>6} {'wide':>5} {'changes':>8}"
    )
    for row in tables["pipelines"]:
        every = "at random" if row["delta"] is None else f"every {row['delta']:.2f} s"
        said.append(
            f"  {every:12} {row['system']:8} {row['change']:18} {_thirds(row['latency']):>24} "
            f"{row['worst_from_release']:7.2f} {row['worst_from_arrival']:8.2f} {row['processed']:6.1%} "
            f"{row['parallelism']:5.2f} {row['changes_per_window']:8.2f}"
        )
    said += [
        "",
        "ours (sim): the engine's own changes, which stop nothing, following each change of the rate; from arrival",
    ]
    for row in tables["own changes"]:
        every = "at random" if row["delta"] is None else f"every {row['delta']:.2f} s"
        said.append(
            f"  {every:12} {row['system']:12} seed {row['seed']}: {_thirds(row['latency'])}, worst {row['worst_from_arrival']:.2f} s, "
            f"{row['changes']} changes of {row['longest_change']:.2f} s at most, {row['parallelism']:.2f} sub-units"
        )
    said += ["", "ours (sim): results against those of one pipeline in order"]
    for row in tables["exact results"]:
        every = "at random" if row["delta"] is None else f"every {row['delta']:.2f} s"
        said.append(
            f"  {row['query']:4} {every:12} seed {row['seed']}: {row['results']:,} results, "
            f"{'the same' if row['exact'] else 'NOT the same'}; without the map "
            f"{'the same' if row['exact without the map'] else 'others'}"
        )
    said += ["", "reference: mean absolute error (and relative) of learners and ensembles, tested then trained"]
    said += _learners(tables["learners"])
    said += ["", f"ours (sim): the policy against a configuration fixed for the peak, threshold {THRESHOLD:g} s"]
    said.append(f"  {'':20} {'reserved':>9} {'busy':>6} {'used':>6} {'mean s':>8} {'p99 s':>8} {'changes':>8}  kept")
    for row in tables["use"]:
        said.append(
            f"  {row['query']:4} {row['policy']:15} {row['memory']:9.1%} {row['cpu']:6.1%} {row['utilisation']:6.1%} "
            f"{row['mean_latency']:8.3f} {row['p99']:8.3f} {row['changes']:8.0f}  {'yes' if row['kept'] else 'NO'}"
        )
    said.append(f"  kept: {SHARE:.0%} of the seconds below the threshold, and {SHARE:.0%} of what came processed")
    if "live" in tables:
        said += ["", "live: traffic monitoring on actors; what all sub-units took, and latency from due to done"]
    for row in tables.get("live", ()):
        said.append(
            f"  {row['system']:34} seed {row['seed']}: {row['sub_units']:5.2f} sub-units, {row['cpu_seconds']:6.1f} s of "
            f"processors, {row['megabytes']:6.1f} MB; p50 {row['p50_ms']:.0f} ms, p99 {row['p99_ms']:.0f} ms; "
            f"{len(row['changes'])} changes"
        )
    said.append("")
    said += claim_lines(result["claims"])
    return said


def _thirds(values: Sequence[float]) -> str:
    return " / ".join(f"{value:6.2f}" for value in values)


def _learners(rows: Sequence[dict[str, Any]]) -> list[str]:
    columns = [*LEARNERS, *ENSEMBLES]
    said = [f"  {'':46}" + "".join(f"{name[:16]:>18}" for name in columns)]
    keys = dict.fromkeys((r["query"], r["target"], r["variant"]) for r in rows)
    for query, target, variant in keys:
        scores = {r["model"]: r for r in rows if (r["query"], r["target"], r["variant"]) == (query, target, variant)}
        cells = "".join(f"{_short(scores[n]['mae'])} ({_short(scores[n]['rae'])})".rjust(18) for n in columns)
        said.append(f"  {query:3} {target:7} {variant:34}{cells}")
    return said


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 1000 else f"{value:.0e}"
