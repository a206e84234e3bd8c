"""A spout in a worker: as many tuples as the driver counted, each once, whatever the spout gives at a time."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

from esault import Columns
from esault.sinks.collect import read_collected
from esault.spark.engine import reader, reading
from esault.spark.engine.worker_error import WorkerError

from .chain import Chain

FLOW = """
    import numpy as np
    import pyarrow as pa
    from esault import Bolt, Columns, EndOfStream, Spout, Topology, by_key, shuffle
    from esault.sinks import Collect


    class Twice(Spout):
        \"\"\"Two tuples for each number up to the end: it is asked for `limit` numbers.\"\"\"

        def __init__(self, end):
            self.next, self.end = 0, end

        def read(self, limit):
            if self.next >= self.end:
                raise EndOfStream
            numbers = range(self.next, min(self.end, self.next + limit))
            self.next += len(numbers)
            return self.given([n for n in numbers for _ in "ab"], list("ab") * len(numbers))

        def given(self, numbers, halves):
            return [(n % 7, (n, half)) for n, half in zip(numbers, halves)]

        def position(self):
            return self.next

        def seek(self, position):
            self.next = position


    class Lists(Twice):
        def given(self, numbers, halves):
            return Columns({n: n for n in range(len(numbers))}.keys(), list(zip(numbers, halves)))


    class Arrays(Twice):
        def given(self, numbers, halves):
            return Columns(np.array(numbers) % 7, pa.array(f"{n}{half}" for n, half in zip(numbers, halves)))


    class Batches(Twice):
        def given(self, numbers, halves):
            return Columns(tuple(numbers), pa.RecordBatch.from_pydict({"n": numbers, "half": halves}))


    class Pages(Twice):
        \"\"\"All of a page, of 100 numbers, however few are asked for.\"\"\"

        def read(self, limit):
            return super().read(100)


    class No13(Bolt):
        def process(self, key, value):
            if value == (13, "b"):
                raise ValueError("no 13")


    class Kept(Bolt):
        def __init__(self):
            self.values = []

        def process(self, key, value):
            self.values.append(tuple(value.values()) if isinstance(value, dict) else value)

        def finish(self):
            self.emit(self.key, list(self.values))


    def topology(kind: str, end: int = 1500, fails: bool = False) -> Topology:
        t = Topology("more")
        numbers = t.spout("numbers", globals()[kind](end))
        numbers.bolt("kept", Kept, grouping=by_key()).sink("out", Collect())
        if fails:
            numbers.bolt("no_13", No13, grouping=shuffle())
        return t
"""
KINDS = ("Twice", "Lists", "Arrays", "Batches", "Pages")


@pytest.fixture
def flow(tmp_path: Path) -> str:
    path = tmp_path / "flow.py"
    path.write_text(textwrap.dedent(FLOW))
    return f"{path}:topology"


def value(kind: str, n: int, half: str) -> Any:
    return f"{n}{half}" if kind == "Arrays" else (n, half)


@pytest.mark.parametrize("new_workers", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_gives_more_than_it_was_asked_for_gives_each_once(
    flow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, new_workers: int
) -> None:
    monkeypatch.setattr(reading, "READ_ROWS", 100)
    chain = Chain(flow, tmp_path / "run", {"kind": kind})
    batches = 0
    while not chain.epochs.ended.is_set():
        chain.batch(1)
        batches += 1
        if new_workers and batches % new_workers == 0:
            chain.forget_workers()
    chain.reading._close()
    found = Counter(tuple(v) if isinstance(v, list) else v for row in rows(chain) for v in row)
    assert found == Counter(value(kind, n, half) for n in range(1500) for half in "ab")
    assert batches > 5 and chain.tally.units["numbers"].rows_out == 3000


def rows(chain: Chain) -> list[list[Any]]:
    return [row[1] for row in read_collected(str(chain.folder), "out")]


def test_columns_without_keys_are_divided_too() -> None:
    first, rest = reader._divided(Columns(None, range(5)), 3)
    assert (first.keys, list(first.values), rest.keys, list(rest.values)) == (None, [0, 1, 2], None, [3, 4])
    assert reader._divided(Columns(None, range(3)), 3)[1] == ()


def test_what_lies_behind_a_range_waits_for_the_next_one(flow: str, tmp_path: Path) -> None:
    chain = Chain(flow, tmp_path / "run", {"kind": "Twice"})
    chain.batch(1)
    ((place, (row, spout, rest)),) = reader._HERE.items()
    assert place[1:] == ("numbers", 0)
    # the driver asked for as many numbers as there may be tuples, and the worker for as many as there were tuples
    assert row == chain.offset["parts"]["numbers"][0][0] and len(rest) == row
    assert rest[0] == (row // 2 % 7, (row // 2, "a")) and spout.position() == row
    chain.reading._close()
    chain.forget_workers()


def test_a_spout_is_closed_where_what_follows_it_fails(
    flow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(reader, "_HERE", {})  # what tests before have read in this process is closed, too
    chain = Chain(flow, tmp_path / "run", {"kind": "Twice", "fails": True})
    monkeypatch.setattr(reader, "_close", lambda unit, spout: closed.append(f"{unit} {type(spout).__name__}"))
    with pytest.raises(WorkerError, match="no 13"):
        chain.batch(1)
    assert closed == ["numbers Twice"] and not reader._HERE
    chain.reading._close()
    chain.forget_workers()
