"""The same workloads in Bytewax, run in a process of its own; prints one line of JSON.

python -m bench.bytewax_flows words 100000 [--rate R]
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

from bench.loads import records, sentences

BATCH = 128


class _Part(StatelessSourcePartition[Any]):
    """A list in batches; with a rate, what is due, with the time at which it was due (open loop)."""

    def __init__(self, rows: list[Any], rate: float) -> None:
        self.rows, self.rate, self.next, self.start = rows, rate, 0, None

    def next_batch(self) -> list[Any]:
        if self.next >= len(self.rows):
            raise StopIteration
        if not self.rate:
            batch = self.rows[self.next : self.next + BATCH]
            self.next += len(batch)
            return batch
        now = time.time()
        if self.start is None:
            self.start = now
        due = min(len(self.rows), int((now - self.start) * self.rate))
        batch = [(self.start + i / self.rate, self.rows[i]) for i in range(self.next, due)]
        self.next = max(self.next, due)
        return batch

    def next_awake(self) -> Any:
        return None


class _Source(DynamicSource[Any]):
    def __init__(self, rows: list[Any], rate: float = 0.0) -> None:
        self.rows, self.rate = rows, rate

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Part:
        return _Part(self.rows, self.rate)


class _Counted(StatelessSinkPartition[Any]):
    seen: dict[str, Any] = {"rows": 0, "first": 0.0, "last": 0.0, "late": []}  # noqa: RUF012 - one per process

    def __init__(self, timed: bool) -> None:
        self.timed = timed

    def write_batch(self, items: list[Any]) -> None:
        now = time.time()
        seen = self.seen
        if not seen["rows"]:
            seen["first"] = now
        seen["last"] = now
        seen["rows"] += len(items)
        if self.timed:
            seen["late"].append(now - items[0][1][0])


class _Sink(DynamicSink[Any]):
    def __init__(self, timed: bool = False) -> None:
        self.timed = timed

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Counted:
        return _Counted(self.timed)


def running(state: int | None, value: int) -> tuple[int, int]:
    total = (state or 0) + value
    return total, total


def running_due(state: int | None, value: tuple[float, int]) -> tuple[int, tuple[float, int]]:
    total = (state or 0) + value[1]
    return total, (value[0], total)


def flow(what: str, n: int, rate: float) -> Dataflow:
    made = Dataflow("bench")
    if what == "sums":
        rows = op.input("in", made, _Source(records(n)))
        even = op.filter("even", op.map("add", rows, lambda r: (r[0], r[1] + 1)), lambda r: r[1] % 2 == 0)
        op.output("out", op.stateful_map("sum", even, running), _Sink())
    elif rate:
        rows = op.input("in", made, _Source(sentences(n), rate))
        words = op.flat_map("split", rows, lambda r: [(w, (r[0], 1)) for w in r[1].split()])
        op.output("out", op.stateful_map("count", words, running_due), _Sink(timed=True))
    else:
        rows = op.input("in", made, _Source(sentences(n)))
        words = op.flat_map("split", rows, lambda line: [(w, 1) for w in line.split()])
        op.output("out", op.stateful_map("count", words, running), _Sink())
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["words", "sums"])
    parser.add_argument("n", type=int)
    parser.add_argument("--rate", type=float, default=0.0)
    arguments = parser.parse_args()
    made = flow(arguments.what, arguments.n, arguments.rate)
    run_main(made)
    seen = dict(_Counted.seen)
    late = sorted(seen.pop("late"))
    if late:
        seen["p50_ms"] = 1000 * late[len(late) // 2]
        seen["p99_ms"] = 1000 * late[int(len(late) * 0.99)]
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
