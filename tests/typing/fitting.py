"""Units that fit and units that do not, for a type checker; `# misfit` marks each line where it must find one."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from esault import BatchBolt, Bolt, Columns, Sink, Spout, Stream, Topology, by_key, run, shuffle


class Lines(Spout[str, str]):
    def read(self, limit: int) -> Sequence[tuple[str, str]]:
        return [("file", "a line")]


class Split(Bolt[str, str, str, int]):
    def process(self, key: str, value: str) -> None:
        for word in value.split():
            self.emit(word, 1)
        self.emit(1, key)  # misfit


class Count(Bolt[str, int, str, int]):
    def __init__(self, start: int = 0) -> None:
        self.total = start

    def process(self, key: str, value: int) -> None:
        self.total += value
        self.emit(key, self.total)


class OtherNames(Bolt[str, int, str, int]):
    def process(self, word: str, number: int) -> None:
        self.emit(word, number)


class CountBatch(BatchBolt[str, int, str, int]):
    def process_batch(self, rows: Sequence[tuple[str, int]]) -> None:
        self.emit_batch(rows)


class CountColumns(BatchBolt[str, int, str, int]):
    def process_columns(self, keys: Sequence[str], values: NDArray[np.int64]) -> None:
        self.emit_columns(keys, values)
        self.emit_columns(np.array(keys), [1, 2])
        self.emit_columns(None, values * 2, stream="late")
        self.emit_columns(["a"], ["b"])  # misfit
        counts = dict(zip(keys, values))
        self.emit_columns(counts.keys(), counts.values())
        self.emit_columns(counts.values(), counts.keys())  # misfit
        self.emit_columns("a", 1)  # misfit


class Numbers(Spout[str, int]):
    def read(self, limit: int) -> Sequence[tuple[str, int]] | Columns:
        return Columns(None, np.arange(limit)) if limit > 1 else Columns(["a"], [1])


class Plain(Bolt):  # type: ignore[type-arg]
    def process(self, key, value):  # type: ignore[no-untyped-def]
        self.emit(key, value)


class Rows(Sink):
    pass


def words(line: str) -> Iterator[str]:
    yield from line.split()


def fitting() -> Topology:
    t = Topology("typed")
    lines: Stream[str, str] = t.spout("lines", Lines())
    split: Stream[str, int] = lines.bolt("split", Split, grouping=shuffle())
    count: Stream[str, int] = split.bolt("count", Count, grouping=by_key())
    split.bolt("partial", functools.partial(Count, 3), by_key())
    split.bolt("lambda", lambda: Count(3), by_key())
    batch: Stream[str, int] = split.bolt("batch", CountBatch, by_key())
    split.bolt("plain", Plain, by_key()).bolt("after", Count, by_key())
    both: Stream[str, int] = t.bolt("both", Count, inputs={count: by_key(), lines: by_key()}, streams=("late",))
    both["late"].bolt("late", Split, shuffle())
    lengths: Stream[str, int] = lines.flat_map(words).filter(bool).map(len)
    keyed: Stream[int, int] = lengths.key_by(lambda n: n % 2)
    totals: Stream[int, float] = keyed.reduce("sum", lambda total, n: total + n, initial=0.0)
    totals.sink("rows", Rows())
    batch.sink("batch-rows", Rows())
    columns: Stream[str, int] = split.bolt("columns", CountColumns, by_key())
    columns.sink("column-rows", Rows())
    t.spout("numbers", Numbers()).bolt("again", CountColumns, by_key())
    return t


def misfits() -> Topology:
    t = Topology("typed")
    lines = t.spout("lines", Lines())
    split = lines.bolt("split", Split, grouping=shuffle())
    lines.bolt("count", Count, grouping=by_key())  # misfit
    lines.bolt("batch", CountBatch, grouping=by_key())  # misfit
    lines.bolt("columns", CountColumns, grouping=by_key())  # misfit
    split.bolt("again", Split, grouping=shuffle())  # misfit
    split.bolt("partial", functools.partial(Split), shuffle())  # misfit
    lines.bolt("object", Split(), grouping=shuffle())  # misfit
    wrong: Stream[str, str] = lines.bolt("split2", Split, grouping=shuffle())  # misfit
    wrong.map(len).map(words)  # misfit
    lines.key_by(len).bolt("keyed", Split, grouping=shuffle())  # misfit
    split.reduce("sum", lambda total, n: total + n, initial="")  # misfit
    t.spout("class", Lines)  # misfit
    lines.sink("class", Rows)  # misfit
    lines.bolt("grouping", Split, grouping=shuffle)  # misfit
    t.bolt("both", Count, inputs={"lines": by_key()})  # misfit
    return t


if __name__ == "__main__":
    run(fitting)
