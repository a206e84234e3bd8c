"""The same workloads in Bytewax, run in a process of its own, or in several; prints one line of JSON.

python -m bench.peers.bytewax_flows words LOAD PASSES [--processes 2] [--rate R]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from itertools import islice
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main, run_main

from bench.peers.addresses import free_addresses
from bench.workloads.loads import read

__all__ = ["BATCH", "flow", "run"]

#: rows that a source offers at a time; of 32 to 4096, the fastest here, though they differ by little
BATCH = 128
#: one batch in so many has the latency of all of its rows taken: each would cost the peer a part of its time
SAMPLED = 8


class _Part(StatelessSourcePartition[Any]):
    """Rows in batches."""

    def __init__(self, rows: list[Any], passes: int) -> None:
        self.rows, self.passes = rows, passes
        self.left = iter(rows)

    def next_batch(self) -> list[Any]:
        batch = list(islice(self.left, BATCH))
        while not batch:
            self.passes -= 1
            if self.passes < 1:
                raise StopIteration
            self.left = iter(self.rows)
            batch = list(islice(self.left, BATCH))
        return batch


class _DuePart(StatelessSourcePartition[Any]):
    """The rows that are due, each with the time at which it was (open loop)."""

    def __init__(self, rows: list[Any], passes: int, rate: float) -> None:
        self.rows, self.rate = rows, rate
        self.count = passes * len(rows)
        self.next, self.start = 0, 0.0

    def next_batch(self) -> list[Any]:
        if self.next >= self.count:
            raise StopIteration
        now = time.time()
        self.start = start = self.start or now
        due = min(self.count, int((now - start) * self.rate))
        rows, size, rate = self.rows, len(self.rows), self.rate
        batch = [(start + i / rate, rows[i % size]) for i in range(self.next, due)]
        self.next = max(self.next, due)
        return batch


class _Source(DynamicSource[Any]):
    def __init__(self, rows: list[Any], passes: int, rate: float = 0.0) -> None:
        self.rows, self.passes, self.rate = rows, passes, rate

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Any:
        part = self.rows[worker_index::worker_count]
        return _DuePart(part, self.passes, self.rate / worker_count) if self.rate else _Part(part, self.passes)


class _Counted(StatelessSinkPartition[Any]):
    def __init__(self, seen: dict[str, Any], timed: bool) -> None:
        self.seen, self.timed, self.batches = seen, timed, 0

    def write_batch(self, items: list[Any]) -> None:
        now = time.time()
        seen = self.seen
        if not seen["rows"]:
            seen["first"] = now
        seen["last"] = now
        seen["rows"] += len(items)
        if self.timed:
            if self.batches % SAMPLED == 0:  # the first among them: a short load may have few
                seen["late"].extend([now - value[0] for _, value in items])
            self.batches += 1


class _Sink(DynamicSink[Any]):
    def __init__(self, seen: dict[str, Any], timed: bool) -> None:
        self.seen, self.timed = seen, timed

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Counted:
        return _Counted(self.seen, self.timed)


def running(state: int | None, value: int) -> tuple[int, int]:
    """One update a row, as Count in bench/workloads/topologies.py."""
    total = (state or 0) + value
    return total, total


def running_due(state: int | None, value: tuple[float, int]) -> tuple[int, tuple[float, int]]:
    """The same, with the time at which the row was due."""
    total = (state or 0) + value[1]
    return total, (value[0], total)


def flow(what: str, load: str, passes: int, rate: float, seen: dict[str, Any]) -> Dataflow:
    """Workload A or C ("words") or B ("sums"); what comes out is counted in `seen`."""
    made = Dataflow("bench")
    offered = read(load)
    if what == "sums":
        rows = op.input("in", made, _Source(offered, passes))
        even = op.filter("even", op.map("add", rows, lambda r: (r[0], r[1] + 1)), lambda r: r[1] % 2 == 0)
        op.output("out", op.stateful_map("sum", even, running), _Sink(seen, False))
        return made
    lines = [line for _, line in offered]
    rows = op.input("in", made, _Source(lines, passes, rate))
    if rate:
        due_words = op.flat_map("split", rows, lambda r: [(w, (r[0], 1)) for w in r[1].split()])
        op.output("out", op.stateful_map("count", due_words, running_due), _Sink(seen, True))
    else:
        words = op.flat_map("split", rows, lambda line: [(w, 1) for w in line.split()])
        op.output("out", op.stateful_map("count", words, running), _Sink(seen, False))
    return made


def _latency(late: list[float]) -> dict[str, float]:
    ordered = sorted(late)
    return {
        "p50": 1000 * ordered[len(ordered) // 2],
        "p99": 1000 * ordered[int(len(ordered) * 0.99)],
        "max": 1000 * ordered[-1],
    }


def _cluster(processes: int) -> dict[str, Any]:
    """The same command once for each process, and what they saw together."""
    addresses = ";".join(free_addresses(processes))
    command = [sys.executable, "-m", "bench.peers.bytewax_flows", *sys.argv[1:], "--addresses", addresses, "--process"]
    running = [subprocess.Popen([*command, str(i)], stdout=subprocess.PIPE, text=True) for i in range(processes)]
    outputs = [each.communicate()[0] for each in running]
    if any(each.returncode for each in running):
        sys.exit("a Bytewax process failed")
    parts = [part for part in (json.loads(out.splitlines()[-1]) for out in outputs) if part["rows"]]
    return {
        "rows": sum(part["rows"] for part in parts),
        "first": min(part["first"] for part in parts),
        "last": max(part["last"] for part in parts),
        "late": [late for part in parts for late in part["late"]],
    }


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["words", "sums"])
    parser.add_argument("load")
    parser.add_argument("passes", type=int)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--addresses", help="of all processes; set by the first one")
    parser.add_argument("--process", type=int, help="which one this is; set by the first one")
    arguments = parser.parse_args()
    seen: dict[str, Any] = {"rows": 0, "first": 0.0, "last": 0.0, "late": []}
    if arguments.processes > 1 and arguments.process is None:
        seen = _cluster(arguments.processes)
    else:
        made = flow(arguments.what, arguments.load, arguments.passes, arguments.rate, seen)
        if arguments.process is None:
            run_main(made)
        else:
            cluster_main(made, arguments.addresses.split(";"), arguments.process)
            print(json.dumps(seen))
            return
    late = seen.pop("late")
    if late:
        seen["latency_ms"] = _latency(late)
    print(json.dumps(seen))


if __name__ == "__main__":
    run()
