"""Bolts and functions that generated programs are made of; what each does to one tuple is a plain function of this file."""

from __future__ import annotations

import asyncio
import collections
import copy
import random
import typing
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import attrs
import msgspec

from esault import BatchBolt, Bolt, Grouping, Sink, Spout, aggregates
from tests.programs.mutations import NAMES, can_change, make, mutate, sign

#: number of a row that `finish` emits: behind all others
LAST = 10**9

# rows -------------------------------------------------------------------------------------------------


class Named(typing.NamedTuple):
    source: str
    n: int
    seed: int
    payload: Any
    at: int


@dataclass
class Data:
    source: str
    n: int
    seed: int
    payload: Any
    at: int


@attrs.define
class Attrs:
    source: str
    n: int
    seed: int
    payload: Any
    at: int


class Packed(msgspec.Struct):
    source: str
    n: int
    seed: int
    payload: Any
    at: int


FIELDS = ("source", "n", "seed", "payload", "at")
SHAPES = {
    "tuple": lambda *fields: fields,
    "list": lambda *fields: list(fields),
    "dict": lambda *fields: dict(zip(FIELDS, fields)),
    "named": Named,
    "data": Data,
    "attrs": Attrs,
    "packed": Packed,
}


def opened(value):
    """source, n, seed, payload and time of a row, whatever its class."""
    if isinstance(value, (tuple, list)):
        return tuple(value)
    if isinstance(value, dict):
        return tuple(value[name] for name in FIELDS)
    return tuple(getattr(value, name) for name in FIELDS)


def again(value, **other):
    """A row of the same class with other fields."""
    fields = dict(zip(FIELDS, opened(value)))
    fields.update(other)
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(fields.values())
    return kind(**fields)


def at(value):
    return opened(value)[4]


# steps ------------------------------------------------------------------------------------------------


def bump(value):
    return again(value, seed=opened(value)[2] + 1)


def keep(value):
    return opened(value)[1] % 4 != 1


def twice(value):
    n = opened(value)[1]
    return [again(value, n=n * 2), again(copy.deepcopy(value), n=n * 2 + 1)] if n < LAST else [value]


class Bump(Bolt):
    """`bump`; what can be changed in place is, since a bolt may do with its tuples what it likes."""

    def process(self, key, value):
        if type(value) is dict:
            value["seed"] += 1
        elif type(value) is list:
            value[FIELDS.index("seed")] += 1
        else:
            value = bump(value)
        self.emit(key, value)


class Keep(Bolt):
    def process(self, key, value):
        if keep(value):
            self.emit(key, value)


class Twice(Bolt):
    def process(self, key, value):
        for each in twice(value):
            self.emit(key, each)


def passed_by(unit, value):
    """The row, as one of this unit."""
    return again(value, source=f"{unit}<{opened(value)[0]}")


def total_row(total):
    return total["row"]


# what is done to one tuple ------------------------------------------------------------------------------


class How(typing.NamedTuple):
    """What distinguishes one unit from another of its kind."""

    unit: str
    seed: int
    shape: str
    #: a state of its own for each source of rows, since they come in some order
    lanes: bool = False
    #: whether the rows of a source come in order
    ordered: bool = True
    #: keys that rows are sent on under; () for their own
    pool: tuple[Any, ...] = ()


def fresh(how):
    """The state that one lane begins with."""
    r = random.Random(how.seed)
    return {"n": -1, **{name: make(r) for name in NAMES}}


def start(how):
    """The attributes that a key begins with."""
    return {"lanes": {}} if how.lanes else fresh(how)


def picture(state):
    """All that a unit keeps of a key, as a number."""
    if "lanes" in state:
        return sign([(source, picture(state["lanes"][source])) for source in sorted(state["lanes"])])
    return sign([state["n"], *[state[name] for name in NAMES]])


class OutOfOrder(Exception):
    """A row came before one that was sent earlier."""


def step(state, how, key, value):
    """Change the state by one row; what is emitted."""
    source, n, seed, payload, time = opened(value)
    if how.lanes:
        lanes = state["lanes"]
        if source not in lanes:
            lanes[source] = fresh(how)
        state = lanes[source]
    if how.ordered and n <= state["n"]:
        raise OutOfOrder(f"unit {how.unit}, key {key!r}, source {source!r}: {n} after {state['n']}")
    state["n"] = n
    r = random.Random(seed ^ how.seed)
    mutate(r, state, payload)
    sent = how.pool[n % len(how.pool)] if how.pool else key
    return sent, SHAPES[how.shape](f"{how.unit}<{source}", n, picture(state), make(r, 1), time)


