"""The whole engine in one process under one seed, in virtual time, with all that can go wrong; each guarantee is checked.

python -m bench.simulation [--seed N] [--seconds S] [--count N] [--jobs N] [--minutes M] [--out DIR] [--only SEED]

`--out DIR` adds the run to those in DIR/result.json, while it lasts, too: seconds add up over days, machines and commits. Without `--seed`
it goes on behind the last seed there.

A scenario is drawn from its seed: a program of `tests/programs`, rows over S simulated seconds or so, hosts, settings, changes, faults.
`--only SEED` runs one again with its history: the same seed and seconds give the same history, byte for byte.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.kit.runs import Runs
from bench.simulation.outside import Broken
from bench.simulation.scenario import draw
from bench.simulation.simulation import Simulation

__all__ = ["attempt", "main", "simulate"]


def simulate(seed: int, seconds: float, tell: Any = None) -> tuple[Simulation, str]:
    """Run the scenario of a seed; the simulation, and what was wrong with it if something was."""
    simulation = Simulation(draw(seed, seconds), tell)
    try:
        simulation.run()
    except Broken as broken:
        return simulation, str(broken).partition("\nTraceback")[0]
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        if tell is not None:
            traceback.print_exc()
        return simulation, f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
    return simulation, ""


def attempt(seed: int, seconds: float) -> tuple[int, Counter[str], str]:
    """Return what happened with a seed, and what was wrong."""
    simulation, wrong = simulate(seed, seconds)
    counts = simulation.history.counts
    counts["failed" if wrong else "scenarios"] += 1
    return seed, counts, wrong


def _many(
    seeds: range,
    seconds: float,
    jobs: int,
    minutes: float,
    keep: Callable[[Counter[str], list[tuple[int, str]]], None],
) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Counts and failures of all seeds, one after the other; `keep` is given those so far now and then."""
    counts: Counter[str] = Counter()
    failures: list[tuple[int, str]] = []
    work = functools.partial(attempt, seconds=seconds)
    pool = multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=50) if jobs > 1 else None
    begun = told = kept = time.monotonic()
    try:
        for seed, happened, wrong in pool.imap(work, seeds) if pool else map(work, seeds):
            counts += happened
            counts["last seed"] = max(counts["last seed"], seed)
            if wrong:
                failures.append((seed, wrong))
                print(f"--only {seed}: {wrong[:600]}", flush=True)
            if time.monotonic() - told > 5:
                told = time.monotonic()
                done = counts["scenarios"] + counts["failed"]
                print(f"\r{done}/{len(seeds)}, {len(failures)} failed ", end="", file=sys.stderr, flush=True)
            if time.monotonic() - kept > 60:
                kept = time.monotonic()
                keep(counts, failures)
            if time.monotonic() - begun > 60 * minutes:
                break
    finally:
        if pool:
            pool.terminate()
            pool.join()
    return counts, failures


def _said(counts: Counter[str], first: int, seconds: float, used: float) -> list[str]:
    kinds = sorted((name.removeprefix("fault: "), n) for name, n in counts.items() if name.startswith("fault: "))
    changes = ", ".join(f"{counts[name]:,} {name}" for name in ("split", "merge", "move", "rescale", "dropped"))
    return [
        f"{counts['scenarios']:,} scenarios, seeds {first:,} to {counts['last seed']:,}; {counts['simulated seconds']:,} simulated seconds in "
        f"{used:,.0f} s of processors: {counts['simulated seconds'] / used:,.0f} a second",
        f"  python -m bench.simulation --seed {first} --seconds {seconds:g}; one of them again: --only SEED --seconds {seconds:g}",
        f"  differences: {counts['failed']}",
        f"  {counts['tuples']:,} tuples, {counts['rows checked']:,} rows compared, {counts['events']:,} events",
        f"  {counts['faults']:,} faults: " + ", ".join(f"{n:,} {name}" for name, n in kinds),
        f"  {counts['changes asked for']:,} changes asked for: {changes}; {counts['moved keys']:,} keys moved",
        f"  {counts['checkpoints']:,} checkpoints ({counts['unaligned checkpoints']:,} unaligned), {counts['restores']:,} times back "
        f"to one, {counts['runs']:,} runs, {counts['runs that failed']:,} of which ended by faults, "
        f"{counts['deaths']:,} deaths, {counts['hosts lost']:,} hosts lost; {counts['runs without checkpoints that lost all hosts']:,} runs "
        "without checkpoints lost all of them, and were not compared",
        f"  {counts['answers']:,} answers to {counts['questions']:,} questions for the state of a key; {counts['histories']:,} histories of a key "
        "between two restores were checked to be linearizable",
    ]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="the first one")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=300.0, help="of the rows of one, about")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="after which no other is waited for")
    parser.add_argument("--only", type=int, help="run this seed alone, with its history")
    parser.add_argument("--out", help="folder for result.txt and result.json, to which the run is added")
    parser.add_argument("--quick", action="store_true", help="few and short ones")
    given = parser.parse_args()
    if given.only is not None:
        print(draw(given.only, given.seconds))
        simulation, wrong = simulate(given.only, given.seconds, lambda line: print(line, flush=True))
        print(f"trace {simulation.events.trace:08x} of {simulation.events.count:,} events")
        print(f"wrong: {wrong}" if wrong else "all guarantees held")
        return 1 if wrong else 0
    if given.quick:
        given.count, given.seconds = min(given.count, 6), min(given.seconds, 60.0)
    runs = Runs(given.out, "simulation") if given.out else None
    first = given.seed if given.seed is not None else 1 if runs is None else runs.next_seed
    seeds = range(first, first + given.count)
    if runs is not None:
        runs.check(seeds)
    before = sum(os.times()[:4])

    def keep(counts: Counter[str], failures: list[tuple[int, str]]) -> None:
        if runs is not None and counts:
            about = {"seconds": given.seconds, "processor_seconds": sum(os.times()[:4]) - before}
            runs.keep(first, counts["last seed"], counts, {str(seed): wrong for seed, wrong in failures}, about)
            totals = runs.totals()
            used = sum(run["processor_seconds"] for run in runs.all)
            runs.write([*_said(totals, runs.all[0]["first_seed"], given.seconds, used), *runs.lines()])

    counts, failures = _many(seeds, given.seconds, given.jobs, given.minutes, keep)
    used = sum(os.times()[:4]) - before
    lines = _said(counts, first, given.seconds, used)
    lines += [f"--only {seed} --seconds {given.seconds:g}: {wrong[:300]}" for seed, wrong in sorted(failures)]
    print("\n" + "\n".join(lines))
    keep(counts, failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
