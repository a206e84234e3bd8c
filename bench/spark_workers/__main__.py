"""The rate of the Spark engine on standalone clusters of one, two and three workers of a core each, where a tuple's time is slept.

python -m bench.spark_workers --out DIR [--quick] [--runs N]

Master and workers are in network namespaces where those can be made, each with a /tmp of its own. A bolt by key sleeps 5 ms for a tuple
and says when it was done. The rate is that of the last three quarters of the tuples: neither the start of Spark nor the first, small
batches are part of it. Every tuple must have landed once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.result import Bar, write
from bench.kit.spark_cluster import SparkCluster

__all__ = ["main", "rate_of"]

ROOT = Path(__file__).parents[2]
TOPOLOGY = Path(__file__).with_name("topology.py")
WORKERS = (1, 2, 3)
#: tuples for each worker, seconds that each takes, and seconds until a run hangs
ROWS, SECONDS, LONGEST = 10_000, 0.005, 900.0
RUNS = 2


def _ran(workers: int, rows: int) -> float:
    """Run on a cluster of so many workers; the tuples a second. Raises SystemExit where a tuple is missing or doubled."""
    # not below /tmp, of which each host has its own
    folder = Path(tempfile.mkdtemp(prefix="esault-spark-workers-", dir="/var/tmp"))
    with SparkCluster(folder / "cluster", workers) as cluster:
        (folder / "tmp").mkdir()
        command = [
            *cluster.prefix,
            *(sys.executable, "-m", "esault", "run", f"{TOPOLOGY}:topology", "--engine", "spark", "--plain"),
            *(
                "--master",
                cluster.master,
                "--set",
                f"out={folder}",
                "--set",
                f"rows={rows}",
                "--set",
                f"seconds={SECONDS}",
            ),
            *(f"--conf={name}={value}" for name, value in cluster.conf.items()),
        ]
        environ = {
            **os.environ,
            "TMPDIR": str(folder / "tmp"),
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": "python3",  # each host's
        }
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{workers} workers: {done.stderr[-3000:]}")
    landed = [json.loads(line)["value"] for file in folder.glob("out.jsonl*") for line in file.open()]
    numbers = sorted(row["n"] for row in landed)
    if numbers != list(range(rows)):
        raise SystemExit(
            f"{workers} workers: {len(numbers)} tuples landed, {len(set(numbers))} of {rows}; see {folder}"
        )
    shutil.rmtree(folder, ignore_errors=True)
    return rate_of([row["at"] for row in landed])


def rate_of(times: list[float]) -> float:
    """Return the tuples a second of the last three quarters, by the time at which each was done, seconds since the epoch."""
    ordered = sorted(times)
    first = len(ordered) // 4
    return (len(ordered) - 1 - first) / (ordered[-1] - ordered[first])


def main() -> None:
    """The bench."""
    arguments = parse(__doc__)
    runs = arguments.runs or (1 if arguments.quick else RUNS)
    rows = max(400, int(ROWS * arguments.scale * (0.1 if arguments.quick else 1.0)))
    about = {"machine": facts(), "spark": version("pyspark"), "runs": runs, "rows_per_worker": rows, "seconds": SECONDS}
    found: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    for run in range(runs):
        for workers in WORKERS:
            found[workers].append(_ran(workers, rows * workers))
            print(f"run {run + 1} of {runs}, {workers} workers: {found[workers][-1]:,.0f} tuples/s", flush=True)
    alone = median(found[WORKERS[0]])
    lines = [f"{rows:,} tuples a worker, {1000 * SECONDS:g} ms of sleep each: one worker could do {1 / SECONDS:,.0f}/s"]
    bars: list[Bar] = []
    result: dict[str, Any] = {"bench": "spark_workers", **about, "rates": {}}
    for workers, rates in found.items():
        middle = median(rates)
        lines.append(
            f"  {workers} workers: {middle:,.0f} tuples/s ({min(rates):,.0f} to {max(rates):,.0f}), x {middle / alone:.2f}"
        )
        bars.append(Bar(f"{workers} workers", middle, min(rates), max(rates), "esault"))
        result["rates"][workers] = rates
    write(arguments.out, result, lines, {"slept work": bars}, "tuples a second (median; line: least to most)")


if __name__ == "__main__":
    main()
