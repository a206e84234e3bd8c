"""Faults by the thousand, seeded, done to a run under load; then its counts are compared with what they must be.

python -m bench.faults --out DIR [--quick] [--runs FAULTS] [--seed N] [--total DIR]

On several hosts (`--hosts 3`) and to random programs (`--programs N`) it does the kinds that can be done there. `--total DIR` adds the run to those in DIR/result.json, so that faults add up over days, machines and commits; without `--seed` it goes on
behind the last seed there.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from bench.faults.count import BAD
from bench.faults.host_kinds import HOSTS
from bench.faults.subjects import RATE, FourUnits, RandomProgram
from bench.faults.trial import CHECKPOINT, Subject, Trial, percentile
from bench.kit.arguments import parse
from bench.kit.cluster import NAMES, Cluster
from bench.kit.machine import facts
from bench.kit.result import Bar, write
from bench.kit.runs import Runs
from bench.kit.victim import Lost
from bench.workloads.loads import SEED

__all__ = ["main"]

#: faults with checkpoints, and without
FULL, QUICK = (1000, 200), (24, 10)
#: slots of each host
SLOTS = 12
AT_LEAST_ONCE = "at least once: tuples_lost"
#: seconds that a frozen process stands still
HOLD, QUICK_HOLD = 10.0, 1.0
#: what the run does by itself, and what takes a user who starts it again
RECOVERY = "recovery, from the fault until tuples flow"
ANOTHER = "where the run had ended, until another command that goes on with it runs"
TIMES = {
    "own_recovery_seconds": RECOVERY,
    "recovery_seconds_of_hosts": "recovery from the loss of a host",
    "another_command_seconds": ANOTHER,
}


def _run(subject: Subject, faults: int, hold: float, order: random.Random, hosts: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="esault-faults-"))
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(folder, SLOTS, NAMES[:hosts])) if hosts > 1 else None
        trial = Trial(subject, folder, cluster, faults, hold, order)
        try:
            result = trial.run()
        except BaseException as error:
            print(f"what the run left is in {folder}", file=sys.stderr)
            if isinstance(error, Lost):
                done = sum(map(len, trial.happened.values()))
                raise SystemExit(f"lost after {done} faults: {error}") from None
            raise
        finally:
            trial.victim.end()
    if not any(result.get(name) for name in BAD):
        shutil.rmtree(folder)
    else:
        print(f"what the run left is in {folder}", file=sys.stderr)
    return result


def _times(what: str, seconds: list[float]) -> str:
    p50, p99, longest = percentile(seconds, 0.5), percentile(seconds, 0.99), max(seconds, default=0.0)
    return f"  {what}: p50 {p50:.2f} s, p99 {p99:.2f} s, max {longest:.2f} s"


def _lines(name: str, result: dict[str, Any], counts: tuple[str, ...]) -> list[str]:
    lines = [
        f"{name}: {result['faults']:,} faults in {result['seconds'] / 60:.0f} minutes, {result['numbers']:,} tuples read, "
        f"{result['commands']:,} commands"
    ]
    lines += [f"  {count.replace('_', ' ')}: {result[count]:,}" for count in counts]
    for key, what in (("seconds", RECOVERY), ("seconds_of_another_command", ANOTHER)):
        lines.append(_times(what, [s for kind in result["by_kind"].values() for s in kind[key]]))
    for kind, its in result["by_kind"].items():
        if its["injected"]:
            followed = ", ".join(f"{what} {n}" for what, n in its["followed"].items() if what != "nothing")
            times = its["recovery_seconds" if its["seconds"] else "another_command_seconds"]
            took = f"  p50 {times['p50']:.2f} s  p99 {times['p99']:.2f} s" if times["max"] else ""
            lines.append(f"  {its['injected']:5,}  {kind:34}  {followed or 'went on':14}{took}")
    return lines


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, help="of what befalls the runs")
    parser.add_argument("--total", metavar="DIR", help="add this run to those in DIR/result.json")
    parser.add_argument(
        "--programs", type=int, metavar="N", help="in place of the four units: N random programs, --runs faults each"
    )
    parser.add_argument("--hosts", type=int, choices=(1, 2, 3), default=1, help="run on so many hosts")


def _add(total: Runs, seed: int, results: list[tuple[str, dict[str, Any]]], load: float) -> None:
    """Add what happened to all that has happened so far, and write it. `results`: what each is called, and what it was."""
    counts: Counter[str] = Counter()
    recovery: dict[str, Counter[str]] = {name: Counter() for name in TIMES}
    wrong: Counter[str] = Counter(dict.fromkeys(BAD, 0))
    wrong[AT_LEAST_ONCE] = 0
    of_hosts = {kind.name for kind in HOSTS}
    for said, result in results:
        counts[f"faults {said}"] += result["faults"]
        counts["faults"] += result["faults"]
        counts["commands"] += result["commands"]
        counts["tuples"] += result["numbers"]
        for kind, its in result["by_kind"].items():
            counts[f"fault: {kind}"] += its["injected"]
            own = "recovery_seconds_of_hosts" if kind in of_hosts else "own_recovery_seconds"
            recovery[own].update(f"{seconds:.2f}" for seconds in its["seconds"])
            recovery["another_command_seconds"].update(f"{s:.2f}" for s in its["seconds_of_another_command"])
        if said == "at least once":
            wrong[AT_LEAST_ONCE] += result["tuples_lost"]
        else:
            wrong.update({name: result.get(name, 0) for name in BAD})
    counts.update(wrong)
    failures = {str(seed): ", ".join(f"{n} {name}" for name, n in wrong.items() if n)} if any(wrong.values()) else {}
    about = {name: dict(sorted(times.items())) for name, times in recovery.items()}
    total.keep(seed, seed, counts, failures, {**about, "load_at_start": load})
    said_of_all(total)


def said_of_all(total: Runs) -> None:
    """Write what all runs come to."""
    counts = total.totals()
    kinds = sorted((n, name.removeprefix("fault: ")) for name, n in counts.items() if name.startswith("fault: "))
    which = sorted((n, name.removeprefix("faults ")) for name, n in counts.items() if name.startswith("faults "))
    lines = [
        f"{counts['faults']:,} faults in {len(total.all)} runs, checkpoints every {CHECKPOINT} s: "
        f"{', '.join(f'{n:,} {name}' for n, name in reversed(which))}; {counts['tuples']:,} tuples, {counts['commands']:,} commands",
        *(f"  {name.replace('_', ' ')}: {counts[name]:,}" for name in (*BAD, AT_LEAST_ONCE)),
    ]
    for name, what in {**TIMES, "recovery_seconds": "of runs that did not tell these two from each other"}.items():
        seconds = [float(each) for run in total.all for each, n in run.get(name, {}).items() for _ in range(n)]
        if seconds:
            lines.append(_times(what, seconds))
    total.write([*lines, *(f"  {n:6,}  {name}" for n, name in reversed(kinds)), *total.lines()])


def _others(arguments: argparse.Namespace, seed: int, total: Runs | None, hold: float) -> None:
    """Random programs, or several hosts: the result of each run is added as soon as it is there. Raises SystemExit."""
    place = "" if arguments.hosts == 1 else f" on {arguments.hosts} hosts"
    total = total or Runs(arguments.out, "faults")
    wrong = 0
    for number in range(seed, seed + (arguments.programs or 1)):
        subject: Subject = RandomProgram(number) if arguments.programs else FourUnits()
        said = f"{'of random programs' if arguments.programs else 'with checkpoints'}{place}"
        print(f"seed {number}, {said}", flush=True)
        total = Runs(total.folder, "faults")
        result = _run(subject, arguments.runs or 25, hold, random.Random(f"{number} {said}"), arguments.hosts)
        _add(total, number, [(said, result)], facts()["load_at_start"])
        wrong += any(result.get(name) for name in BAD)
    print((Path(total.folder) / "result.txt").read_text())
    if wrong:
        raise SystemExit("something was lost or doubled: see above")


def main() -> None:
    """The bench."""
    arguments = parse(__doc__, _more)
    total = None if arguments.total is None else Runs(arguments.total, "faults")
    seed = arguments.seed or (SEED if total is None else total.next_seed)
    if total is not None:
        total.check(range(seed, seed + 1))
    exactly, always = QUICK if arguments.quick else FULL
    exactly = arguments.runs or exactly
    hold = QUICK_HOLD if arguments.quick else HOLD
    machine = facts()
    if arguments.programs or arguments.hosts > 1:
        _others(arguments, seed, total, hold)
        return
    print(f"with checkpoints every {CHECKPOINT} s: {exactly:,} faults", flush=True)
    with_checkpoints = _run(FourUnits(), exactly, hold, random.Random(f"{seed}-True"), 1)
    print(f"without, at least once: {always:,} faults", flush=True)
    without = _run(FourUnits(exactly=False), always, hold, random.Random(f"{seed}-False"), 1)
    if total is not None:
        _add(
            total, seed, [("with checkpoints", with_checkpoints), ("at least once", without)], machine["load_at_start"]
        )
    lines = [
        *_lines(
            f"checkpoints every {CHECKPOINT} s",
            with_checkpoints,
            tuple(count for count in BAD if count in with_checkpoints),
        ),
        *_lines("at least once", without, ("tuples_lost", "rows_repeated")),
    ]
    panels = {
        title: [
            Bar(kind, its["recovery_seconds"]["p50"], min(its["seconds"]), its["recovery_seconds"]["p99"])
            for kind, its in result["by_kind"].items()
            if its["seconds"]
        ]
        for title, result in (("checkpoints: back in", with_checkpoints), ("at least once: replaced in", without))
    }
    result = {
        "bench": "faults",
        "machine": machine,
        "seed": seed,
        "rate": RATE,
        "checkpoint_every": CHECKPOINT,
        "frozen_seconds": hold,
        "exactly": with_checkpoints,
        "at_least_once": without,
    }
    write(
        arguments.out,
        result,
        lines,
        {title: bars for title, bars in panels.items() if bars},
        "seconds (p50; line: least to p99)",
    )
    if any(with_checkpoints.get(count) for count in BAD) or without["tuples_lost"]:
        raise SystemExit("something was lost or doubled: see above")


if __name__ == "__main__":
    main()
