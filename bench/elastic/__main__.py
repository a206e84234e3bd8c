"""The eSault paper's two experiments on growing and shrinking, live on actors, and in the simulator beside them.

Two cycles of load (up in steps of 500 tuples/s each 10 s, a plateau, down, a trough; Zhan et al. 2017, Fig. 6) into a counter whose
sub-units take a slept 1/560 s a tuple. Elastic from two sub-units under the policies `esault` (the paper's) and `probe` (ours), and
fixed at 1, 2, 4, 6, 8, 10. Times are divided by 2.5 and rates multiplied; what is shown is in the paper's time.

python -m bench.elastic --out DIR [--quick] [--runs SEEDS]
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from typing import Any

from bench.elastic.figures import CLAIMS, claims, demand, figures, lines, spec_metrics, window
from bench.elastic.plots import draw
from bench.elastic.shape import Shape
from bench.elastic.simulated import simulated
from bench.elastic.topology import bursts
from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import spread, summary

__all__ = ["main"]

ROOT = Path(__file__).parents[2]
CAPACITY = 560.0
#: runs side by side: they sleep most of the time
SIDE_BY_SIDE = 3
#: parameters that are times, of both policies, in the paper's seconds; a run divides them by its speed
TIMES = {
    "probe": {
        "window": 0.5,
        "max_latency": 0.1,
        "calm": 2.0,
        "memory": 10.0,
        "catch_up": 3.0,
        "half_life": 5.0,
        "patience": 5.0,
        "settle": 0.5,
        "probe_period": 0.1,
    },
    "esault": {"max_latency": 0.1, "probe_period": 0.1, "start_adaptive": 5.0, "update_adaptive": 2.0},
}
COMPARED = {
    "below_100_ms": "share of seconds under 100 ms",
    "average_parallelism": "time-average parallelism",
    "worst_on_ramp_ms": "worst latency on the ramp, ms",
    "started_and_stopped": "sub-units started and stopped",
}


def spec(policy: str, speed: float) -> str:
    """A policy with its times divided."""
    return policy + ":" + ",".join(f"{name}={value / speed:g}" for name, value in TIMES[policy].items())


def _live(name: str, seed: int, seconds: float, speed: float) -> dict[str, Any]:
    """One run in a process of its own; `seconds` of the paper's time. Raises RuntimeError."""
    arguments = ["--seed", str(seed), "--seconds", str(seconds / speed), "--speed", str(speed)]
    if name.startswith("fixed"):
        arguments += ["--fixed", name.split()[1], "--policy", "esault"]  # the paper's first table; it cannot change
    else:
        arguments += ["--policy", spec(name, speed)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.elastic.run", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60 + 4 * seconds / speed,
        check=False,
    )
    if done.returncode or not done.stdout.strip():
        raise RuntimeError(f"the run {name!r}, seed {seed}, failed:\n{done.stderr.strip()[-3000:]}")
    run: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return _processed(run, lines(run.pop("seconds")), run.pop("parallelism"), seconds)


def _model(name: str, seed: int, seconds: float) -> dict[str, Any]:
    fixed = name.startswith("fixed")
    times = takewhile(lambda at: at < seconds, bursts(Shape(), seed))
    policy, start = ("none", int(name.split()[1])) if fixed else (spec(name, 1.0), 2)
    _, seen, trace = simulated(policy, times, seconds, seed, capacity=CAPACITY, start=start)
    return _processed({}, seen, trace, seconds)


def _processed(run: dict[str, Any], seen: list[Any], trace: Sequence[Any], seconds: float) -> dict[str, Any]:
    trace = [(float(t), int(n)) for t, n in trace]
    cycles = range(round(seconds / 250))
    run.update(
        {
            "lines": seen,
            "trace": trace,
            "figures": figures(seen, trace, seconds),
            "plateau": window(seen, 60, 110),
            "spec": spec_metrics(trace, demand(Shape(), CAPACITY, seconds), seconds),
            "peaks": [_extreme(trace, 250 * i, 250 * i + 160, max) for i in cycles],
            "troughs": [_extreme(trace, 250 * i + 160, 250 * i + 249, min) for i in cycles],
        }
    )
    return run


def _extreme(trace: Sequence[tuple[float, int]], first: float, end: float, which: Any) -> int:
    """Largest or smallest parallelism in a part of the run."""
    ends = [*(t for t, _ in trace[1:]), float("inf")]
    return int(which(n for (t, n), until in zip(trace, ends) if t < end and until > first))


def _medians(runs: Sequence[dict[str, Any]], part: str) -> dict[str, dict[str, float]]:
    names = runs[0][part]
    return {name: summary([r[part][name] for r in runs]) for name in names}


def _better(live: dict[str, Any]) -> dict[str, bool]:
    """Return whether `probe` beats `esault`, figure by figure."""
    ours, paper = live["probe"]["figures"], live["esault"]["figures"]
    return {
        name: (ours[name]["median"] > paper[name]["median"])
        if name == "below_100_ms"
        else (ours[name]["median"] < paper[name]["median"])
        for name in COMPARED
    }


