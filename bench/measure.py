"""One run of a workload, ours or the peer's, and several of them as median and spread."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from esault.messages.settings import Settings
from esault.runtime.session import Session
from esault.topology.locate import locate

__all__ = ["MISSING", "bytewax", "esault", "repeated"]

#: said in a result where the peer cannot be had
MISSING = "bytewax is not installed: pip install 'esault[bench]'"


class _Silent:
    def line(self, mark: str, text: str) -> None:
        """Nothing is shown."""

    def notice(self, text: str) -> None:
        """Nothing is shown."""

    def update(self, snapshot: Any) -> None:
        """Nothing is shown."""


class _Memory(threading.Thread):
    """PSS of this process's descendants, the most that was seen; sampled rarely, since a sample costs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.5):
            total = 0
            for process in psutil.Process().children(recursive=True):
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue
            self.most = max(self.most, total)


def esault(
    function: str, params: Mapping[str, Any], settings: Settings | None = None, weigh: bool = True
) -> dict[str, Any]:
    """Run a topology of bench/topologies.py on actors; rows, rate from first to last result, start-up, memory.

    Weighing a process stops it for tens of milliseconds: where latency is measured nothing is weighed.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out")
        place = locate(f"{Path(__file__).with_name('topologies.py')}:{function}")
        session = Session(place, {**params, "out": out}, settings=settings, view=_Silent())
        memory = _Memory()
        begun = time.time()
        report = session.run(lambda spec: memory.start() if weigh else None)
        memory.over.set()
        if Path(out).is_file():
            seen = [json.loads(line) for line in Path(out).read_text().splitlines()]
            rows = sum(s["rows"] for s in seen)
            first, last = min(s["first"] for s in seen), max(s["last"] for s in seen)
        else:  # a table: from the start of the flow to its end, with all commits
            rows = next(reversed(report.units.values())).tuples_out
            first, last = 0.0, report.seconds
    return {
        "rows": rows,
        "rows_per_second": rows / (last - first),
        "start_up_seconds": first - begun if first else None,
        "pss_mib": memory.most / 2**20,
        "end_to_end_ms": asdict(report.end_to_end_ms),
        "replayed": report.roots.replayed,
    }


def bytewax(what: str, n: int, rate: float = 0.0) -> dict[str, Any] | None:
    """Run the same workload in Bytewax, one worker in a process of its own; None where it is not installed."""
    try:
        import bytewax as installed
    except ImportError:
        return None
    assert installed
    begun = time.time()
    command = [sys.executable, "-m", "bench.bytewax_flows", what, str(n), "--rate", str(rate)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    seen["rows_per_second"] = seen["rows"] / (seen["last"] - seen["first"])
    seen["start_up_seconds"] = seen["first"] - begun
    return seen


def repeated(runs: int, calls: Mapping[str, Callable[[], dict[str, Any] | None]], figure: str) -> dict[str, Any]:
    """Each call so many times, in turns, so that what disturbs one disturbs all; median, least and most of a figure."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in calls}
    for turn in range(runs):
        for name, call in calls.items():
            result = call()
            if result is not None:
                found[name].append(result)
                print(f"  run {turn + 1} of {runs}: {name}: {result[figure]:,.3f} {figure}", flush=True)
    return {
        name: {
            "median": statistics.median(r[figure] for r in results),
            "least": min(r[figure] for r in results),
            "most": max(r[figure] for r in results),
            "runs": results,
        }
        if results
        else {"missing": MISSING}
        for name, results in found.items()
    }
