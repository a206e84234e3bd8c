"""The work that users do: the same functions in eSault, in Bytewax at its best and in a plain loop of one process, outputs compared first.

python -m bench.real --out DIR [--quick] [--runs N] [--only NAME,...]

Each run is a command of its own, as a user would write it: files in, a sink of the user's own or tables out. First each engine runs
once with all of its rows kept, and these are compared; a difference ends the bench. Memory is weighed in that run. Then they run in
turns. Rows/s: rows that came in, from the first row out to the last. Processor seconds: of the command and all its descendants, for a
million rows in. First row: from the command to the first row out; prompt: from the last row out to the end of the command.

The result is written after each kind of work. With --only the others stay as an earlier run with the same --out has found them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any

from bench.kit.arguments import names_among, parse
from bench.kit.machine import facts
from bench.kit.measure import Run, in_turns, ratio, summary
from bench.kit.result import work_before, write_with
from bench.real.plot import draw
from bench.real.run import ESAULT, PLAIN, Work, is_ours, made
from bench.real.workloads import SEED, WORKLOADS

__all__ = ["main"]

FIGURES = (
    "rows_per_second",
    "whole_seconds",
    "processor_seconds_per_million",
    "first_row_seconds",
    "prompt_seconds",
)
#: share of the full size with --quick
QUICK = 0.1


def _say(run: Run) -> str:
    return (
        f"{run['rows_per_second'] / 1e3:,.1f} k/s, {run['processor_seconds_per_million']:.2f} processor s/M, "
        f"first row {run['first_row_seconds']:.2f} s, prompt {run['prompt_seconds']:.2f} s"
    )


def _checked(work: Work, engines: Sequence[str]) -> dict[str, Run]:
    """A run of each engine, after its rows were found to be those of the plain loop."""
    runs: dict[str, Run] = {}
    run, right = work.checked(PLAIN)
    runs[PLAIN] = run
    for engine in engines:
        if engine != PLAIN:
            runs[engine], found = work.checked(engine)
            work.compare(engine, right, found)
            del found
        print(f"  {engine}: {runs[engine]['rows']:,} rows are right, {runs[engine]['pss_mib']:.0f} MiB", flush=True)
    return runs


def _measured(work: Work, runs: int) -> dict[str, Any]:
    """All of a workload, on every engine that is there."""
    every = work.engines
    if why := every[PLAIN]:
        print(f"  {why}", flush=True)
        return {"missing": why}
    there = [engine for engine, why in every.items() if why is None]
    checked = _checked(work, there)
    calls = {engine: why if why else partial(_again, work, engine, checked[engine]) for engine, why in every.items()}
    found = in_turns(runs, calls, _say)
    engines: dict[str, Any] = {}
    for name, results in found.items():
        if isinstance(results, str):
            engines[name] = {"missing": results}
            continue
        engines[name] = {
            **{figure: summary([run[figure] for run in results]) for figure in FIGURES},
            "pss_mib": checked[name]["pss_mib"],
            "rows_out": checked[name]["rows"],
            "runs": results,
        }
    return {"rows_in": work.count, "share": work.share, "engines": engines, **_compared(engines)}


def _again(work: Work, engine: str, checked: Run) -> Run:
    run = work.measured(engine)
    if run["rows"] != checked["rows"]:
        raise RuntimeError(
            f"{work.workload.name} on {engine} put out {run['rows']:,} rows in place of {checked['rows']:,}"
        )
    if not run["rows_per_second"]:
        raise SystemExit(
            f"{work.workload.name} is too small for a rate: {engine} put all of its rows out at once. Take a larger --scale"
        )
    return run


def _compared(engines: dict[str, Any]) -> dict[str, Any]:
    """eSault, with all defaults and at its best, beside the plain loop and beside Bytewax at its best."""
    there = {name: engine for name, engine in engines.items() if "missing" not in engine}
    peers = [name for name in there if name != PLAIN and not is_ours(name)]
    others = {"plain": PLAIN}
    if peers:
        others["bytewax"] = _quickest(there, peers)
    best = _quickest(there, [name for name in there if is_ours(name)])
    return {
        "bytewax_best": others.get("bytewax"),
        "esault_best": best,
        **{
            ratios: {
                other: {figure: _ratio(there[ours], there[name], figure) for figure in FIGURES}
                for other, name in others.items()
            }
            for ratios, ours in (("ratios", ESAULT), ("ratios_of_best", best))
        },
    }


def _quickest(there: dict[str, Any], names: Sequence[str]) -> str:
    return max(names, key=lambda name: float(there[name]["rows_per_second"]["median"]))


def _ratio(ours: dict[str, Any], theirs: dict[str, Any], figure: str) -> dict[str, float]:
    return ratio([run[figure] for run in ours["runs"]], [run[figure] for run in theirs["runs"]])


def _spread(figure: dict[str, float], digits: int, unit: float = 1.0) -> str:
    median, least, most = (f"{figure[part] / unit:,.{digits}f}" for part in ("median", "least", "most"))
    return median if least == most else f"{median} ({least} to {most})"


def _lines(title: str, unit: str, found: dict[str, Any]) -> list[str]:
    if "missing" in found:
        return [title, f"  {found['missing']}"]
    lines = [f"{title}: {found['rows_in']:,} {unit}"]
    for name, engine in found["engines"].items():
        if "missing" in engine:
            lines.append(f"  {name:20} {engine['missing']}")
            continue
        lines.append(
            f"  {name:20} {_spread(engine['rows_per_second'], 1, 1e3)} k/s   "
            f"{_spread(engine['processor_seconds_per_million'], 2)} processor s/M   {engine['pss_mib']:.0f} MiB   "
            f"first row {_spread(engine['first_row_seconds'], 2)} s   prompt {_spread(engine['prompt_seconds'], 2)} s   "
            f"in all {_spread(engine['whole_seconds'], 1)} s"
        )
    beside = {ESAULT: "ratios", found["esault_best"]: "ratios_of_best"}
    for ours, ratios in beside.items():
        for other, name in (("bytewax", found["bytewax_best"]), ("plain", PLAIN)):
            if other in found[ratios]:
                its = found[ratios][other]
                lines.append(
                    f"  {ours} against {name}: rows/s {_spread(its['rows_per_second'], 2)} x, processor seconds "
                    f"{_spread(its['processor_seconds_per_million'], 2)} x, time in all {_spread(its['whole_seconds'], 2)} x"
                )
    return lines


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        type=names_among(WORKLOADS),
        default=list(WORKLOADS),
        metavar="NAMES",
        help=f"with commas, of: {', '.join(WORKLOADS)}",
    )


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__, _options)
    runs = arguments.runs or (1 if arguments.quick else 5)
    share = (QUICK if arguments.quick else 1.0) * arguments.scale
    machine = facts()
    found = work_before(arguments.out, runs, share, arguments.only)
    for name in arguments.only:
        with made(WORKLOADS[name], share) as work:
            found[name] = {**_measured(work, runs), "machine": machine}
        _write(arguments.out, found, name, runs, share)


def _write(out: str, found: dict[str, Any], newest: str, runs: int, share: float) -> None:
    """Write what there is so far: what fails later takes nothing away."""
    found = {name: found[name] for name in WORKLOADS if name in found}
    text = {
        name: _lines(f"{name}: {WORKLOADS[name].title}", WORKLOADS[name].unit, work) for name, work in found.items()
    }
    result = {
        "bench": "real",
        "seed": SEED,
        "runs": runs,
        "share": share,
        "semantics": "eSault at least once, with its default policy; the others without a guarantee. Rates are of rows that came in, "
        "from the first row out to the last. Rows that land are durable in eSault's tables alone: the plain loop and Bytewax "
        "write Parquet that can be read when they have ended. Memory is the most PSS of all processes in a run of its own, "
        "with all rows kept in files for comparison",
        "work": found,
    }
    write_with(out, result, list(chain.from_iterable(text.values())), lambda path: draw(path, found), text[newest])


if __name__ == "__main__":
    main()