def _table(result: dict[str, Any]) -> list[str]:
    out = ["live on actors; median (least to most); latencies and times are the paper's"]
    for name, text in COMPARED.items():
        out.append(f"{text}")
        for policy in ("esault", "probe"):
            for where in ("live", "model"):
                each = result[where][policy]["figures"][name]
                out.append(f"  {policy:7} {where:6} {spread(each, '.3f' if each['most'] < 10 else '.0f'):>26}")
    out.append("60 to 110 s, latency in ms: mean, standard deviation and largest of the means of each second")
    for name, group in result["live"].items():
        p, m = group["plateau"], result["model"][name]["plateau"]
        out.append(
            f"  {name:9} mean {p['mean']['median']:9.1f}  sd {p['sd']['median']:8.1f}  max {p['max']['median']:9.1f}"
            f"    model: mean {m['mean']['median']:9.1f}  sd {m['sd']['median']:8.1f}  max {m['max']['median']:9.1f}"
        )
    out.append("SPEC elasticity metrics, against the fewest sub-units that are busy for at most 80 % of their time")
    for policy in ("esault", "probe"):
        each = result["live"][policy]["spec"]
        out.append(f"  {policy:7} " + "  ".join(f"{n} {v['median']:.3f}" for n, v in each.items()))
    out += [
        f"{c['claim']}: {'reproduced' if c['reproduced'] else 'NOT reproduced'}: {c['text']} ({c['seen']})"
        for c in result["claims"]
    ]
    left_out = [name for name in CLAIMS if name not in {c["claim"] for c in result["claims"]}]
    if left_out:
        out.append(f"{', '.join(left_out)}: not run; the full bench has the fixed numbers that they need")
    wins = result["probe_beats_esault"]
    out.append("probe beats esault on: " + ", ".join(f"{COMPARED[n]}: {'yes' if w else 'no'}" for n, w in wins.items()))
    return out


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    quick = arguments.quick
    speed = 5.0 if quick else 2.5
    seeds = range(1, (arguments.runs or (1 if quick else 3)) + 1)
    fixed = [f"fixed {n}" for n in ((2, 4, 8) if quick else (1, 2, 4, 6, 8, 10))]
    length = {"esault": 250.0 if quick else 500.0, "probe": 250.0 if quick else 500.0, **dict.fromkeys(fixed, 250.0)}
    todo = [(name, seed) for seed in seeds for name in length]
    todo.sort(key=lambda each: -length[each[0]])  # the longest first: nothing waits for them at the end
    total = sum(length[n] for n, _ in todo) / speed / SIDE_BY_SIDE
    print(f"{len(todo)} live runs, {SIDE_BY_SIDE} side by side, about {total / 60 + 1:.0f} minutes", flush=True)

    def go(each: tuple[str, int]) -> tuple[str, dict[str, Any]]:
        name, seed = each
        run = _live(name, seed, length[name], speed)
        f = run["figures"]
        print(
            f"  {name}, seed {seed}: {f['below_100_ms']:.1%} of seconds under 100 ms, parallelism {f['average_parallelism']:.2f} "
            f"on average, {f['least']} to {f['most']}; {run['emitted']:,} words emitted, {run['counted']:,} counted",
            flush=True,
        )
        return name, run

    live: dict[str, list[dict[str, Any]]] = {name: [] for name in length}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for name, run in pool.map(go, todo):
            live[name].append(run)
    print("the model, in virtual time", flush=True)
    model = {name: [_model(n, seed, length[n]) for n, seed in todo if n == name] for name in length}
    parts = ("figures", "plateau", "spec")
    result: dict[str, Any] = {
        "bench": "elastic",
        "machine": facts(),
        "speed": speed,
        "seeds": list(seeds),
        "side_by_side": SIDE_BY_SIDE,
        "semantics": "mean latency of a second: of all tuples that were due in it, from when they were due to the end of their "
        "service; parallelism as the engine reports it; window and inbox without bounds, as the paper's mailboxes; a heartbeat "
        "fails when a tuple waits for more than 10 s; all in the paper's time",
        "policies": {name: spec(name, speed) for name in TIMES},
        "live": {name: {part: _medians(runs, part) for part in parts} for name, runs in live.items()},
        "model": {name: {part: _medians(runs, part) for part in parts} for name, runs in model.items()},
        "claims": claims(live),
    }
    result["probe_beats_esault"] = _better(result["live"])
    result["runs"] = {
        name: [{k: v for k, v in run.items() if k != "lines"} for run in runs] for name, runs in live.items()
    }
    result["latency"] = {
        name: [[(s, n, round(m, 5), round(w, 5)) for s, n, m, w in r["lines"]] for r in runs]
        for name, runs in live.items()
    }
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps(result) + "\n")
    text = _table(result)
    (folder / "result.txt").write_text("\n".join(text) + "\n")
    print("\n".join(text))
    drawn = draw(folder, live, model, Shape())
    print(f"{folder}/result.json, result.txt{drawn}")


if __name__ == "__main__":
    main()
