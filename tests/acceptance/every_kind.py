"""A bolt for each kind of state that users have: it grows with each tuple, and what it is stands in what is emitted.

The kind of a key's state is the first part of its name. Everything that a bolt keeps or emits is made by the same functions as in
`expected`, a plain loop in one process.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import os
import pathlib
import time
import uuid
import zoneinfo
from typing import NamedTuple

import attrs
import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pydantic

from esault import Bolt, Spout, Topology, by_key
from esault.sinks import Collect, JsonLines
from esault.topology.spout import EndOfStream

ROME = zoneinfo.ZoneInfo("Europe/Rome")
KEYS = 6


class Colour(enum.Enum):
    RED = "red"
    BLUE = ("blue", 2)


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1


class Pair(NamedTuple):
    count: int
    items: list


@dataclasses.dataclass
class Item:
    n: int
    tags: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int
    item: Item


@dataclasses.dataclass(slots=True)
class Slots:
    n: int
    last: object = None


@attrs.define
class Attrs:
    n: int
    seen: list = attrs.Factory(list)


class Struct(msgspec.Struct):
    n: int
    seen: list = []


class Model(pydantic.BaseModel):
    n: int
    at: dt.datetime | None = None
    seen: list[int] = []


class Stats:
    """A class of the user's own."""

    def __init__(self):
        self.n = 0
        self.most = None

    def add(self, i):
        self.n += 1
        self.most = i if self.most is None else max(i, self.most)


class Guarded(Stats):
    """Says itself what is kept."""

    def __init__(self):
        super().__init__()
        self.lock = lambda: None

    def __getstate__(self):
        return (self.n, self.most)

    def __setstate__(self, state):
        self.__init__()
        self.n, self.most = state


def rebuilt(n, most):
    made = Reduced()
    made.n, made.most = n, most
    return made


class Reduced(Stats):
    def __reduce__(self):
        return rebuilt, (self.n, self.most)


def a_list():
    return []


def appended(items, i):
    items.append(i)
    return items


def put(found, key, i):
    found[key] = i
    return found


def grown(thing, i):
    thing.add(i)
    return thing


def with_item(state, i):
    state.n += 1
    state.tags.append([i, (i,)])
    return state


def linked(state, i):
    """Two names for one list, and a list that holds itself."""
    state["one"].append(i)
    assert state["two"] is state["one"], "one object has become two"
    assert state["self"] is state
    return state


def loop():
    items = [0]
    state = {"one": items, "two": items}
    state["self"] = state
    return state


def counted(found, i):
    found[i % 3] += 1
    return found


#: kind -> (what it begins as, what a tuple makes of it)
KINDS = {
    "list": (list, appended),
    "nested_list": (lambda: [[], ()], lambda s, i: [appended(s[0], (i, [i])), (*s[1], i)]),
    "tuple": (tuple, lambda s, i: (*s, i)),
    "dict": (dict, lambda s, i: put(s, (i % 4, "k"), [i])),
    "set": (set, lambda s, i: s | {i % 5}),
    "frozenset": (frozenset, lambda s, i: s | {(i % 5,)}),
    "str": (str, lambda s, i: (s + "ü")[-9:]),
    "bytes": (bytes, lambda s, i: (s + bytes([i % 256]))[-9:]),
    "bytearray": (bytearray, lambda s, i: (s + bytes([i % 256]))[-9:]),
    "int": (lambda: 1, lambda s, i: (s * 3 + i) % 2**200),
    "float": (lambda: -0.0, lambda s, i: float("nan") if i % 7 == 0 else float("inf") if i % 11 == 0 else -0.0),
    "complex": (lambda: 0j, lambda s, i: s + 1j),
    "bool": (lambda: False, lambda s, i: not s),
    "none": (lambda: None, lambda s, i: None),
    "datetime": (lambda: dt.datetime(2026, 3, 29, tzinfo=ROME), lambda s, i: s + dt.timedelta(hours=1)),
    "date": (lambda: dt.date(2026, 1, 1), lambda s, i: s + dt.timedelta(days=1)),
    "time": (lambda: dt.time(0, 0, tzinfo=dt.timezone.utc), lambda s, i: s.replace(minute=i % 60)),
    "timedelta": (dt.timedelta, lambda s, i: s + dt.timedelta(microseconds=i)),
    "zoneinfo": (lambda: ROME, lambda s, i: s),
    "decimal": (lambda: decimal.Decimal("0.00"), lambda s, i: s + decimal.Decimal("0.10")),
    "fraction": (fractions.Fraction, lambda s, i: s + fractions.Fraction(1, 3)),
    "uuid": (lambda: uuid.UUID(int=0), lambda s, i: uuid.UUID(int=s.int + 1)),
    "path": (lambda: pathlib.PurePosixPath("/a"), lambda s, i: s.with_name(f"n{i}")),
    "enum": (lambda: Colour.RED, lambda s, i: Colour.BLUE if s is Colour.RED else Colour.RED),
    "int_enum": (lambda: Level.LOW, lambda s, i: Level(i % 2)),
    "range": (lambda: range(0), lambda s, i: range(len(s) + 1)),
    "deque": (lambda: collections.deque(maxlen=3), appended),
    "counter": (collections.Counter, counted),
    "defaultdict": (lambda: collections.defaultdict(a_list), lambda s, i: (s[i % 3].append(i), s)[1]),
    "nested_defaultdict": (
        lambda: collections.defaultdict(functools.partial(collections.defaultdict, int)),
        lambda s, i: (s[i % 2].__setitem__(i % 3, s[i % 2][i % 3] + 1), s)[1],
    ),
    "ordered": (collections.OrderedDict, lambda s, i: (put(s, i % 3, i), s.move_to_end(i % 3), s)[2]),
    "named_tuple": (lambda: Pair(0, []), lambda s, i: s._replace(count=s.count + 1, items=[*s.items[-3:], i])),
    "dataclass": (lambda: Item(0), with_item),
    "frozen": (lambda: Frozen(0, Item(0)), lambda s, i: Frozen(s.n + 1, with_item(s.item, i))),
    "slots": (lambda: Slots(0), lambda s, i: Slots(s.n + 1, s.n)),
    "attrs": (lambda: Attrs(0), lambda s, i: (setattr(s, "n", s.n + 1), s.seen.append(i), s)[2]),
    "msgspec": (lambda: Struct(0), lambda s, i: (setattr(s, "n", s.n + 1), s.seen.append(i), s)[2]),
    "pydantic": (lambda: Model(n=0), lambda s, i: Model(n=s.n + 1, at=dt.datetime(2026, 1, 1), seen=[*s.seen[-3:], i])),
    "array": (lambda: np.zeros((2, 2), order="F"), lambda s, i: s + np.eye(2)),
    "scalar": (lambda: np.float64(0), lambda s, i: s + np.float64(0.5)),
    "int8": (lambda: np.int8(0), lambda s, i: np.int8(i % 100)),
    "series": (lambda: pd.Series([], dtype="int64"), lambda s, i: pd.concat([s, pd.Series([i])]).tail(3)),
    "timestamp": (lambda: pd.Timestamp("2026-01-01", tz="UTC"), lambda s, i: s + pd.Timedelta(1, "h")),
    "arrow": (lambda: pa.array([], pa.int64()), lambda s, i: pa.array([*s.to_pylist()[-3:], i], pa.int64())),
    "own": (Stats, grown),
    "getstate": (Guarded, grown),
    "reduce": (Reduced, grown),
    "linked": (loop, linked),
}


