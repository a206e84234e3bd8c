"""The use of copies of a bolt when one dies, and their cost.

python -m bench.replicas --out DIR [--quick] [--runs N] [--scale X]

A keyed running count of 1 000 keys, without copies and with two, in turns. First at 2 000 tuples a second, with a kill -9 of the
counting process after half of the time: the worst time from when a tuple was due to the end of its processing, what was
replayed, and by the ids of all rows what is missing or came twice. Then as fast as it goes: how long units are busy with a
tuple. Load of others on the machine is in all figures.
"""

from __future__ import annotations

import os
from statistics import median
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import Run, launch
from bench.kit.result import Bar, write

__all__ = ["main"]

RATE = 2000.0
SECONDS, QUICK_SECONDS = 8.0, 4.0
ROWS, QUICK_ROWS = 1_500_000, 150_000


def _spread(values: list[float]) -> str:
    return f"{median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def _lines(result: dict[str, Any]) -> list[str]:
    lines = [
        f"kill -9 of the counting process at {RATE:,.0f} tuples/s, load {result['load']:.1f}; median (least to most)",
        f"{'copies':>8}{'worst, ms':>24}{'replayed':>20}{'missing':>10}{'repeated':>12}",
    ]
    for replicas, runs in result["killed"].items():
        worst, replayed = ([run[name] for run in runs] for name in ("worst_ms", "replayed"))
        missing, repeated = (sum(run[name] for run in runs) for name in ("missing", "repeated"))
        lines.append(f"{replicas:>8}{_spread(worst):>24}{_spread(replayed):>20}{missing:>10}{repeated:>12}")
    lines += ["", "as fast as it goes, microseconds a tuple that units were busy (median)"]
    for replicas, runs in result["free"].items():
        each = [f"{name} {median([run['busy_us'][name] for run in runs]):.2f}" for name in runs[0]["busy_us"]]
        lines.append(f"{replicas:>8}  {', '.join(each)}")
    return lines


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    machine = facts()
    seconds = max(2.0, (QUICK_SECONDS if arguments.quick else SECONDS) * arguments.scale)
    rows = max(10_000, int((QUICK_ROWS if arguments.quick else ROWS) * arguments.scale))
    killed: dict[str, list[Run]] = {"1": [], "2": []}
    free: dict[str, list[Run]] = {"1": [], "2": []}
    for _ in range(arguments.runs or (1 if arguments.quick else 5)):
        for replicas, runs in killed.items():
            options = ("--replicas", replicas, "--rows", int(seconds * RATE), "--rate", RATE, "--kill", seconds / 2)
            run = launch("bench.replicas.run", *options)
            if not run["killed"] or run["missing"]:
                raise RuntimeError(f"replicas={replicas}: {run['killed']} killed, {run['missing']} rows are missing")
            runs.append(run)
            free[replicas].append(launch("bench.replicas.run", "--replicas", replicas, "--rows", rows))
    result = {"bench": "replicas", "machine": machine, "load": os.getloadavg()[1], "killed": killed, "free": free}
    bars = []
    for replicas, runs in killed.items():
        worst = [run["worst_ms"] for run in runs]
        bars.append(Bar(f"replicas={replicas}", median(worst), min(worst), max(worst)))
    write(arguments.out, result, _lines(result), {"worst time of a tuple around a kill -9": bars}, "ms")


if __name__ == "__main__":
    main()
