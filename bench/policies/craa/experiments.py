"""CRAA's experiments: step, jitter, sine, stage and random loads on a chain of five operators, against its two baselines.

Columns: the reference (the window-level model with a reading of the paper of its own) and ours in the simulator, both with what
an operator emits handed on in the next window, as the paper's formulas have it. Tables besides: delivery at once, as the
engine does it; tuples at random instants; feedback; thresholds; parts of the method left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.policies.claims import claim_lines
from bench.policies.craa.claims import claims
from bench.policies.craa.model import (
    CHAIN,
    LOADS,
    OPERATORS,
    SECONDS,
    Load,
    Operator,
    Outcome,
    Reference,
    random_load,
    run,
    walk,
)
from bench.policies.craa.runs import SETTINGS, Steered, mean, simulated
from esault.elasticity.policies.craa import Craa

__all__ = ["experiment", "lines"]

#: windows of a run: 600 s, and for a look 180 s
WINDOWS, FEW = 120, 36
#: the feedback test is so long in the paper's reading: four cycles of its load
FEEDBACK_WINDOWS = 128
#: tuples a second, as printed, and as it may have been meant: the other loads end at 10 000 (R18)
RANDOM = {"random to 50000": (1000.0, 50000.0), "random to 10000": (1000.0, 10000.0)}
#: what the paper compares: name -> (reading of our own, spec)
POLICIES: dict[str, tuple[Any, str]] = {
    "TA": (lambda **more: Reference("TA", **more), "threshold"),
    "KPA": (lambda **more: Reference("KPA", **more), "kalman"),
    "KPA walk": (lambda **more: Reference("KPA", walk, **more), "kalman:filter=walk"),
    "CRAA": (lambda **more: Reference("CRAA", **more), "craa"),
    "CRAA walk": (lambda **more: Reference("CRAA", walk, **more), "craa:head=walk"),
    "CRAA walk, tolerance 0.02": (
        lambda **more: Reference("CRAA", walk, tolerance=0.02, **more),
        "craa:head=walk,tolerance=0.02",
    ),
}
#: all buffers of the feedback test
LARGE = {o: Operator(10000, operator.one) for o, operator in OPERATORS.items()}
TAUS = (0.6, 0.7, 0.8, 0.9)
#: the paper does not say which seven of the nine
PAIRS = [(b, g) for b in (0.7, 0.8, 0.9) for g in (0.1, 0.2, 0.3)]
#: by policy and load; by load first
Runs = dict[str, dict[str, Outcome]]


def experiment(quick: bool, seeds: Sequence[int]) -> dict[str, Any]:
    """All tables and claims; `seeds` are those of random loads and of random arrivals. Rates are tuples a second."""
    windows = FEW if quick else WINDOWS
    reference = _references(windows, seeds)
    ours = _ours(windows, seeds, quick)
    feedback = {"reference": _feedback(quick, False), "sim": _feedback(quick, True)}
    without = {"reference": _without(windows, False), "sim": _without(windows, True)}
    settings = {
        setting: {
            load: {spec: _simulated(LOADS[load], spec, windows, setting, seeds) for spec in _specs(setting)}
            for load in (("step",) if quick else _loads(setting))
        }
        for setting in list(SETTINGS)[1:]
    }
    pairs = _pairs(windows, seeds)
    data = {"reference": reference, "sim": ours}
    tables = [
        *(
            {"name": f"{load} load", "column": column, "rows": _rows(runs[load])}
            for load in reference
            for column, runs in data.items()
            if load in runs
        ),
        *({"name": f"feedback, {column}", "rows": _rows(runs)} for column, runs in feedback.items()),
        *({"name": f"left out, {column}", "rows": _rows(runs)} for column, runs in without.items()),
        *(
            {"name": f"{load} load, {setting}", "column": "sim", "rows": _rows(runs)}
            for setting, by_load in settings.items()
            for load, runs in by_load.items()
        ),
        *(
            {"name": f"thresholds, {load} load", "column": "window model", "rows": _rows(r)}
            for load, r in pairs.items()
        ),
    ]
    return {
        "paper": "CRAA: Li, Wei, Li, Wang, Chinese Journal of Computers 2017, DOI 10.11897/SP.J.1016.2018.02193",
        "seconds": windows * SECONDS,
        "seeds": list(seeds),
        "operators": list(CHAIN),
        "tables": tables,
        "widths": {load: {name: o.widths for name, o in runs.items()} for load, runs in ours.items()},
        "claims": claims(windows, data, feedback, without, pairs),
    }


def _references(windows: int, seeds: Sequence[int]) -> Runs:
    found: Runs = {
        load: {name: run(LOADS[load], made(), windows) for name, (made, _) in POLICIES.items()} for load in LOADS
    }
    for load, (low, high) in RANDOM.items():
        found[load] = {
            name: mean([run(random_load(seed, low, high), made(), windows) for seed in seeds])
            for name, (made, _) in POLICIES.items()
        }
    return found


def _ours(windows: int, seeds: Sequence[int], quick: bool) -> Runs:
    """Up to 500 sub-units of O5 at 50 000/s tell no more than 100: the wide random load is the reference's alone."""
    loads = ["step", "jitter"] if quick else list(LOADS)
    found: Runs = {load: {n: simulated(LOADS[load], s, windows) for n, (_, s) in POLICIES.items()} for load in loads}
    if not quick:
        low, high = RANDOM["random to 10000"]
        found["random to 10000"] = {
            name: mean([simulated(random_load(seed, low, high), spec, windows) for seed in seeds])
            for name, (_, spec) in POLICIES.items()
        }
    return found