def last(state, how, key, suffix=""):
    """What `finish` emits."""
    return key, SHAPES[how.shape](f"{how.unit}/{key!r}{suffix}", LAST, picture(state), None, 0)


def store(state, how, key, value):
    """Keep a row among others, whatever their order, and once more as the newest one."""
    source, n, _, payload, _ = opened(value)
    state["rows"][source, n] = state["newest"] = [value, payload]
    state["sources"].setdefault(source, set()).add(n)
    state["count"][len(source) % 3] += 1
    return key, again(copy.deepcopy(value), source=f"{how.unit}<{source}")


def stored(state, how, key):
    """What is emitted of them in the end."""
    found = []
    rows = state["rows"]
    whole = any(pair is state["newest"] for pair in rows.values()) or not rows
    for (source, n), (value, payload) in sorted(rows.items(), key=lambda item: item[0]):
        known = whole and n in state["sources"][source] and (opened(value)[3] is payload or not can_change(payload))
        found.append((key, SHAPES[how.shape](f"{how.unit}:{source}", n, sign(payload) if known else -1, payload, 0)))
    if state["count"].total() != len(rows):
        found.append((key, "counted otherwise"))
    return found


def bag():
    """The attributes that `store` begins with."""
    return {"rows": {}, "newest": None, "sources": {}, "count": collections.Counter()}


# bolts ------------------------------------------------------------------------------------------------


class Keyed(Bolt):
    """An object per key, whose attributes are its state."""

    def __init__(self, how):
        self.how = how
        vars(self).update(start(how))

    def process(self, key, value):
        self.emit(*step(vars(self), self.how, key, value))

    def finish(self):
        self.emit(*last(vars(self), self.how, self.key))


class KeyedByStream(Keyed):
    def process_stream(self, stream, key, value):
        assert stream
        self.emit(*step(vars(self), self.how, key, value))


class Waits(Keyed):
    """Waits before it changes, between, and after; each key's rows must wait for one another."""

    async def process(self, key, value):
        n = opened(value)[1]
        for _ in range(n % 3):
            await asyncio.sleep((0, 0.001, 0.02)[n % 5 % 3])
        row = step(vars(self), self.how, key, value)
        if n % 2:
            await asyncio.sleep(0.001)
        self.emit(*row)


class Ticks(Keyed):
    """Is looked at every now and then, also where nothing has come since it moved."""

    ticks = 0

    def tick(self, now):
        self.ticks += 1


class InARow(Bolt):
    """Nobody asks for its `vars`; some attributes come later, go, are its key, or have names that no method mentions."""

    def __init__(self, how):
        self.how = how
        state = fresh(how)
        self.n, self.a, self.b, self.c, self.d = state["n"], state["a"], state["b"], state["c"], state["d"]

    def work(self, key, value):
        state = {"n": self.n, "a": self.a, "b": self.b, "c": self.c, "d": self.d}
        row = step(state, self.how, key, value)
        self.n, self.a, self.b, self.c, self.d = state["n"], state["a"], state["b"], state["c"], state["d"]
        what = opened(value)[2] % 7
        if what == 0:
            self.extra = key
        elif what == 1 and hasattr(self, "extra"):
            del self.extra
        elif what == 2:
            setattr(self, "un" + "known", self.a)
        elif what == 3:
            self.more = self.extra = self.b
        elif what == 4 and hasattr(self, "more"):
            del self.more
        return row

    def process(self, key, value):
        self.emit(*self.work(key, value))

    def finish(self):
        names = ("extra", "more", "un" + "known")
        more = {name: getattr(self, name) for name in names if hasattr(self, name)}
        state = {"n": self.n, "a": [self.a, more], "b": self.b, "c": self.c, "d": self.d}
        suffix = f"/{self.window.start}/{self.window.end}" if hasattr(self, "window") else ""
        self.emit(*last(state, self.how, self.key, suffix))


class WindowInARow(InARow):
    def process(self, key, value):
        self.work(key, copy.deepcopy(value))


class Says(Bolt):
    """The same with a state that it says itself."""

    def __init__(self, how):
        self.how, self.state = how, start(how)

    def __getstate__(self):
        return (self.how, self.state, self.state)

    def __setstate__(self, state):
        self.how, self.state, same = state
        assert same is self.state

    def process(self, key, value):
        self.emit(*step(self.state, self.how, key, value))

    def finish(self):
        self.emit(*last(self.state, self.how, self.key))


