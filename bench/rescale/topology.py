"""A keyed running count with about 100 bytes of state a key, offered open loop; every row that comes out is on record."""

from __future__ import annotations

import array
import functools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack

from bench.workloads.loads import SEED
from esault import Bolt, EndOfStream, Sink, Spout, Topology, by_key

__all__ = ["NOTE", "drawn", "topology"]

#: so many keys are drawn, uniformly, and offered again and again, after each key was offered once
DRAWN = 1 << 18
#: bytes that stand for a user's state beside the count: with it a key's packed state is 100 bytes
NOTE = 90
#: a record is index << SHIFT | count
SHIFT = 24
#: seconds of rest between the last key's first tuple and the first one that is measured
REST = 1.0


@functools.lru_cache(maxsize=1)
def drawn(keys: int) -> list[int]:
    """The keys by number, in the order in which they are offered after each was offered once."""
    return random.Random(SEED).choices(range(keys), k=DRAWN)


class Schedule:
    """The load: each key once as fast as it is taken, a rest, then drawn keys at a rate.

    Open loop, as `esault.sources.Paced`; but the schedule goes on over a restart, so that what was due while nothing ran
    is late, as it would be for a user. `rate` 0: as fast as it is taken.
    """

    def __init__(self, keys: int, rate: float, seconds: float, folder: str) -> None:
        self.keys, self.rate = keys, rate
        self.path = Path(folder) / "offered.json"
        said = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.next: int = said.get("next", 0)
        #: when tuple number `keys` is due; 0.0 before the rest
        self.start: float = said.get("start", 0.0)
        #: how long it goes on, from the start or, after a restart, from the first read
        self.seconds = seconds
        self.end = 0.0
        names = [str(key) for key in drawn(keys)]
        self.names = names + names[:4096]

    def save(self) -> None:
        self.path.write_text(json.dumps({"next": self.next, "start": self.start, "keys": self.keys, "rate": self.rate}))

    def due(self) -> float:
        """Return when the next tuple is due."""
        return self.start + (self.next - self.keys) / self.rate

    def take(self, most: int, now: float) -> list[tuple[str, int]] | None:
        """Up to so many (key, index) that are due; None at the end."""
        first = self.next
        if first < self.keys:
            self.next = min(self.keys, first + most)
            return [(str(i), i) for i in range(first, self.next)]
        if not self.start:
            self.start = now + REST
            self.save()
        if now < self.start:
            return []
        self.end = self.end or max(now, self.start) + self.seconds
        if now > self.end:
            return None
        count = min(most, 4096)
        if self.rate:
            count = min(count, self.keys + int((now - self.start) * self.rate) + 1 - first)
        if count < 1:
            return []
        self.next = first + count
        place = (first - self.keys) % DRAWN
        return list(zip(self.names[place : place + count], range(first, self.next)))


class Offered(Spout):
    """A schedule as a spout."""

    def __init__(self, keys: int, rate: float, seconds: float, folder: str) -> None:
        self.arguments = (keys, rate, seconds, folder)
        self.at: float | None = None

    def open(self, context: Any) -> None:
        self.schedule = Schedule(*self.arguments)

    def read(self, limit: int) -> Sequence[tuple[str, int]]:
        schedule = self.schedule
        now = self.context.now()
        self.at = schedule.due() if schedule.start and schedule.rate else None
        rows = schedule.take(limit, now)
        if rows is None:
            raise EndOfStream
        return rows

    def due(self) -> float | None:
        return self.at

    def close(self) -> None:
        self.schedule.save()


class Running(Bolt):
    """Counts the tuples of its key, and carries a note along."""

    def __init__(self, note=NOTE):
        self.n = 0
        self.note = bytes(note)

    def process(self, key, index):
        self.n = n = self.n + 1
        self.emit(key, index << SHIFT | n)


#: states of an earlier run, by key, in the process of each sub-unit
_LOADED: dict[str, Any] = {}


class Restarted(Running):
    """The same for runs that are stopped and started: a checkpoint of the bench's own, so that nothing else is measured.

    At an end in order `finish` is called on every element: it puts the state out, to a sink that writes it to a file.
    """

    def open(self, context):
        state = _LOADED.pop(self.key, None)
        if state is not None:
            self.n, self.note = state

    def finish(self):
        self.emit(self.key, (self.n, self.note), stream="state")


class Record(Sink):
    """Binary files for each sub-unit: the time and the number of rows of each write, and the rows."""

    def __init__(self, folder: str, load: bool = False) -> None:
        self.folder, self.load = Path(folder), load

    def open(self, context: Any) -> None:
        name = f"{context.run}-{context.sub_unit}"
        self.stamps = (self.folder / f"{name}.stamps").open("ab", buffering=1 << 16)
        self.rows = (self.folder / f"{name}.rows").open("ab", buffering=1 << 18)
        if self.load:  # before the first tuple comes
            for path in self.folder.glob("*.state"):
                _LOADED.update(msgpack.unpackb(path.read_bytes(), use_list=False))

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time_: float, ids: Any) -> None:
        self.stamps.write(array.array("d", (self.context.now(), len(values))))
        self.rows.write(array.array("Q", values))

    def close(self) -> None:
        self.stamps.close()
        self.rows.close()


class StateFile(Sink):
    """All states of a sub-unit in one file, written when it stops."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def open(self, context: Any) -> None:
        self.path = self.folder / f"{context.run}-{context.sub_unit}.state"
        self.states: dict[Any, Any] = {}

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time_: float, ids: Any) -> None:
        self.states.update(zip(keys, values))

    def close(self) -> None:
        if self.states:
            self.path.write_bytes(msgpack.packb(self.states))


def topology(
    folder: str,
    keys: int,
    rate: float = 0.0,
    seconds: float = 3600.0,
    restarted: bool = False,
    p: int = 1,
    in_memory: int | None = None,
    note: int = NOTE,
) -> Topology:
    """Offered -> count -> record; with `restarted`, states are written at the end and read at the start.

    `in_memory`: keys that a sub-unit holds in memory at most; the states of the others are on disk. `note`: bytes of
    state beside a count.
    """
    t = Topology("bench-rescale")
    offered = t.spout("offered", Offered(keys, rate, seconds, folder))
    if not restarted:
        running = functools.partial(Running, note)
        counts = offered.bolt("count", running, grouping=by_key(), parallelism=p, keys_in_memory=in_memory)
        counts.sink("record", Record(folder))
        return t
    counts = offered.bolt("count", Restarted, grouping=by_key(), parallelism=p, streams=("state",))
    counts.sink("record", Record(folder, load=True))
    counts["state"].sink("states", StateFile(folder))
    return t
