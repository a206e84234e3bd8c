"""Random streams out of order, while units change and processes die, compared with DuckDB and with a plain loop.

`python -m tests.programs.differential --streams 20000 --jobs 2 --out bench/results/differential` runs many, with what happened in
`result.json` and `result.txt`; `--only SEED` runs one. A stream that may lose a process and go on must come to the very rows that the
other two say, none missing and none twice.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import platform
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb

from esault.testing import LocalRuntime
from esault.version import VERSION
from tests.programs.database import answers
from tests.programs.generate import Failed, Run
from tests.programs.plain import answer, wrong_lateness
from tests.programs.streams import LATE, OPERATORS, build, draw, found

#: streams that DuckDB is asked about at once
TOGETHER = 100


class StreamRun(Run):
    """A run of one stream."""

    def _start(self, **options: Any) -> LocalRuntime:
        program = self.program
        return LocalRuntime(build(program), seed=program.seed, settings=program.settings, **options)


def _text(row: Any) -> str:
    """A text that rows share whose numbers are equal, whole or not."""
    if isinstance(row, (tuple, list)):
        return f"({', '.join(map(_text, row))})"
    return repr(float(row)) if isinstance(row, (int, float)) and not isinstance(row, bool) else repr(row)


def differences(want: list[Any], got: list[Any]) -> str:
    """Return what is missing and what is too much."""
    wanted, there = Counter(map(_text, want)), Counter(map(_text, got))
    missing, more = wanted - there, there - wanted
    if not missing and not more:
        return ""
    some = [f"- {text[:300]}" for text in list(missing)[:3]] + [f"+ {text[:300]}" for text in list(more)[:3]]
    return f"{missing.total()} missing, {more.total()} too many of {len(want)}\n    " + "\n    ".join(some)


def _differ(program: Any, of: str, want: dict[str, list[Any]], got: dict[str, list[Any]]) -> None:
    for sink in sorted({*want, *got}):
        wrong = differences(want.get(sink, []), got.get(sink, []))
        if wrong:
            raise Failed(f"{program}\n  {of}, {sink}: {wrong}")


def run(seed: int, tell: Any = None) -> tuple[Counter[str], dict[str, list[Any]]]:
    """Run the stream of a seed and compare it with plain loops; what happened, and what came out. Raises Failed."""
    program = draw(seed)
    turn = StreamRun(program, tell)
    turn.go()
    got, counts = found(program, turn.landed), turn.counts
    if program.shape in LATE:
        wrong = wrong_lateness(program, got)
        if wrong:
            raise Failed(f"{program}\n  late: {wrong}")
        counts["late tuples"] += len(got["late"])
    if program.shape == "late tumbling":
        late = frozenset(n for _, n in got["late"])
        _differ(program, "plain loop", {**answer(program, late), "late": got["late"]}, got)
    elif program.shape not in LATE:
        _differ(program, "plain loop", answer(program), got)
    counts["streams"] += 1
    counts[program.shape] += 1
    counts["tuples in"] += sum(map(len, program.spouts.values()))
    counts["rows compared"] += sum(map(len, got.values()))
    changed = sum(counts[kind] for kind in ("split", "merge", "move", "rescale"))
    for name, happened in (("changed", changed), ("killed", counts["kills"]), ("resumed", counts["resumes"])):
        counts[f"streams {name}"] += bool(happened)
    return counts, got


def attempt(seeds: list[int]) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Run some streams, and ask DuckDB about all of them; what happened, and what was wrong."""
    counts: Counter[str] = Counter()
    failures, came = [], {}
    for seed in seeds:
        try:
            happened, came[seed] = run(seed)
            counts += happened
        except Failed as failure:
            failures.append((seed, str(failure)))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            failures.append((seed, f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"))
    late = {seed: frozenset(n for _, n in got.get("late", [])) for seed, got in came.items()}
    programs = {seed: draw(seed) for seed in came}
    for seed, want in answers(programs, late).items():
        counts["asked DuckDB"] += 1
        got = {sink: rows for sink, rows in came[seed].items() if sink != "late"}
        try:
            _differ(programs[seed], "DuckDB", want, got)
        except Failed as failure:
            failures.append((seed, str(failure)))
    return counts, failures


def many(seeds: range, jobs: int = 1, tell: Any = None) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Run streams; all counts, and seed and reason of each that failed. `tell` is called with both now and then."""
    counts: Counter[str] = Counter()
    failures: list[tuple[int, str]] = []
    some = [list(seeds[first : first + TOGETHER]) for first in range(0, len(seeds), TOGETHER)]
    pool = multiprocessing.get_context("spawn").Pool(jobs) if jobs > 1 else None
    try:
        for happened, wrong in pool.imap_unordered(attempt, some) if pool else map(attempt, some):
            counts += happened
            failures += wrong
            if tell is not None:
                tell(counts, failures)
    finally:
        if pool:
            pool.terminate()
            pool.join()
    return counts, failures


def _lines(counts: Counter[str], failures: list[tuple[int, str]], first: int, seconds: float) -> list[str]:
    of = [f"{counts[name]:,} {name}" for name in OPERATORS]
    befell = "split", "merge", "move", "rescale", "kills", "restores", "resumes", "checkpoints"
    return [
        f"{counts['streams']:,} random streams that come out of order, seeds from {first:,}, in {seconds / 60:.0f} minutes; "
        f"{counts['tuples in']:,} tuples in, {counts['rows compared']:,} rows out",
        f"  differences: {len(failures)}",
        f"  compared with a plain loop: {counts['streams']:,}, with DuckDB {duckdb.__version__}: {counts['asked DuckDB']:,}",
        f"  streams whose units changed while they ran: {counts['streams changed']:,}, that lost a process: "
        f"{counts['streams killed']:,}, that another run went on with: {counts['streams resumed']:,}",
        f"  what befell them: {', '.join(f'{counts[name]:,} {name}' for name in befell)}, {counts['moved keys']:,} moved keys",
        f"  tuples that were late: {counts['late tuples']:,}",
        *(f"  {', '.join(part)}" for part in itertools.zip_longest(*[iter(of)] * 3, fillvalue="")),
    ]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs.differential", description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="streams have the seeds SEED * 1000000 + 0, 1, 2 ...")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, help="run the stream of this seed alone, with all that befalls it")
    parser.add_argument("--out", type=Path, help="folder for result.json and result.txt")
    given = parser.parse_args()
    if given.only is not None:
        print(draw(given.only))
        print(dict(run(given.only, lambda text: print(" ", text))[0]))
        counts, failures = attempt([given.only])
        print(*(why for _, why in failures), sep="\n")
        return 1 if failures else 0
    begun, told, shown = time.monotonic(), time.monotonic(), 0
    first = given.seed * 1_000_000

    def tell(counts: Counter[str], failures: list[tuple[int, str]]) -> None:
        nonlocal told, shown
        for seed, reason in failures[shown:]:
            print(f"--only {seed}: {reason}", flush=True)
        shown = len(failures)
        if time.monotonic() - told > 10:
            told = time.monotonic()
            streams, seconds = counts["streams"], told - begun
            print(f"{streams:,} of {given.streams:,} streams, {seconds:.0f} s, {len(failures)} differ", flush=True)
            keep(counts, failures)

    def keep(counts: Counter[str], failures: list[tuple[int, str]]) -> list[str]:
        """Write what there is so far: a run that is ended has shown something, too."""
        lines = _lines(counts, failures, first, time.monotonic() - begun)
        if given.out is not None:
            given.out.mkdir(parents=True, exist_ok=True)
            versions = {"esault": VERSION, "duckdb": duckdb.__version__, "python": platform.python_version()}
            result = {
                "bench": "differential",
                "versions": versions,
                "first_seed": first,
                "asked": given.streams,
                "counts": dict(sorted(counts.items())),
                "differences": sorted(seed for seed, _ in failures),
            }
            (given.out / "result.json").write_text(json.dumps(result) + "\n")
            (given.out / "result.txt").write_text("\n".join(lines) + "\n")
        return lines

    counts, failures = many(range(first, first + given.streams), given.jobs, tell)
    print("\n".join(keep(counts, failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
