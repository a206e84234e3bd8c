"""O1 and O9 live: the policy on actors against a configuration that is fixed for the peak, with what the sub-units took.

python -m bench.policies.orientstream.live [--seconds S] [--seed N] POLICY

runs one and prints one line of JSON; POLICY is `fixed` or a spec as on the command line.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from bench.kit.quiet_view import QuietView
from bench.policies.orientstream.topology import MAP, SPEED
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.topology.locate import locate

__all__ = ["live"]

PEAK, WAVE = 500.0, 60.0
#: share of its time that a sub-unit of the fixed configuration is busy at the peak
BUSY = 0.85
#: seconds between two looks at the processes
EVERY = 0.5
SYSTEMS = ("fixed", "orientstream:latency=0.5,warm_up=15")


class _Taken(threading.Thread):
    """Processor seconds and memory of the run's sub-units, by their processes' titles."""

    def __init__(self, units: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self._marks = tuple(f" {unit}/" for unit in units)
        self._over = threading.Event()
        #: process -> seconds
        self.cpu: dict[tuple[int, float], float] = {}
        #: bytes that are theirs alone, of each look
        self.looks: list[int] = []
        self.start()

    def run(self) -> None:
        while not self._over.wait(EVERY):
            taken = 0
            for process in psutil.Process(os.getpid()).children(recursive=True):
                try:
                    title = " ".join(process.cmdline())
                    if not any(mark in title for mark in self._marks):
                        continue
                    times = process.cpu_times()
                    self.cpu[process.pid, process.create_time()] = times.user + times.system
                    taken += process.memory_full_info().uss
                except psutil.Error:
                    continue
            if taken:
                self.looks.append(taken)

    def stop(self) -> None:
        self._over.set()
        self.join()


def _run(system: str, seconds: float, seed: int) -> dict[str, Any]:
    place = locate(f"{Path(__file__).with_name('topology.py')}:topology")
    params = {"seconds": seconds, "peak": PEAK, "wave": WAVE, "seed": seed}
    widths = {"map": math.ceil(PEAK * MAP / BUSY), "speed": math.ceil(PEAK * SPEED / BUSY)}
    policy = "none" if system == "fixed" else system
    taken = _Taken(("map", "speed"))
    start = time.monotonic()
    try:
        session = Session(Request(place, params, parallelism=widths, slots=24, view=QuietView(), policies={"": policy}))
        report = session.run()
    finally:
        taken.stop()
    return {
        "system": system,
        "seed": seed,
        "seconds": time.monotonic() - start,
        "cpu_seconds": sum(taken.cpu.values()),
        "megabytes": statistics.fmean(taken.looks) / 2**20,
        "sub_units": sum(_width(report.units[unit].parallelism, report.seconds) for unit in widths),
        "p50_ms": report.end_to_end_ms.p50,
        "p99_ms": report.end_to_end_ms.p99,
        "tuples": report.units["speed"].tuples_in,
        "replayed": report.roots.replayed,
        "changes": [[c.unit, c.before, c.after, c.total_ms, c.prepare_ms, c.held_back_ms] for c in report.changes],
        "failed": [d.reason for d in report.decisions if d.outcome.startswith("failed")],
    }


def _width(trace: Sequence[tuple[float, int]], end: float) -> float:
    """Mean over time of (since when, sub-units)."""
    ends = [*(at for at, _ in trace[1:]), end]
    return sum(n * (until - at) for (at, n), until in zip(trace, ends)) / (end - trace[0][0])


def live(seconds: float, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """A run of each system for each seed, in processes of their own. Raises RuntimeError when one fails."""
    rows = []
    for seed in seeds:
        for system in SYSTEMS:
            command = [sys.executable, "-m", "bench.policies.orientstream.live", "--seconds", str(seconds)]
            done = subprocess.run(
                [*command, "--seed", str(seed), system],
                capture_output=True,
                text=True,
                timeout=3 * seconds + 120,
                check=False,
            )
            if done.returncode:
                raise RuntimeError(f"{system}: {done.stderr[-2000:]}")
            rows.append(json.loads(done.stdout.splitlines()[-1]))
    return rows


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", help="fixed, or a policy")
    parser.add_argument("--seconds", type=float, default=60.0, help="for which fixes are due")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(json.dumps(_run(arguments.policy, arguments.seconds, arguments.seed)))


if __name__ == "__main__":
    _main()
