"""The work in Bytewax, as its documentation tells users to write it; prints nothing.

python -m bench.real.bytewax_flows NAME --data DIR --out DIR [--check] [--processes 2] [--workers 4]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as wop
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main, run_main

from bench.peers.addresses import free_addresses
from bench.real import functions
from bench.real.reading import batch_of, flight_delays, lines, listed
from bench.real.seen import Store
from bench.real.tables import DAYS, LINES, WORDS, Table

__all__ = ["FLOWS", "run"]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)


class _Part(StatelessSourcePartition[Any]):
    """Rows in batches."""

    def __init__(self, rows: Iterator[Any], size: int) -> None:
        self.rows, self.size = rows, size

    def next_batch(self) -> list[Any]:
        batch = list(islice(self.rows, self.size))
        if not batch:
            raise StopIteration
        return batch


class _Source(DynamicSource[Any]):
    """Rows of what `rows(files)` returns; the files are dealt out to the workers."""

    def __init__(self, name: str, files: list[str], rows: Callable[[list[str]], Iterator[Any]] = lines) -> None:
        self.size, self.files, self.rows = batch_of(name), files, rows

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Any:
        return _Part(iter(self.rows(self.files[worker_index::worker_count])), self.size)


class _Taken(StatelessSinkPartition[Any]):
    def __init__(self, taker: Store | Table) -> None:
        self.taker = taker

    def write_batch(self, items: list[Any]) -> None:
        self.taker.take(items)

    def close(self) -> None:
        self.taker.close()


class _Sink(DynamicSink[Any]):
    """Pairs, given to a store or a table of each worker's own."""

    def __init__(self, make: Callable[[], Store | Table]) -> None:
        self.make = make

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Taken:
        return _Taken(self.make())


def _counted(state: int | None, value: Any) -> tuple[int, int]:
    total = functions.count(state or 0, value)
    return total, total


def _spent(state: tuple[int, int] | None, event: dict[str, Any]) -> tuple[Any, Any]:
    total = functions.spend(state or (0, 0), event)
    return total, total


def _sized(state: tuple[int, int] | None, line: str) -> tuple[Any, Any]:
    count, size = state or (0, 0)
    total = count + 1, size + functions.length(line)
    return total, total


def _words(read: Any, data: str) -> Any:
    words = op.flat_map("split", read, lambda pair: [(word, 1) for word in functions.words(pair[1])])
    return op.stateful_map("count", words, _counted)


def _json_lines(read: Any, data: str) -> Any:
    events = op.filter("paid", op.map("loads", read, lambda pair: json.loads(pair[1])), functions.is_paid)
    return op.stateful_map("spent", op.key_on("user", events, functions.by_user), _spent)


def _keys(read: Any, data: str) -> Any:
    return op.stateful_map("count", op.map("key", read, lambda pair: (pair[1], pair[1])), _counted)


def _chain(read: Any, data: str) -> Any:
    steps: Sequence[Callable[[Any], Any]] = functions.CHAIN
    for i, function in enumerate(steps):
        read = op.map_value(f"step{i}", read, function)
    return read


def _large(read: Any, data: str) -> Any:
    keyed = op.map("key", read, lambda pair: (functions.first_field(pair[1]), pair[1]))
    return op.stateful_map("revise", keyed, lambda state, line: (True, functions.revise(line)))


def _windows(read: Any, data: str) -> Any:
    events = op.key_on("user", op.map("loads", read, lambda pair: json.loads(pair[1])), functions.by_user)
    # Event time alone moves a watermark, as in the other two: else what a key's event is behind the clock would be late.
    clock: wop.EventClock[Any] = wop.EventClock(
        lambda event: datetime.fromtimestamp(event["at"], timezone.utc), timedelta(0), lambda: EPOCH, lambda _: None
    )
    totals = wop.fold_window(
        "minute",
        events,
        clock,
        wop.TumblingWindower(MINUTE, EPOCH),
        lambda: (0, 0),
        functions.minute_total,
        lambda one, other: (one[0] + other[0], one[1] + other[1]),
    )
    return op.map_value("start", totals.down, lambda value: (value[0] * 60, *value[1]))


def _waits(read: Any, data: str) -> Any:
    return op.map_value("wait", op.redistribute("deal", read), functions.waited)


def _files(read: Any, data: str) -> Any:
    return op.stateful_map("sizes", read, _sized)


#: from (file, line) to what comes out
FLOWS: dict[str, Callable[[Any, str], Any]] = {
    "words": _words,
    "words_landed": _words,
    "json_lines": _json_lines,
    "keys": _keys,
    "chain": _chain,
    "steps": _chain,
    "large": _large,
    "windows": _windows,
    "waits": _waits,
    "files": _files,
}


def _flights(made: Dataflow, data: str, out: str) -> None:
    its = flight_delays()
    most = int(Path(data, "most.txt").read_text())
    # One file, and so one worker that reads it.
    flown = op.input(
        "in", made, _Source("flights", ["flights"], lambda files: its.flights(most) if files else iter(()))
    )
    flights = op.map("flight", flown, lambda pair: pair[1])

    def by_line(state: Any, flight: Any) -> tuple[Any, Any]:
        total = its.line(state or its.NO_LINE, flight)
        return total, total

    def by_day(state: Any, flight: Any) -> tuple[Any, Any]:
        total = its.day(state or its.NO_DAY, flight)
        return total, total

    arrived = op.filter("arrived", flights, lambda flight: flight[its.DELAY] is not None)
    keyed = op.key_on("line", arrived, lambda flight: f"{flight[its.CARRIER]} {flight[its.ORIGIN]}")
    op.output("lines", op.stateful_map("by_line", keyed, by_line), _Sink(lambda: Table(f"{out}/lines", LINES)))
    days = op.key_on("day", flights, lambda flight: flight[its.DAY])
    op.output("days", op.stateful_map("by_day", days, by_day), _Sink(lambda: Table(f"{out}/days", DAYS)))


def _flow(name: str, data: str, out: str, check: bool) -> Dataflow:
    made = Dataflow(f"real_{name}")
    if name == "flights":
        _flights(made, data, out)
        return made
    rows = FLOWS[name](op.input("in", made, _Source(name, listed(data))), data)
    op.output("out", rows, _Sink(lambda: Table(out, WORDS) if name == "words_landed" else Store(out, check)))
    return made


def run() -> None:
    """Run as the arguments say; the first process starts the others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=[*FLOWS, "flights"])
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="threads of each process")
    parser.add_argument("--addresses", help="of all processes; set by the first one")
    parser.add_argument("--process", type=int, default=0, help="which one this is; set by the first one")
    arguments = parser.parse_args()
    addresses = arguments.addresses.split(";") if arguments.addresses else []
    others: list[subprocess.Popen[bytes]] = []
    if arguments.processes > 1 and not addresses:
        addresses = free_addresses(arguments.processes)
        more = [sys.executable, "-m", "bench.real.bytewax_flows", *sys.argv[1:], "--addresses", ";".join(addresses)]
        others = [subprocess.Popen([*more, "--process", str(i)]) for i in range(1, arguments.processes)]
    made = _flow(arguments.name, arguments.data, arguments.out, arguments.check)
    if not addresses and arguments.workers == 1:
        run_main(made)
    else:
        cluster_main(made, addresses, arguments.process, worker_count_per_proc=arguments.workers)
    if any(each.wait() for each in others):
        sys.exit("a Bytewax process failed")


if __name__ == "__main__":
    run()
