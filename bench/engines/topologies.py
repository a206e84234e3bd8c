"""The topologies of `topologies/` as their files give them, with ends that say how much passed and when."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.engines.data import Data, file_of
from bench.kit.steady_latency import TimedSink
from bench.workloads.topologies import Counted
from esault import Columns, EndOfStream, Spout, Topology
from esault.sources import Paced
from esault.topology.locate import locate
from esault.topology.plan import SinkPlan

__all__ = ["measured"]


class Offered(Spout[Any, Any]):
    """A topology's own spout, of which the first `most` tuples are read; says in `path` when the first was asked for and when all had been
    read."""

    def __init__(self, spout: Spout[Any, Any], most: int, path: str) -> None:
        self._spout, self._most, self._path = spout, most, path
        # An engine that reads twice must know what that takes here: else each worker reads what is before its part, too.
        self.seekable, self.seeks_by_reading = spout.seekable, spout.seeks_by_reading
        self._read, self._begun, self._ended = 0, 0.0, 0.0

    def open(self, context: Any) -> None:
        """The spout within."""
        self._spout.context = context
        self._spout.open(context)

    def read(self, limit: int) -> Sequence[tuple[Any, Any]] | Columns:
        """The next ones."""
        if not self._begun:
            self._begun = time.time()
        try:
            if self._read >= self._most:
                raise EndOfStream
            rows = self._spout.read(min(limit, self._most - self._read))
        except EndOfStream:
            self._ended = time.time()
            raise
        self._read += len(rows)
        return rows

    def position(self) -> Any:
        """Return how many were read, and where the spout within stands."""
        return self._read, self._spout.position()

    def seek(self, position: Any) -> None:
        """Go on there."""
        self._read, within = position
        self._spout.seek(within)

    def commit(self, position: Any) -> None:
        """As the spout within."""
        self._spout.commit(None if position is None else position[1])

    def close(self) -> None:
        """Say when."""
        self._spout.close()
        with Path(self._path).open("a") as out:
            out.write(json.dumps({"begun": self._begun, "ended": self._ended}) + "\n")


def measured(folder: str, out: str, tuples: int = 0, rate: float = 0.0) -> Topology:
    """The topology of the data in `folder`, over so many tuples of it (0: all), at `rate` a second or as fast as they are taken.

    Sources are the topology's own; where it has several, each has its part of tuples and rate. Its sinks only count. Both say in
    `out` how many rows passed and when, at a set rate also how long each took.
    """
    data = Data.read(Path(folder))
    t = locate(f"{file_of(data.name)}").build(data.params(Path(f"{out}.landed")))
    share = data.share(tuples or data.tuples)
    # The very graph: only what stands at its ends is another.
    for name, unit in t._draft.units.items():
        spout: Any = unit.settings.spout
        if spout is not None:
            spout = Offered(spout, share[name], out)
            paced = Paced(spout, rate * share[name] / sum(share.values())) if rate else spout
            unit.settings = replace(unit.settings, spout=paced)
        for outlet in unit.outlets:
            outlet.sinks = [SinkPlan(sink.name, (TimedSink if rate else Counted)(out)) for sink in outlet.sinks]
    return t
