"""A keyed running count with or without copies; every row id that comes out is on record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from esault import Bolt, Sink, Topology, by_key
from esault.sources import Items, Paced

__all__ = ["topology"]

KEYS = 1000


class Count(Bolt):
    """The count of a key."""

    def __init__(self) -> None:
        self.total = 0

    def process(self, key: str, value: int) -> None:
        self.total += 1
        self.emit(key, self.total)


class Recorded(Sink):
    """Writes the number of each row's source row, a line each."""

    wants_id = True

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def open(self, context: Any) -> None:
        self._file = (self._folder / f"ids-{context.sub_unit}").open("a")

    def write(self, rows: Sequence[Any]) -> None:
        self._file.writelines(f"{row.id.split(':')[1].split('.')[0]}\n" for row in rows)
        self._file.flush()


def topology(folder: str, rows: int, rate: float = 0.0, replicas: int = 1) -> Topology:
    """`rate`: tuples a second; 0: as fast as they are taken."""
    t = Topology("replicas")
    items = Items([(f"k{i % KEYS}", i) for i in range(rows)])
    source = t.spout("source", Paced(items, rate) if rate else items)
    source.bolt("count", Count, grouping=by_key(), replicas=replicas).sink("recorded", Recorded(folder))
    return t
