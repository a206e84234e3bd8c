"""One run of `bench/scale/topology.py` with so many sub-units, in a process of its own; prints one line of JSON.

python -m bench.scale.run N --service S --seconds S [--rate R] [--as-they-come] [--policy P] [--set NAME=VALUE ...]
"""

from __future__ import annotations

import argparse
import bisect
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import psutil

from bench.kit.esault_run import settings_of
from bench.kit.quiet_view import QuietView
from esault.control.report.summary import Snapshot
from esault.elasticity.scaling import EVERY_UNIT
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.topology.locate import locate

__all__ = ["at", "run"]

#: processes beside the sub-units of the bolt
SLOTS_BESIDE = 1


def at(marks: Sequence[tuple[float, int]], moment: float) -> float:
    """Rows by this moment, where (time, rows so far) is known now and then; between two marks as on a straight line."""
    after = bisect.bisect_right(marks, (moment, sys.maxsize))
    if after == 0:
        return 0.0
    if after == len(marks):
        return float(marks[-1][1])
    (t0, rows0), (t1, rows1) = marks[after - 1], marks[after]
    return rows0 + (rows1 - rows0) * (moment - t0) / (t1 - t0)


class _Processes:
    """CPU seconds of every process of the run, by what it is."""

    def __init__(self, units: dict[str, list[int]]) -> None:
        self._command = psutil.Process(os.getpid())
        (self._admin,) = self._command.children()
        keeper_and_driver = self._admin.children()
        self._keeper = next(p for p in keeper_and_driver if p.children())
        self._driver = next(p for p in keeper_and_driver if p.pid != self._keeper.pid)
        self._units = {name: [psutil.Process(pid) for pid in pids] for name, pids in units.items()}

    def seconds(self) -> dict[str, list[float]]:
        """User and system time so far; one figure for each process."""
        alone = {"command": self._command, "admin": self._admin, "keeper": self._keeper, "driver": self._driver}
        return {
            **{name: [_cpu(process)] for name, process in alone.items()},
            **{name: [_cpu(p) for p in processes] for name, processes in self._units.items()},
        }


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _busy() -> float:
    """CPU seconds of the whole host so far, all that is not idle."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


class _Samples:
    """Takes the CPU times at both ends of the steady part."""

    def __init__(self, warm: float, steady: float) -> None:
        self._warm, self._steady = warm, steady
        self._processes: _Processes | None = None
        #: (when, CPU seconds, those of the whole host)
        self.samples: list[tuple[float, dict[str, list[float]], float]] = []

    def take(self, snapshot: Snapshot) -> None:
        """While tuples flow, now and then."""
        if len(self.samples) == 2:
            return
        if self._processes is None:
            self._processes = _Processes({unit.name: list(unit.processes.values()) for unit in snapshot.units})
        begun = self.samples[0][0] if self.samples else None
        now = time.time()
        if (snapshot.seconds >= self._warm) if begun is None else (now - begun >= self._steady):
            self.samples.append((now, self._processes.seconds(), _busy()))


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("n", type=int)
    parser.add_argument("--service", type=float, required=True, help="seconds")
    parser.add_argument("--seconds", type=float, required=True, help="of the steady part")
    parser.add_argument("--warm", type=float, default=2.0, help="seconds before it")
    parser.add_argument("--rate", type=float, default=0.0, help="tuples a second; 0: as the window lets it")
    parser.add_argument(
        "--as-they-come", action="store_true", help="keys are not picked so that sub-units have equally many"
    )
    parser.add_argument("--policy", default="none", help="looks and decides, but has nothing to change")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    settings = settings_of(parser, arguments.set)
    taken = _Samples(arguments.warm, arguments.seconds)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        params = {
            "n": arguments.n,
            "service": arguments.service,
            "seconds": arguments.warm + arguments.seconds + 0.5,
            "out": str(out),
            "even": not arguments.as_they_come,
            "rate": arguments.rate,
        }
        place = locate(f"{Path(__file__).with_name('topology.py')}:served")
        report = Session(
            Request(
                place,
                params,
                settings=settings,
                slots=arguments.n + SLOTS_BESIDE,
                view=QuietView(taken.take),
                policies={EVERY_UNIT: arguments.policy},
            )
        ).run()
        lines = [json.loads(line) for line in out.read_text().splitlines()]
    offered = next(line for line in lines if "offered" in line)
    marks = {line["sub_unit"]: [tuple(m) for m in line["marks"]] for line in lines if "marks" in line}
    (begun, cpu_begun, host_begun), (ended, cpu_ended, host_ended) = taken.samples
    steady = [at(of_one, ended) - at(of_one, begun) for _, of_one in sorted(marks.items())]
    cpu = {name: [b - a for a, b in zip(cpu_begun[name], cpu_ended[name])] for name in cpu_begun}
    result = {
        "n": arguments.n,
        "rows": sum(of_one[-1][1] for of_one in marks.values() if of_one),
        "offered": offered["offered"],
        "began": offered["began"],
        "first": min(of_one[0][0] for of_one in marks.values() if of_one),
        "window_seconds": ended - begun,
        "steady_rows": steady,
        "cpu_seconds": cpu,
        # what else went on: where it takes the cores, sub-units wake up late and the rest is worth little
        "others_cores": max(0.0, host_ended - host_begun - sum(map(sum, cpu.values()))) / (ended - begun),
        "latency_ms": asdict(report.end_to_end_ms),
        "replayed": report.roots.replayed,
        "changes": len(report.changes),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    run()
