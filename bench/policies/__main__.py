"""A comparison of scaling policies: the papers' claims, all policies on all loads, and the simulator beside real actors.

Parts (`--only`, comma between them; what other parts have left in DIR is kept and shown again):

  autoscale, craa, migration, orientstream
           each paper's headline experiment: what it claims, a reference model as its text says, ours in the simulator
  migration_live
           the migration paper's varied load on actors: 13 workers on six hosts in network namespaces, ten minutes
  compare  every policy on every load shape and every recorded load, over seeds: p99 against sub-units, SPEC metrics, changes
  sweep    every policy over its published parameters, on these loads, eight others and chains: `auto` beside the front of them all
  live     the eSault paper's load on actors and in the simulator
  live_loads  other loads, a recorded one among them, on actors and in the simulator
  plan     what `esault plan` foretells from a little run, beside live runs

python -m bench.policies --out DIR [--quick] [--runs SEEDS] [--only PARTS] [--scale SHARE] [--resume]

--scale: how much of each load's time `compare` and `sweep` run, from its beginning.
--resume: `compare` goes on where it was stopped, with the same code: the runs that DIR/compare.jsonl has are not run again.
`sweep` always goes on from DIR/sweep.jsonl.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.kit.arguments import names_among, parse
from bench.kit.machine import facts
from bench.policies.compare import DRIFTING, FIXED, LOADS, MODELS, POLICIES, compare, fronts
from bench.policies.jobs import Job, jobs
from bench.policies.live import compared, text, words
from bench.policies.live_loads import live_loads, loads_text
from bench.policies.planned import experiment as planned
from bench.policies.planned import lines as planned_lines
from bench.policies.plots import draw_compare, draw_live, draw_sweep
from bench.policies.sweep import fronts as fronts_of_sweep
from bench.policies.sweep import sweep, sweep_lines

__all__ = ["main"]

PAPERS = ("autoscale", "craa", "migration", "orientstream")
LIVE = "migration_live"
LIVE_LOADS = "live_loads"
PLAN = "plan"
PARTS = (*PAPERS, LIVE, "compare", "sweep", "live", LIVE_LOADS, PLAN)
#: run over all seeds; the others over `FEW`
CONTENDERS = ("auto", "probe", "ds2 quick", "flink quick", "hpa quick", "fixed peak")
SEEDS, FEW = 5, 2
#: loads that the chain runs as well
CHAIN = ("esault", "craa_step", "craa_jitter", "flash", "recorded flights_storm", "recorded taxi_week")
QUICK_LOADS = ("esault", "craa_jitter")
QUICK_POLICIES = ("auto", "probe", "ds2 quick", "hpa quick", "fixed peak")


def _has(load: str, model: str) -> bool:
    """Return whether the model runs the load: what drifts has one of its own."""
    if load in DRIFTING or model in DRIFTING:
        return load == model
    return model == "count" or load in CHAIN


def _todo(quick: bool, seeds: int, share: float) -> list[Job]:
    loads = [n for n in LOADS if not quick or n in QUICK_LOADS]
    names = [*POLICIES, *FIXED]
    if quick:
        return list(jobs(loads, ["count"], QUICK_POLICIES, range(1, seeds + 1), share))
    found: list[Job] = []
    for model in MODELS:
        for load in loads:
            if not _has(load, model):
                continue
            for name in names:
                many = seeds if name in CONTENDERS else min(FEW, seeds)
                found += jobs([load], [model], [name], range(1, many + 1), share)
    return found


def _compare(folder: Path, quick: bool, seeds: int, share: float, resume: bool) -> dict[str, Any]:
    file = folder / "compare.jsonl"
    if not resume:
        file.unlink(missing_ok=True)
    todo = _todo(quick, seeds, share)
    began = time.monotonic()
    print(f"compare: {len(todo)} runs in virtual time", flush=True)

    def told(done: int, many: int, job: Job) -> None:
        if done % max(1, many // 40) == 0:
            left = (time.monotonic() - began) / done * (many - done)
            print(f"  {done}/{many}, about {left / 60:.0f} minutes to go ({job.load}, {job.policy})", flush=True)

    seen = compare(todo, told, file)
    on_front = fronts(seen)
    rows = [
        {"load": load, "model": model, "policy": policy, "front": policy in on_front[load, model], "figures": figures}
        for (load, model, policy), figures in seen.items()
    ]
    return {"seeds": seeds, "few": min(FEW, seeds), "contenders": CONTENDERS, "rows": rows}


def _ranking(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each policy over all loads: how often on the front, and means of its figures; the best first."""
    found = []
    peak = {(r["load"], r["model"]): r["figures"] for r in rows if r["policy"] == "fixed peak"}
    for policy in dict.fromkeys(r["policy"] for r in rows):
        own = [r for r in rows if r["policy"] == policy]

        def median(row: Mapping[str, Any], name: str) -> float:
            return float(row["figures"][name]["median"])

        bases = [peak[r["load"], r["model"]]["workers"]["median"] for r in own]
        ratio = [median(r, "changes") / max(1.0, median(r, "load_changes")) for r in own]
        found.append(
            {
                "policy": policy,
                "runs": len(own),
                "front": sum(r["front"] for r in own),
                "p99_ms": statistics.geometric_mean(max(1.0, median(r, "p99_ms")) for r in own),
                "worst_p99_ms": max(median(r, "p99_ms") for r in own),
                "below_100_ms": statistics.fmean(median(r, "below_100_ms") for r in own),
                "of_fixed_peak": statistics.fmean(median(r, "workers") / b for r, b in zip(own, bases)),
                "changes_per_load_change": statistics.fmean(ratio),
                "most_changes_per_load_change": max(ratio),
                "accuracy_under": statistics.fmean(median(r, "accuracy_under") for r in own),
                "accuracy_over": statistics.fmean(median(r, "accuracy_over") for r in own),
                "unread": sum(median(r, "unread") > 3000 for r in own),
            }
        )
    return sorted(found, key=lambda f: (-f["front"] / f["runs"], f["p99_ms"] * f["of_fixed_peak"]))


