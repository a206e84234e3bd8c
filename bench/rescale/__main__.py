"""The cost of one live split, move and merge of a stateful unit, beside that of stopping, rescaling and starting again.

A keyed running count with 100 bytes of state a key, open loop, at a share of what each engine bears on this machine. Live: eSault.
Against it: eSault stopped in order and started with two sub-units, and Bytewax stopped and resumed with two workers.

python -m bench.rescale --out DIR [--quick] [--runs N]

The result is written after each load. It is one module of over 300 lines: the command, and the table and the text that say what it measured.
"""

from __future__ import annotations

import functools
import json
import operator
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import ROOT, missing, spread, summary
from bench.kit.result import write_with
from bench.rescale.plots import draw
from bench.rescale.run import start
from bench.workloads.loads import SEED
from esault.messages.settings import Settings

__all__ = ["main"]

LIVE, RESTART, PEER = "esault, live", "esault, stopped and started", "bytewax, stopped and resumed"
#: seconds after which a run is given up, and one of another engine
LONGEST, LONGEST_PEER = 600.0, 200.0
#: seconds of full load at most, where none comes through in fewer
MOST_SECONDS = 30.0
#: so many keys are measured once
MANY = 1_000_000
#: seconds of rest after the filling that no window takes in
WARM = 0.5


@dataclass(frozen=True)
class Case:
    """One load."""

    keys: int
    #: of what the engine bears
    share: float = 0.5

    def __str__(self) -> str:
        return f"{self.keys:,} keys, {self.share:.0%} load"


QUICK = (Case(10_000),)
FULL = (
    Case(1_000),
    Case(10_000),
    Case(100_000),
    Case(1_000_000),
    Case(100_000, 0.25),
    Case(100_000, 0.9),
    Case(100_000, 1.0),
)


