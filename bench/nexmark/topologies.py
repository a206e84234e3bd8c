"""Nexmark's queries over events that were made before the first is read: what is measured is not their making."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bench.nexmark.answers  # noqa: F401 - puts the queries' folder on the path
from bench.workloads.topologies import Counted
from esault import EndOfStream, Topology
from esault.sinks import JsonLines
from esault.sources import Paced

from nexmark_events import Event, Events  # isort: skip
from nexmark_source import Nexmark  # isort: skip

__all__ = ["measured"]


class Made(Nexmark):
    """Nexmark's events from memory; says in `path` when the first was asked for and when all had been read."""

    def __init__(self, count: int, events: Events, path: str) -> None:
        super().__init__(count, events)
        self._path = path
        self._rows: list[tuple[int, Event]] = []
        self._next, self._begun, self._ended = 0, 0.0, 0.0

    def open(self, context: Any) -> None:
        """Make them."""
        super().open(context)
        try:
            while True:
                self._rows += super().read(10_000)
        except EndOfStream:
            pass

    def read(self, limit: int) -> Sequence[tuple[int, Event]]:
        """The next ones."""
        if not self._next:
            self._begun = time.time()
        rows = self._rows[self._next : self._next + limit]
        self._next += len(rows)
        if not rows:
            self._ended = time.time()
            raise EndOfStream
        return rows

    def position(self) -> int:
        """Return how many were read."""
        return self._next

    def seek(self, position: int) -> None:
        """Go on there."""
        self._next = position

    def close(self) -> None:
        """Say when."""
        with Path(self._path).open("a") as out:
            out.write(json.dumps({"begun": self._begun, "ended": self._ended, "read": self._next}) + "\n")


def measured(
    query: str,
    events: int,
    out: str,
    rate: float = 0.0,
    per_second: float = 10_000.0,
    keep: bool = False,
    made: bool = True,
) -> Topology:
    """A query over so many events, at `rate` a second or as fast as they are taken; with `keep` its rows go to the file `out`.rows.

    Source and sink say in `out` how many rows passed and when. Without `made`, events are made as they are read.
    """
    t = Topology(f"bench-nexmark-{query}")
    offered = Events(per_second=per_second)
    spout = Made(events, offered, out) if made else Nexmark(events, offered)
    stream = t.spout("events", Paced(spout, rate) if rate else spout)
    result = importlib.import_module(query).query(stream)
    result.sink("rows", JsonLines(f"{out}.rows", mode="replace") if keep else Counted(out))
    return t