class All(Bolt):
    """One object, that of `single`."""

    def __init__(self, how):
        self.how, self.states = how, {}

    def process(self, key, value):
        name = repr(key)  # keys that look alike are several
        if name not in self.states:
            self.states[name] = (key, start(self.how))
        self.emit(*step(self.states[name][1], self.how, key, value))

    def finish(self):
        for key, state in self.states.values():
            self.emit(*last(state, self.how, key))


class Kept:
    """What an entry of `keyed` may be."""

    def __init__(self, how):
        vars(self).update(start(how))


class Batch(BatchBolt):
    def __init__(self, how):
        self.how = how

    def entry(self, key):
        if key not in self.keyed:
            self.keyed[key] = start(self.how) if self.how.seed % 2 else Kept(self.how)
        found = self.keyed[key]
        return found if type(found) is dict else vars(found)

    def process_batch(self, rows):
        self.emit_batch([step(self.entry(key), self.how, key, value) for key, value in rows])

    def finish(self):
        self.emit_batch([last(self.entry(key), self.how, key) for key in self.keyed])


class Columns(Batch):
    def process_columns(self, keys, values):
        rows = [step(self.entry(key), self.how, key, value) for key, value in zip(keys, values)]
        self.emit_columns([key for key, _ in rows], [value for _, value in rows])


class Bag(Bolt):
    """Keeps rows, whatever their order: what all its objects emit does not follow from which of them got what."""

    def __init__(self, how):
        self.how = how
        self.keys = {}

    def process(self, key, value):
        name = repr(key)
        if name not in self.keys:
            self.keys[name] = (key, bag())
        self.emit(*store(self.keys[name][1], self.how, key, value))

    def finish(self):
        for key, state in self.keys.values():
            for row in stored(state, self.how, key):
                self.emit(*row)


class Window(Keyed):
    """An object per key and window."""

    def process(self, key, value):
        # Sliding windows are given one object, and each changes what it has of it.
        step(vars(self), self.how, key, copy.deepcopy(value))

    def finish(self):
        self.emit(*last(vars(self), self.how, self.key, f"/{self.window.start}/{self.window.end}"))


class ByTimers(Bolt):
    """Windows of ten seconds that are made of timers: what `Window` puts out for those."""

    def __init__(self, how):
        self.how = how
        self.begun = {}

    def process(self, key, value):
        begins = at(value) // 10 * 10
        if begins not in self.begun:
            self.begun[begins] = start(self.how)
        step(self.begun[begins], self.how, key, copy.deepcopy(value))
        self.timer(f"{begins}", begins + 10)

    def on_timer(self, name, at):
        begins = int(name)
        self.emit(*last(self.begun.pop(begins), self.how, self.key, f"/{begins}/{begins + 10}"))


#: of the rows of a key, which are of one source
AGGREGATES = {
    "source": aggregates.min(lambda value: opened(value)[0]),
    "rows": aggregates.count(),
    "seeds": aggregates.sum(lambda value: opened(value)[2]),
    "numbers": aggregates.collect(lambda value: opened(value)[1]),
    "newest": aggregates.top_k(2, lambda value: opened(value)[1]),
}


def aggregate_row(result):
    """A row of what became of a window."""
    picture = [result["rows"], sorted(result["numbers"]), [opened(value)[1] for value in result["newest"]]]
    return (f"{result['source']}/{result['start']}", LAST, result["seeds"], picture, 0)


def aggregated(start, end, rows):
    """The same result by a plain loop."""
    numbers = [opened(row)[1] for row in rows]
    return {
        "start": start,
        "end": end,
        "source": opened(rows[0])[0],
        "rows": len(rows),
        "seeds": sum(opened(row)[2] for row in rows),
        "numbers": numbers,
        "newest": sorted(rows, key=lambda row: -opened(row)[1])[:2],
    }


def fold(how, total, value):
    """For `reduce`: another total, and in it the row to emit."""
    total = copy.deepcopy(total)
    _, total["row"] = step(total, how, None, value)
    return total


class Own(Grouping):
    """By the text of the key, or to two at once never."""

    def choose(self, key, value, sub_units):
        return crc32(repr(key).encode()) % sub_units


class Nothing(Spout):
    """Stands where rows are given."""

    def read(self, limit):
        return []


class Landed(Sink):
    def write(self, rows):
        pass
