"""A random program of `tests/programs` as a topology of its own, which faults are done to on real processes.

Its rows come at a rate; the last tenth is held back until the folder says that it is to end. What lands is the text of each row, which
says its type, value and order, and is compared with what a plain loop makes of the same rows.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from esault import EndOfStream, Spout, Topology
from esault.sinks import JsonLines
from esault.topology.context import Context
from esault.topology.sink import Row
from tests.programs import generate
from tests.programs.mutations import canon

__all__ = ["END", "GENERATED", "drawn", "lost_and_doubled", "topology"]

#: in the folder: that it is to end
END = "end"
#: this file, as a run is given it
GENERATED = Path(__file__)
#: most rows of a spout, and rows a second
MOST_ROWS, RATE = 4000, 60.0


def drawn(seed: int) -> generate.Program:
    """The program of a seed: one that is promised each row once."""
    r = random.Random(f"faults {seed}")
    while True:
        program: generate.Program = generate.draw(r.getrandbits(30))
        if program.settings.delivery == "eo":
            generate.more_rows(r, program, MOST_ROWS)
            return program


class Paced(Spout[Any, Any]):
    """The rows of a spout, at a rate."""

    def __init__(self, rows: Sequence[tuple[Any, Any]], folder: Path) -> None:
        self._rows, self._folder = rows, folder
        self._held = len(rows) - len(rows) // 10 - 1
        self._next, self._ends = 0, False

    def open(self, context: Context) -> None:
        self._began, self._looked, self._first = time.monotonic(), 0.0, self._next

    def read(self, limit: int) -> Sequence[tuple[Any, Any]]:
        now = time.monotonic()
        if not self._ends and now - self._looked > 0.2:
            self._looked = now
            self._ends = (self._folder / END).exists()
        if self._next >= len(self._rows):
            raise EndOfStream
        there = len(self._rows) if self._ends else min(self._held, self._first + int(RATE * (now - self._began)))
        rows = self._rows[self._next : min(there, self._next + limit)]
        self._next += len(rows)
        return rows

    def position(self) -> int:
        return self._next

    def seek(self, position: int) -> None:
        self._next = self._first = position
        self._began = time.monotonic()


class Texts(JsonLines):
    """A line of JSON for each row, with its text."""

    def write(self, rows: Sequence[Row]) -> Any:
        return super().write([Row("", canon((row.key, row.value)), row.time) for row in rows])

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Sequence[str] | None) -> Any:
        texts = [canon(row) for row in zip(keys, values)]
        return super().write_columns([""] * len(texts), texts, time, ids)


def topology(folder: str, seed: int) -> Topology:
    """`folder`: where it is told what to do, and writes."""
    program, where = drawn(seed), Path(folder)
    spouts = {name: Paced(rows, where) for name, rows in program.spouts.items()}
    made: Topology = generate.build(
        program, spout=spouts.get, sink=lambda name: Texts(where / f"{name}.jsonl"), tick_every=0.5
    )
    return made


def lost_and_doubled(folder: Path, seed: int) -> dict[str, int]:
    """Rows that are missing and rows that should not be there, over all sinks; late rows, of which there are to be none."""
    program = drawn(seed)
    lost = doubled = late = rows = 0
    for name, want in generate.expected(program).items():
        should = Counter(canon((key, value)) for key, value in want)
        found: Counter[str] = Counter()
        for path in folder.glob(f"{name}-*.jsonl"):
            texts = [json.loads(line)["value"] for line in path.read_text().splitlines()]
            if path.stem == f"{name}-late":
                late += len(texts)
            else:
                found.update(texts)
        lost += (should - found).total()
        doubled += (found - should).total()
        rows += found.total()
    return {
        "numbers": sum(map(len, program.spouts.values())),
        "rows": rows,
        "rows_lost": lost,
        "rows_doubled": doubled,
        "rows_late": late,
    }