def _compare_lines(result: Mapping[str, Any]) -> list[str]:
    rows = result["rows"]
    out = [
        f"all policies on all loads, in the simulator: medians over {result['seeds']} seeds ({result['few']} for those that are not "
        f"{', '.join(result['contenders'])})",
        "front: loads on which no other policy has both a lower p99 and fewer worker-seconds; p99: geometric mean over loads;",
        "workers: mean of sub-units over those of `fixed peak`; changes: for each change of the demand; behind: loads that it did not keep up with",
        f"  {'policy':16} {'front':>7} {'p99 ms':>8} {'worst':>8} {'<100 ms':>8} {'workers':>8} {'changes':>8} {'most':>6} "
        f"{'under':>6} {'over':>6} {'behind':>6}",
    ]
    return out + [
        f"  {f['policy']:16} {f['front']:3}/{f['runs']:<3} {f['p99_ms']:8.0f} {f['worst_p99_ms']:8.0f} {f['below_100_ms']:8.3f} "
        f"{f['of_fixed_peak']:8.3f} {f['changes_per_load_change']:8.2f} {f['most_changes_per_load_change']:6.2f} "
        f"{f['accuracy_under']:6.3f} {f['accuracy_over']:6.3f} {f['unread']:6}"
        for f in _ranking(rows)
    ]


def _write(folder: Path, arguments: argparse.Namespace, told: Mapping[str, Callable[[Any], list[str]]]) -> str:
    """result.json and result.txt from the parts that are there; plots."""
    parts = {p: json.loads((folder / f"{p}.json").read_text()) for p in PARTS if (folder / f"{p}.json").is_file()}
    if "migration" in parts and LIVE in parts:
        lived = {claim["claim"]: claim["live"] for claim in parts[LIVE]["claims"]}
        for claim in parts["migration"]["claims"]:
            claim["live"] = lived.get(claim["claim"])
    summary = {"bench": "policies", "machine": facts(), "quick": arguments.quick, "parts": list(parts)}
    if "compare" in parts:
        summary["ranking"] = _ranking(parts["compare"]["rows"])
    summary["claims"] = {p: parts[p]["claims"] for p in (*PAPERS, LIVE) if p in parts}
    (folder / "result.json").write_text(json.dumps(summary) + "\n")
    out: list[str] = []
    for part, result in parts.items():
        small = " (small sizes: --quick)" if result.get("quick") else ""
        out += [f"== {part}{small}", *told[part](result)]
    (folder / "result.txt").write_text("\n".join(out) + "\n")
    print("\n".join(out))
    drawn = ""
    if "compare" in parts:
        for model in dict.fromkeys(r["model"] for r in parts["compare"]["rows"]):
            drawn += draw_compare(folder, parts["compare"]["rows"], model)
    if "sweep" in parts:
        drawn += draw_sweep(folder, fronts_of_sweep(parts["sweep"]))
    return drawn + draw_live(folder, parts.get("live", {}))


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only", type=names_among(PARTS), default=list(PARTS), metavar="PARTS", help=f"of: {', '.join(PARTS)}"
    )
    parser.add_argument(
        "--resume", action="store_true", help="compare: go on from DIR/compare.jsonl; else it begins anew"
    )


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__, _more)
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    seeds = arguments.runs or (1 if arguments.quick else SEEDS)
    papers = {part: import_module(f"bench.policies.{part}.experiments") for part in PAPERS}
    told: dict[str, Callable[[Any], list[str]]] = {part: module.lines for part, module in papers.items()}
    lived = import_module("bench.policies.migration.live.experiments")
    told |= {LIVE: lived.lines, "compare": _compare_lines, "sweep": sweep_lines, "live": text, LIVE_LOADS: loads_text}
    told[PLAN] = planned_lines
    for part in [p for p in PARTS if p in arguments.only]:
        print(f"{part} ...", flush=True)
        if part in papers:
            result = papers[part].experiment(arguments.quick, range(1, min(seeds, 3) + 1))
            result["quick"] = arguments.quick
        elif part == LIVE:
            result = lived.experiment(arguments.quick, min(arguments.runs or 1, 3))
            result["quick"] = arguments.quick
        elif part == LIVE_LOADS:
            result = live_loads(folder, arguments.quick, min(seeds, 3))
        elif part == PLAN:
            result = planned(arguments.quick, arguments.runs)
        elif part == "compare":
            result = _compare(folder, arguments.quick, seeds, arguments.scale, arguments.resume)
        elif part == "sweep":
            result = sweep(folder, arguments.quick, min(seeds, 3), arguments.scale)
        else:
            length = 60.0 if arguments.quick else 250.0
            names = ["auto", "probe"] if arguments.quick else ["auto", "probe", "esault"]
            trials = {seed: words(length, seed) for seed in range(1, min(seeds, 3) + 1)}
            result = compared({name: name for name in names}, trials)
        (folder / f"{part}.json").write_text(json.dumps(result) + "\n")
    drawn = _write(folder, arguments, told)
    print(f"{folder}/result.json, result.txt{drawn}")


if __name__ == "__main__":
    main()
