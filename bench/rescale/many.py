"""One live split of many keys, in memory or on disk, at a set rate: how long moved keys are held back, and what the others notice.

python -m bench.rescale.many --keys 10000000 --in-memory 100000 --rate 5000 [--before S] [--after S] [--longest S] [--keep DIR]

Prints a line of figures in JSON, and latencies by the second on standard error.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.kit.measure import ROOT
from bench.rescale.run import start
from bench.rescale.topology import NOTE

__all__ = ["main"]

#: seconds of rest after the filling that do not count
WARM = 1.0


def _run(arguments: Any, folder: Path) -> dict[str, Any]:
    line = [sys.executable, "-m", "bench.rescale.run", "live", "--kinds", "split", "--folder", str(folder)]
    line += ["--keys", str(arguments.keys), "--rate", str(arguments.rate), "--seconds", str(arguments.before)]
    line += ["--tail", str(arguments.after), "--longest", str(arguments.longest), "--note", str(arguments.note)]
    if arguments.in_memory:
        line += ["--in-memory", str(arguments.in_memory)]
    done = subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _figures(folder: Path, run: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    from bench.rescale.figures import AFTER, BEFORE, around, behind, counts, read, spread, stopped

    rows, offered = read(folder)
    asked, change = run["asked"][0], run["changes"][0]
    ended = asked + change["total_ms"] / 1000
    first = start(folder)
    # A row of a key that moves is processed by the new owner as soon as the table says so; until then it is as any other.
    moved = rows.owner != rows.owner[0]
    late = rows.out - rows.due
    for second in range(int(asked - first) - 5, int(np.nanmax(rows.due) - first) + 1):
        here = (rows.due >= first + second) & (rows.due < first + second + 1)
        by = {"others": spread(late[here & ~moved]), "moved": spread(late[here & moved])}
        texts = [f"{n} {f['n']:6} p50 {f['p50']:6.2f} p99 {f['p99']:7.2f} max {f['max']:7.1f}" for n, f in by.items()]
        print(f"{second - (asked - first):+8.1f} s", *texts, sep="   ", file=sys.stderr)
    inside = (rows.due >= asked - BEFORE) & (rows.due < ended + AFTER)
    return {
        "counts": counts(rows, offered["next"]),
        **{name: change[name] for name in ("held_back_ms", "total_ms", "prepare_ms", "moved_keys", "moved_bytes")},
        "behind_ms": behind(rows, asked),
        "untouched": around(rows, ~moved, first + WARM, asked, ended),
        "moved": spread(late[moved & inside]),
        **stopped(rows, asked, ended),
        "late_by_ms": {str(ms): int(np.sum(inside & (late > ms / 1000))) for ms in (10, 50, 100, 250)},
    }


def main() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--in-memory", type=int, metavar="N", help="the states of the others are on disk; default: all")
    parser.add_argument(
        "--note", type=int, default=NOTE, help="bytes of state a key beside a count and what it is packed in (10)"
    )
    parser.add_argument("--rate", type=float, default=5_000.0, help="tuples a second")
    parser.add_argument("--before", type=float, default=15.0, help="seconds at the rate before the split")
    parser.add_argument("--after", type=float, default=10.0)
    parser.add_argument("--longest", type=float, default=900.0, help="seconds that the split may take")
    parser.add_argument("--keep", help="a folder for what came out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(arguments.keep or name)
        folder.mkdir(parents=True, exist_ok=True)
        print(json.dumps(_figures(folder, _run(arguments, folder))))


if __name__ == "__main__":
    main()
