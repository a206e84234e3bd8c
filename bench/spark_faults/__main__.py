"""Faults to a run on a standalone cluster of Spark, seeded, one after another; then its counts are compared with what they must be.

python -m bench.spark_faults --out DIR [--quick] [--runs FAULTS] [--minutes N] [--seed N]

It starts a master and two workers of one core, in network namespaces where those can be made, each with a /tmp of its own.
What is in DIR already is counted, too: a hundred faults take hours. The result is written whenever an epoch has ended behind faults: a
bench that is stopped leaves what it has counted up to there.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.result import Bar, runs_before, save, write
from bench.kit.spark_cluster import SparkCluster
from bench.spark_faults.trial import Lost, Trial
from bench.workloads.loads import SEED

__all__ = ["main"]

FAULTS, QUICK = 100, 3
RATE = 200.0
#: counts that must be 0
WRONG = ("lost", "doubled", "keys_with_another_sum", "ends_doubled", "rows_lost", "rows_doubled")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no faults after so many")


def _said(runs: list[dict[str, Any]]) -> tuple[list[str], list[Bar]]:
    """Lines and bars for all runs together."""

    def total(name: str) -> int:
        return sum(run.get(name, 0) for run in runs)

    lines = [
        f"{total('faults')} faults in {total('seconds') / 60:.0f} minutes, {total('amid_batches')} of them while a batch was computed; "
        f"{total('epochs')} epochs, {total('commands')} commands, {total('failed_commands')} of which ended by a fault to others",
        f"{total('numbers'):,} numbers, two tuples each: {', '.join(f'{name} {total(name)}' for name in WRONG)}",
        *_stopped(runs),
        "seconds from the batch with the fault, and with others, to the end of the next epoch:",
    ]
    by_kind: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for kind, seconds in run["by_kind"].items():
            by_kind[kind] += seconds
    bars = []
    for kind, seconds in by_kind.items():
        ordered = sorted(seconds)
        middle = ordered[len(ordered) // 2]
        lines.append(f"  {len(ordered):3}  {kind:30} median {middle:6.1f}  max {ordered[-1]:6.1f}")
        bars.append(Bar(kind, middle, ordered[0], ordered[-1]))
    lines += [
        f"  seed {run['seed']}: {run['faults']} faults, Spark {run.get('spark', '?')}, {run['machine']['processor']}, load at the start "
        f"{run['machine']['load_at_start']:.1f}, commit {run['machine']['commit']}"
        for run in runs
    ]
    return lines, bars


def _stopped(runs: list[dict[str, Any]]) -> list[str]:
    """Say how many runs did not come to their end, of which less could be compared."""
    stopped = [run for run in runs if not run.get("over", True)]
    rows = sum(run["rows"] for run in stopped)
    said = f"  {len(stopped)} of {len(runs)} runs stopped early: of {rows:,} rows those up to the newest of each key were compared, no state"
    return [said] if stopped else []


def main() -> None:
    """The bench."""
    arguments = parse(__doc__, _options)
    faults = arguments.runs or (QUICK if arguments.quick else FAULTS)
    runs = runs_before(arguments.out, "runs", arguments.seed)
    about = {"machine": facts(), "seed": arguments.seed, "rate": RATE, "spark": version("pyspark")}

    def result(found: dict[str, Any]) -> dict[str, Any]:
        return {"bench": "spark_faults", "runs": [*runs, {**about, **found}]}

    def keep(found: dict[str, Any]) -> None:
        so_far = result(found)
        save(arguments.out, so_far, _said(so_far["runs"])[0])

    # not below /tmp, of which each host has its own
    folder = Path(tempfile.mkdtemp(prefix="esault-spark-faults-", dir="/var/tmp"))
    with SparkCluster(folder / "cluster") as cluster:
        (folder / "run").mkdir()
        trial = Trial(cluster, folder / "run", RATE, arguments.seed)
        try:
            found = trial.run(faults, minutes=arguments.minutes, keep=keep)
        except Lost as error:
            raise SystemExit(f"lost after {sum(map(len, trial.happened.values()))} faults: {error}") from None
        finally:
            trial.kill()
    whole = result(found)
    lines, bars = _said(whole["runs"])
    unit = "seconds (median; line: least to most)"
    write(arguments.out, whole, lines, {"until the next epoch is over": bars}, unit)
    if wrong := [name for name in WRONG if found[name]]:
        raise SystemExit(f"not exact: {', '.join(wrong)}; what the run left is in {folder}")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
