"""The work as a plain loop in one process; prints nothing.

python -m bench.real.plain NAME --data DIR --out DIR [--check]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from bench.real import functions
from bench.real.reading import batch_of, flight_delays, lines, listed
from bench.real.seen import Store
from bench.real.tables import DAYS, LINES, WORDS, Table

__all__ = ["LOOPS", "run"]

Pairs = Iterator[tuple[Any, Any]]


def _words(data: str) -> Pairs:
    totals: dict[str, int] = {}
    for _, line in lines(listed(data)):
        for word in functions.words(line):
            total = totals[word] = functions.count(totals.get(word, 0), 1)
            yield word, total


def _json_lines(data: str) -> Pairs:
    totals: dict[str, tuple[int, int]] = {}
    for _, line in lines(listed(data)):
        event = json.loads(line)
        if functions.is_paid(event):
            user = functions.by_user(event)
            total = totals[user] = functions.spend(totals.get(user, (0, 0)), event)
            yield user, total


def _keys(data: str) -> Pairs:
    totals: dict[str, int] = {}
    for _, line in lines(listed(data)):
        total = totals[line] = functions.count(totals.get(line, 0), line)
        yield line, total


def _chain(data: str) -> Pairs:
    first, second, third, fourth, fifth = functions.CHAIN
    for file, line in lines(listed(data)):
        yield file, fifth(fourth(third(second(first(line)))))


def _large(data: str) -> Pairs:
    for _, line in lines(listed(data)):
        yield functions.first_field(line), functions.revise(line)


def _windows(data: str) -> Pairs:
    open_: dict[int, dict[str, tuple[int, int]]] = {}
    for _, line in lines(listed(data)):
        event = json.loads(line)
        user, start = functions.by_user(event), int(event["at"] // 60) * 60
        for closed in [each for each in open_ if each + 60 <= event["at"]]:
            for key, total in open_.pop(closed).items():
                yield key, (closed, *total)
        window = open_.setdefault(start, {})
        window[user] = functions.minute_total(window.get(user, (0, 0)), event)
    for start, window in sorted(open_.items()):
        for key, total in window.items():
            yield key, (start, *total)


def _waits(data: str) -> Pairs:
    for file, line in lines(listed(data)):
        yield file, functions.waited(line)


def _files(data: str) -> Pairs:
    totals: dict[str, tuple[int, int]] = {}
    for file, line in lines(listed(data)):
        count, size = totals.get(file, (0, 0))
        total = totals[file] = (count + 1, size + functions.length(line))
        yield file, total


def _batches(rows: Pairs, name: str) -> Iterator[list[tuple[Any, Any]]]:
    while batch := list(islice(rows, batch_of(name))):
        yield batch


def _stored(name: str, rows: Callable[[str], Pairs], data: str, out: str, check: bool) -> None:
    store = Store(out, check)
    for batch in _batches(rows(data), name):
        store.take(batch)
    store.close()


def _words_landed(data: str, out: str, check: bool) -> None:
    with Table(out, WORDS) as table:
        for batch in _batches(_words(data), "words_landed"):
            table.take(batch)


def _flights(data: str, out: str, check: bool) -> None:
    its = flight_delays()
    lines_of: dict[str, tuple[int, int, int]] = {}
    days: dict[str, tuple[int, int, int]] = {}
    flown = its.flights(int(Path(data, "most.txt").read_text()))
    with Table(f"{out}/lines", LINES) as line_table, Table(f"{out}/days", DAYS) as day_table:
        for batch in _batches(flown, "flights"):
            new_lines, new_days = [], []
            for _, flight in batch:
                if flight[its.DELAY] is not None:
                    name = f"{flight[its.CARRIER]} {flight[its.ORIGIN]}"
                    lines_of[name] = its.line(lines_of.get(name, its.NO_LINE), flight)
                    new_lines.append((name, lines_of[name]))
                day = flight[its.DAY]
                days[day] = its.day(days.get(day, its.NO_DAY), flight)
                new_days.append((day, days[day]))
            line_table.take(new_lines)
            day_table.take(new_days)


#: (data, out, check) by name
LOOPS: dict[str, Callable[[str, str, bool], None]] = {
    **{
        name: partial(_stored, name, rows)
        for name, rows in {
            "words": _words,
            "json_lines": _json_lines,
            "keys": _keys,
            "chain": _chain,
            "steps": _chain,
            "large": _large,
            "windows": _windows,
            "waits": _waits,
            "files": _files,
        }.items()
    },
    "words_landed": _words_landed,
    "flights": _flights,
}


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=list(LOOPS))
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    LOOPS[arguments.name](arguments.data, arguments.out, arguments.check)


if __name__ == "__main__":
    run()
