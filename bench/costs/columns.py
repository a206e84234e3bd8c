"""Processor time for each tuple, as single tuples, rows, columns and arrays; all of a topology in one process, the best of some runs.

python -m bench.costs.columns [--runs N]
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.workloads.column_topologies import DISTINCT, numbers, partial
from bench.workloads.loads import make
from bench.workloads.topologies import words
from esault import Topology
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

__all__ = ["main"]


def cost(topology: Callable[[], Topology], tuples: int, runs: int) -> float:
    """Nanoseconds of processor time for each tuple that comes in."""
    best = float("inf")
    for _ in range(runs):
        local = LocalRuntime(topology(), real=True, settings=Settings(watch_values=False, reload_state=False))
        local.step()
        began = time.process_time()
        local.run_until_drained()
        best = min(best, time.process_time() - began)
    return best / tuples * 1e9


def main() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        load, out = make("sentences", 20_000, folder), str(Path(folder) / "out")
        path, count = str(load.path), load.tuples
        print("workload A, for each word")
        print(f"  a bolt for tuples      {cost(lambda: words(path, 1, out), count, runs):5.0f} ns")
        for kind in ("rows", "columns"):
            ns = cost(lambda kind=kind: partial(path, 1, out, kind), count, runs)  # type: ignore[misc]
            print(f"  partial counts, {kind:7}{ns:5.0f} ns")
        print("keyed sums of numbers over 1 000 keys, for each number")
        for p in (1, 2):
            for kind, passes in (("rows", 1), ("numpy", 8), ("arrow", 8)):
                ns = cost(functools.partial(numbers, "1000", passes, out, kind, p), passes * DISTINCT, runs)
                print(f"  {kind:6} {p} sub-unit{'s' * (p > 1):1}     {ns:5.0f} ns", flush=True)


if __name__ == "__main__":
    main()
