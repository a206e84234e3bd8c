"""The rate at which rows land in a SparkTable, and Spark's time to report on them: workload A, each update with its id.

python -m bench.landing --out DIR [--quick] [--scale X]

100 million rows (2 million with --quick); about 2 GB of disk. What is timed is what a user runs: a topology with a table
behind it, then `esault analyze FOLDER --direct` with its compaction, its start of Spark and its reports.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import ROOT, Run, launch, missing
from bench.kit.result import Bar, write
from bench.workloads.loads import LENGTH, SEED, Load, make
from esault.sinks.landing import table_log

__all__ = ["main"]

ROWS, QUICK_ROWS = 100_000_000, 2_000_000
#: seconds after which a run hangs: that of the slowest machine that makes sense, at 50 000 rows a second
LONGEST = 2000.0


def _land(load: Load, folder: str) -> Run:
    """Land the load; rows a second from the first row written to the end of the last commit."""
    arguments = ("words", load.path, load.passes, "--sink", "table", "--keep", folder)
    run = launch("bench.kit.esault_run", *arguments, longest=LONGEST)
    if run["rows"] != load.results:
        raise RuntimeError(f"{run['rows']:,} rows were written in place of {load.results:,}")
    run["rows_per_second"] = run["rows"] / (run["last"] - run["first"])
    return run


def _lines(process: subprocess.Popen[str]) -> Iterator[tuple[float, str]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield time.monotonic(), line.rstrip()


@contextmanager
def _analyzing(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-u", "-m", "esault", "analyze", str(folder), "--direct"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


def _analyze(folder: Path) -> dict[str, Any]:
    """Seconds of each of the steps that `esault analyze` tells of, and of all."""
    begun = at = time.monotonic()
    steps: dict[str, float] = {}
    said: list[str] = []
    step = "import"
    with _analyzing(folder) as process:
        for now, line in _lines(process):
            said.append(line)
            if line.endswith("..."):
                steps[step] = steps.get(step, 0.0) + now - at
                step, at = line.split()[0], now
        if process.wait():
            raise RuntimeError("esault analyze failed:\n" + "\n".join(said[-30:]))
    now = time.monotonic()
    steps[step] = steps.get(step, 0.0) + now - at
    return {"seconds": now - begun, "steps": steps, "report": [line for line in said if not line.endswith("...")]}


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    rows = max(LENGTH, int((QUICK_ROWS if arguments.quick else ROWS) * arguments.scale))
    for package in ("pyarrow", "pyspark"):
        why = missing(package)
        if why is not None:
            sys.exit(f"bench landing: {why}")
    machine = facts()
    with tempfile.TemporaryDirectory() as folder:
        load = make("sentences", rows // LENGTH, folder)
        print(f"landing {load.results:,} rows ...", flush=True)
        landed = _land(load, folder)
        table = Path(folder) / "out.table"
        parts = table_log(table).files()
        print(f"  {landed['rows_per_second'] / 1e6:.2f} M rows/s, {len(parts)} parts; esault analyze ...", flush=True)
        analyzed = _analyze(table)
    size = sum(part.bytes for part in parts)
    in_log = sum(part.rows for part in parts)
    if in_log != load.results:
        raise RuntimeError(f"the table has {in_log:,} rows in place of {load.results:,}")
    if f"{load.results:,}" not in "\n".join(analyzed["report"]):
        raise RuntimeError("Spark's report does not have the number of rows that landed")
    result = {
        "bench": "landing",
        "machine": machine,
        "seed": SEED,
        "load": load.facts(),
        "landing": landed,
        "parts": len(parts),
        "bytes": size,
        "analyze": analyzed,
    }
    lines = [
        f"{load.results:,} rows landed, each with its id: {landed['rows_per_second'] / 1e6:.2f} M rows/s, "
        f"{landed['last'] - landed['first']:.0f} s; {len(parts)} parts, {size / load.results:.1f} bytes a row",
        f"esault analyze on them: {analyzed['seconds']:.0f} s ("
        + ", ".join(f"{step} {seconds:.0f}" for step, seconds in analyzed["steps"].items())
        + ")",
    ]
    bars = [Bar("landing", *[landed["last"] - landed["first"]] * 3)]
    bars += [Bar(f"analyze: {step}", *[seconds] * 3) for step, seconds in analyzed["steps"].items()]
    write(arguments.out, result, lines, {f"{load.results / 1e6:g} million rows": bars}, "seconds")


if __name__ == "__main__":
    main()