def canon(v):
    """What it is, so that what Python takes for equal differs."""
    if isinstance(v, dict) and v.get("self") is v:
        return ["linked", canon(v["one"])]
    if isinstance(v, dict):
        factory = getattr(v, "default_factory", None)
        pairs = [[canon(k), canon(x)] for k, x in v.items()]
        return [
            type(v).__name__,
            repr(factory) if isinstance(factory, functools.partial) else factory and factory.__name__,
            pairs,
        ]
    if isinstance(v, (list, tuple, collections.deque)):
        return [type(v).__name__, getattr(v, "maxlen", None), [canon(x) for x in v]]
    if isinstance(v, (set, frozenset)):
        return [type(v).__name__, sorted(map(repr, v))]
    if isinstance(v, np.ndarray):
        return ["array", str(v.dtype), v.shape, bool(v.flags.f_contiguous), v.tolist()]
    if isinstance(v, pd.Series):
        return ["series", str(v.dtype), v.tolist(), list(v.index)]
    if isinstance(v, pa.Array):
        return ["arrow", str(v.type), v.to_pylist()]
    if isinstance(v, Stats):
        return [type(v).__name__, v.n, v.most]
    if isinstance(v, dt.datetime):
        return [type(v).__name__, v.isoformat(), str(v.tzinfo), v.fold]
    return [type(v).__name__, repr(v)]


def inputs(n):
    names = list(KINDS)
    return [(f"{names[i % len(names)]}-{i // len(names) % KEYS}", i) for i in range(n)]


def expected(n):
    """A plain loop: key -> what its state is in the end."""
    states = {}
    for key, i in inputs(n):
        start, change = KINDS[key.rpartition("-")[0]]
        states[key] = change(states[key] if key in states else start(), i)
    return {key: repr(canon(state)) for key, state in states.items()}


class Numbers(Spout):
    """So many a second; the last hundred only once there is a file `gate`."""

    def __init__(self, n, rate, gate):
        self.rows, self.rate, self.gate, self.next = inputs(n), rate, gate, 0

    def open(self, context):
        self.begun = time.monotonic() - self.next / self.rate if self.rate else 0.0

    def read(self, limit):
        if self.next == len(self.rows):
            raise EndOfStream
        end = len(self.rows) - (100 if self.gate and not os.path.exists(self.gate) else 0)
        if self.rate:
            end = min(end, int((time.monotonic() - self.begun) * self.rate))
        end = max(self.next, min(end, self.next + limit))
        rows, self.next = self.rows[self.next : end], end
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class Grow(Bolt):
    """Keeps the state, in two attributes, and emits a copy of it: as a value it goes to another process."""

    def __init__(self):
        self.fresh = True
        self.state = self.same = None

    def process(self, key, i):
        start, change = KINDS[key.rpartition("-")[0]]
        if self.fresh:
            self.state = self.same = start()
            self.fresh = False
        scalar = isinstance(self.state, (str, bytes, int, float, complex, dt.date, dt.time, dt.timedelta))
        assert self.same is self.state or scalar, f"{key}: one object has become two"
        self.state = self.same = change(self.state, i)
        self.emit(key, copy.deepcopy(self.state))


class See(Bolt):
    """What has come, as it came."""

    def __init__(self):
        self.n = 0
        self.last = None

    def process(self, key, value):
        self.n += 1
        self.last = value

    def finish(self):
        self.emit(self.key, (self.n, repr(canon(self.last))))


def every_kind(
    name: str = "every-kind", n: int = 4000, rate: float = 0.0, gate: str = "", out: str = "", p: int = 2
) -> Topology:
    t = Topology(name)
    kept = t.spout("numbers", Numbers(n, rate, gate)).bolt("grow", Grow, grouping=by_key(), parallelism=p)
    kept.bolt("see", See, grouping=by_key()).sink("out", JsonLines(out) if out else Collect())
    return t