def _command(module: str, what: str, folder: Path, keys: int, *arguments: object) -> dict[str, Any]:
    """Run it and read the JSON of its last line. Raises RuntimeError, and TimeoutError where it does not end."""
    longest = LONGEST if module == "bench.rescale.run" else LONGEST_PEER
    line = ["-m", module, what, "--folder", str(folder), "--keys", str(keys), *map(str, arguments)]
    try:
        done = subprocess.run(
            [sys.executable, *line], cwd=ROOT, capture_output=True, text=True, timeout=longest, check=False
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{what} {keys:,} keys did not end within {longest:.0f} s") from None
    if done.returncode or not done.stdout.strip():
        raise RuntimeError(f"{' '.join(line)} failed:\n{done.stderr.strip()[-4000:]}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def _most(module: str, keys: int, seconds: float) -> float:
    """Tuples a second that go through one sub-unit, or worker, when they are offered as fast as they are taken."""
    from bench.rescale.figures import read

    while True:
        with tempfile.TemporaryDirectory() as folder:
            _command(module, "full", Path(folder), keys, "--seconds", seconds)
            rows, offered = read(Path(folder))
        out = rows.out[rows.index >= keys]
        full = out[out <= offered["start"] + seconds]
        # On a slow machine the first tuples can come when no more are offered: then their own pace is what there is.
        out = full if len(full) and full.max() > full.min() else out
        if len(out) and out.max() > out.min():
            return float(len(out) / (out.max() - out.min()))
        if seconds > MOST_SECONDS:
            raise RuntimeError(f"{len(out)} tuples came through in {seconds} s of full load: say a larger --scale")
        seconds *= 4  # an engine may take seconds to come to them, behind the first tuple of each key


def _live(case: Case, rate: float, quiet: float) -> dict[str, Any]:
    """One run with a split, a move and a merge."""
    from bench.rescale.figures import TAIL_OF_CHANGE, counts, during_change, movers, read, timeline

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = _command("bench.rescale.run", "live", folder, case.keys, "--rate", rate, "--seconds", quiet)
        rows, offered = read(folder)
        quiet_from = start(folder) + WARM
    found: dict[str, Any] = {
        "counts": counts(rows, offered["next"]),
        **{figure: run[figure] for figure in ("replayed", "state_lost")},
        "changes": {},
    }
    if run["notices"] or len(run["changes"]) != len(run["asked"]):
        raise RuntimeError(f"not all changes were made: {run['notices']} {run['changes']}")
    ends = [*run["asked"][1:], float("inf")]
    for asked, change, until in zip(run["asked"], run["changes"], ends):
        ended = asked + change["total_ms"] / 1000
        figures = during_change(rows, quiet_from, asked, ended, until)
        if change["kind"] == "split":
            moved = movers(rows, asked, ended, until)
            found["timeline"] = timeline(rows, moved, asked, -1.5, 2.5)
        found["changes"][change["kind"]] = {
            **{k: change[k] for k in ("held_back_ms", "total_ms", "prepare_ms", "moved_keys", "moved_bytes")},
            **figures,
        }
        quiet_from = ended + TAIL_OF_CHANGE
    return found


def _stopped(module: str, what: str, case: Case, rate: float, quiet: float) -> dict[str, Any]:
    """One run that is stopped and started with twice as many."""
    from bench.rescale.figures import around, counts, read, stopped, timeline

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = _command(module, what, folder, case.keys, "--rate", rate, "--seconds", quiet)
        rows, offered = read(folder)
        began = start(folder)
    asked = run["asked"][0]
    all_of_them = rows.index >= 0
    found = stopped(rows, asked, float("inf"))
    quiet_p99 = around(rows, all_of_them, began + WARM, asked, asked + 0.5)["before"]["p99"]
    return {
        "counts": counts(rows, offered["next"]),
        **found,
        "stopping_ms": 1000 * (run["stopped"] - asked),
        "quiet_p99_ms": quiet_p99,
        "timeline": timeline(rows, 0 * rows.index, asked, -1.5, 2.5),
    }


def _runs(keys: int, runs: int) -> int:
    """Return how many times over: once where a run takes a minute."""
    return runs if keys < MANY else 1


def _pick(runs: list[dict[str, Any]], *path: str) -> dict[str, float]:
    """Median, least and most of a figure over the repetitions."""
    return summary([float(functools.reduce(operator.getitem, path, run)) for run in runs])  # type: ignore[arg-type]


def _say(name: str, run: dict[str, Any]) -> str:
    if name == LIVE:
        return "; ".join(
            f"{kind}: held {c['held_back_ms']:.0f} ms, untouched p99 x {c['untouched']['ratio']:.2f} "
            f"(quiet x {c['untouched']['quiet_ratio']:.2f})"
            for kind, c in run["changes"].items()
        )
    return f"silent for {run['silent_ms']:,.0f} ms, worst {run['worst_ms']:,.0f} ms, {run['late']:,} tuples late"


def _summarised(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Medians with spread over the repetitions, by engine; counts are sums."""
    found: dict[str, Any] = {}
    for name, each in runs.items():
        total = {k: sum(run["counts"][k] for run in each) for k in ("offered", "lost", "repeated", "wrong_counts")}
        found[name] = {"counts": total}
        if name != LIVE:
            figures = ("silent_ms", "worst_ms", "late", "late_for_s", "stopping_ms", "quiet_p99_ms")
            found[name].update({f: _pick(each, f) for f in figures})
            continue
        for kind in each[0]["changes"]:
            plain = (
                "held_back_ms",
                "behind_ms",
                "total_ms",
                "prepare_ms",
                "moved_keys",
                "moved_bytes",
                "silent_ms",
                "late",
            )
            made = found[name][kind] = {f: _pick(each, "changes", kind, f) for f in plain}
            for when in ("before", "during", "after"):
                made[f"untouched_{when}_n"] = _pick(each, "changes", kind, "untouched", when, "n")
                for f in ("p50", "p99", "max"):
                    made[f"untouched_{when}_{f}_ms"] = _pick(each, "changes", kind, "untouched", when, f)
            for f in ("p50", "p99", "max"):
                made[f"moved_{f}_ms"] = _pick(each, "changes", kind, "moved", f)
            made["ratio"] = _pick(each, "changes", kind, "untouched", "ratio")
            made["quiet_ratio"] = _pick(each, "changes", kind, "untouched", "quiet_ratio")
    return found


def _missing(each: dict[str, list[dict[str, Any]]], given_up: dict[str, str]) -> dict[str, Any]:
    """Return what is said of engines of which no run ended."""
    return {name: {"missing": text} for name, text in given_up.items() if not each[name]}


def _lines(case: Case, rates: dict[str, float], found: dict[str, Any]) -> list[str]:
    def of(figure: dict[str, float], digits: int = 0) -> str:
        return spread(figure, f",.{digits}f")

    lines = [f"{case}: " + ", ".join(f"{name} {rate:,.0f} tuples/s" for name, rate in rates.items())]
    for name, each in found.items():
        if "missing" in each:
            lines.append(f"  {name}: {each['missing']}")
            continue
        c = each["counts"]
        lines.append(
            f"  {name}: of {c['offered']:,} tuples {c['lost']:,} lost, {c['repeated']:,} repeated, "
            f"{c['wrong_counts']:,} with a wrong count"
        )
        if name != LIVE:
            lines.append(
                f"    silent for {of(each['silent_ms'])} ms, worst latency {of(each['worst_ms'])} ms; "
                f"{of(each['late'])} tuples late by over 250 ms, the last of them after {of(each['late_for_s'], 1)} s"
            )
            continue
        for kind in (k for k in each if k != "counts"):
            made = each[kind]
            lines.append(
                f"    {kind:5}  held {of(made['held_back_ms'])} ms   in all {of(made['total_ms'])} ms   "
                f"{made['moved_keys']['median']:,.0f} keys, {made['moved_bytes']['median'] / 1e6:.1f} MB   "
                f"moved keys p99 {of(made['moved_p99_ms'], 1)}, max {of(made['moved_max_ms'])} ms"
            )
            if not made["ratio"]["least"]:
                lines.append(
                    f"           others: not measured in all runs, since the stream was behind its load by {of(made['behind_ms'])} ms "
                    "before the request"
                )
                continue
            lines.append(
                f"           others p99 {of(made['untouched_before_p99_ms'], 1)} before, "
                f"{of(made['untouched_during_p99_ms'], 1)} during, {of(made['untouched_after_p99_ms'], 1)} ms after: "
                f"x {of(made['ratio'], 2)}; quiet windows up to x {of(made['quiet_ratio'], 2)}; "
                f"max {of(made['untouched_during_max_ms'])} ms, late {made['late']['most']:,.0f}"
            )
    return lines


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    if (no := missing("numpy")) is not None:
        sys.exit(no)
    scale = min(1.0, arguments.scale)
    cases = [Case(max(10, int(c.keys * scale)), c.share) for c in (QUICK if arguments.quick else FULL)]
    runs = arguments.runs or (1 if arguments.quick else 3)
    quiet = max(1.0, 2.5 * scale)
    machine = facts()
    peer = missing("bytewax")
    modules = {LIVE: "bench.rescale.run", **({} if peer else {PEER: "bench.rescale.bytewax_flow"})}
    most: dict[str, dict[int, float]] = {name: {} for name in modules}
    for keys in dict.fromkeys(case.keys for case in cases):
        for name, module in modules.items():
            most[name][keys] = statistics.median(_most(module, keys, 2 * scale) for _ in range(_runs(keys, runs)))
            print(f"{name.partition(',')[0]}, {keys:,} keys: bears {most[name][keys]:,.0f} tuples/s", flush=True)
    results: list[dict[str, Any]] = []
    lines: list[str] = []
    for case in cases:
        bears = {name: most[PEER if name == PEER else LIVE][case.keys] for name in (LIVE, RESTART, *list(modules)[1:])}
        rates = {name: case.share * rate for name, rate in bears.items()}
        calls: dict[str, Callable[[], dict[str, Any]]] = {
            LIVE: functools.partial(_live, case, rates[LIVE], quiet),
            RESTART: functools.partial(_stopped, "bench.rescale.run", "restart", case, rates[RESTART], quiet),
        }
        if not peer:
            calls[PEER] = functools.partial(_stopped, "bench.rescale.bytewax_flow", "rescale", case, rates[PEER], quiet)
        each: dict[str, list[dict[str, Any]]] = {name: [] for name in calls}
        given_up: dict[str, str] = {}
        print(f"{case}", flush=True)
        for turn in range(_runs(case.keys, runs)):
            for name, call in calls.items():
                if name in given_up:
                    continue
                try:
                    run = call()
                except TimeoutError as error:
                    if name != PEER:
                        raise
                    given_up[name] = str(error)
                    print(f"  {name}: {error}", flush=True)
                    continue
                each[name].append(run)
                print(f"  run {turn + 1} of {_runs(case.keys, runs)}, {name}: {_say(name, run)}", flush=True)
        results.append(
            {
                "case": asdict(case),
                "title": str(case),
                "tuples_per_second": {name: rates[name] for name in calls},
                "engines": {**_summarised({n: r for n, r in each.items() if r}), **_missing(each, given_up)},
                "runs": each,
            }
        )
        result = {
            "bench": "rescale",
            "machine": machine,
            "seed": SEED,
            "runs": runs,
            "settings": asdict(Settings()),
            "semantics": SEMANTICS,
            "peer": peer or "measured",
            "bears": {name.partition(",")[0]: rates for name, rates in most.items()},
            "cases": results,
        }
        new = _lines(case, results[-1]["tuples_per_second"], results[-1]["engines"])
        lines += new
        write_with(arguments.out, result, [*lines, *([peer] if peer else [])], lambda path: draw(path, results), new)


SEMANTICS = (
    "Every row that comes out is on record, with when it was due and when it was written to the sink. Each key is offered once, then "
    "uniformly drawn keys at the rate, open loop, whatever happens. Rates are shares of what one sub-unit or worker bears, "
    "measured for each engine in this run. held_back_ms and total_ms are of eSault's report; all else is from the records. Moved keys are "
    "those that were processed elsewhere after than before. A change's window is from 20 ms before the request to 100 ms after its end; "
    "the windows before it have the same length, and their median p99 is what the p99 during the change is divided by; quiet_ratio is the "
    "worst of these windows over the same. Stopped and started: the run ends in order, every key's state goes to a file by way of "
    "finish() and a sink, and a second run with two sub-units in the same, warm, command reads it before its first tuple: eSault's "
    "checkpoints are off here. Bytewax: its source ends, so that all state is in its recovery store and nothing repeats; then two workers resume in the "
    "same, warm, process; epochs of 10 s, its default. In both, what was due meanwhile is offered late. Late: by more than 250 ms."
)


if __name__ == "__main__":
    main()