def _loads(setting: str) -> list[str]:
    """Runs with several seeds are for two of the loads."""
    return ["step", "jitter"] if SETTINGS[setting][2] else list(LOADS)


def _specs(setting: str) -> list[str]:
    specs = ["threshold", "kalman:filter=walk", "craa"]
    return [*specs, "craa:tolerance=0.02"] if setting != "at once" else [*specs, "craa:delivery=at_once"]


def _simulated(load: Load, spec: str, windows: int, setting: str, seeds: Sequence[int]) -> Outcome:
    many = seeds if SETTINGS[setting][2] else seeds[:1]
    return mean([simulated(load, spec, windows, setting, seed=seed) for seed in many])


def _feedback(quick: bool, ours: bool) -> dict[str, Outcome]:
    """The jitter load and large buffers; ours can only cap the window that follows (R21)."""
    windows = FEW if quick else FEEDBACK_WINDOWS
    more: list[tuple[str, dict[str, Any], str]] = [
        *((f"tau {tau:g}", {"tau": tau}, f"craa:tau={tau:g}") for tau in TAUS),
        ("none", {"feedback": False}, "craa:feedback=no"),
    ]
    found = {}
    for name, parameters, spec in more:
        if ours:
            found[name] = simulated(LOADS["jitter"], spec, windows, operators=LARGE)
        else:
            found[name] = run(LOADS["jitter"], Reference("CRAA", operators=LARGE, **parameters), windows, LARGE)
    for name in ("TA", "KPA"):
        made, spec = POLICIES[name]
        if ours:
            found[name] = simulated(LOADS["jitter"], spec, windows, operators=LARGE)
        else:
            found[name] = run(LOADS["jitter"], made(operators=LARGE), windows, LARGE)
    return found


def _without(windows: int, ours: bool) -> dict[str, Outcome]:
    """Parts of the method left out, or read as printed."""
    found = {}
    for name, load, parameters, spec in (
        ("jitter, no judgement", "jitter", {"judging": False}, "craa:judging=no"),
        ("step, no judgement", "step", {"judging": False}, "craa:judging=no"),
        ("step, printed floor", "step", {"shrink": "floor"}, "craa:shrink=floor"),
        ("step, usage < alpha", "step", {"rule": "alpha"}, "craa:rule=alpha"),
    ):
        made: dict[str, Any] = dict(parameters)
        found[name] = (
            simulated(LOADS[load], spec, windows) if ours else run(LOADS[load], Reference("CRAA", **made), windows)
        )
    return found


def _pairs(windows: int, seeds: Sequence[int]) -> Runs:
    """The policy in the window-level model; the simulator agrees with it, and takes a thousand times as long."""
    low, high = RANDOM["random to 10000"]
    loads: Mapping[str, list[Load]] = {
        "sine": [LOADS["sine"]],
        "stage": [LOADS["stage"]],
        "random to 10000": [random_load(seed, low, high) for seed in seeds],
    }
    return {
        name: {
            f"beta {b:g}, gamma {g:g}": mean(
                [run(load, Steered(Craa(beta=b, gamma=g)), windows, capped=True) for load in shapes]
            )
            for b, g in PAIRS
        }
        for name, shapes in loads.items()
    }


def _rows(runs: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    return [
        {
            "policy": name,
            "lost": o.lost,
            "used": o.used,
            "changes": o.changes,
            "avoided": o.avoided,
            "slowed": o.slowed,
            "throughput": o.throughput,
        }
        for name, o in runs.items()
    ]


def lines(result: dict[str, Any]) -> list[str]:
    """For people."""
    said = [
        result["paper"],
        f"five operators, {result['seconds']:g} s; figures of {', '.join(result['operators'])}: DL tuples lost, RS used over "
        "allocated, AC changes made, avoided changes, FB slow-downs, tuples/s out",
    ]
    for table in result["tables"]:
        said += ["", f"{table['name']}{': ' + table['column'] if 'column' in table else ''}"]
        for row in table["rows"]:
            lost = " ".join(f"{v:7d}" for v in row["lost"])
            used = " ".join(f"{v:.3f}" for v in row["used"])
            made = " ".join(f"{v:3d}" for v in row["changes"])
            not_made = " ".join(f"{v:3d}" for v in row["avoided"])
            said.append(
                f"  {row['policy']:26} DL {lost}  RS {used}  AC {made}  avoided {not_made}  "
                f"FB {row['slowed']:3d}  {row['throughput']:6d}/s"
            )
    said.append("")
    said += claim_lines(result["claims"])
    return said
