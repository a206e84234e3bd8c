"""Faults to a run on a standalone cluster of Spark, seeded, one after another; then its counts are compared with what they must be.

python -m bench.spark_faults --out DIR [--quick] [--runs FAULTS] [--minutes N] [--seed N]

It starts a master and two workers of one core, in network namespaces where those can be made, each with a /tmp of its own.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.result import Bar, write
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


def main() -> None:
    """The bench."""
    arguments = parse(__doc__, _options)
    faults = arguments.runs or (QUICK if arguments.quick else FAULTS)
    machine = facts()
    # not below /tmp, of which each host has its own
    folder = Path(tempfile.mkdtemp(prefix="esault-spark-faults-", dir="/var/tmp"))
    with SparkCluster(folder / "cluster") as cluster:
        (folder / "run").mkdir()
        trial = Trial(cluster, folder / "run", RATE, arguments.seed)
        try:
            found = trial.run(faults, minutes=arguments.minutes)
        except Lost as error:
            raise SystemExit(f"lost after {sum(map(len, trial.happened.values()))} faults: {error}") from None
        finally:
            trial.kill()
    wrong = [name for name in WRONG if found[name]]
    lines = [
        f"{found['faults']} faults in {found['seconds'] / 60:.0f} minutes, {found['amid_batches']} of them while a batch was computed; "
        f"{found['epochs']} epochs, {found['commands']} commands, {found['failed_commands']} of which ended by a fault to others",
        f"{found['numbers']:,} numbers, two tuples each: {', '.join(f'{name} {found[name]}' for name in WRONG)}",
        "seconds from the batch with the fault, and with others, to the end of the next epoch:",
    ]
    bars = []
    for kind, seconds in found["by_kind"].items():
        ordered = sorted(seconds)
        middle = ordered[len(ordered) // 2]
        lines.append(f"  {len(ordered):3}  {kind:30} median {middle:6.1f}  max {ordered[-1]:6.1f}")
        bars.append(Bar(kind, middle, ordered[0], ordered[-1]))
    result = {"bench": "spark_faults", "machine": machine, "seed": arguments.seed, "rate": RATE, **found}
    write(arguments.out, result, lines, {"until the next epoch is over": bars}, "seconds (median; line: least to most)")
    if wrong:
        raise SystemExit(f"not exact: {', '.join(wrong)}; what the run left is in {folder}")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
