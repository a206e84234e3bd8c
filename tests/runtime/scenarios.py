"""Topologies that both runtimes run; what lands must not depend on the order of events."""

import time
from datetime import datetime
from decimal import Decimal

from esault import BatchBolt, Bolt, Grouping, Topology, broadcast, by_key, partial_key, shuffle, single, skip
from esault.sinks import Collect
from esault.sources import Items
from esault.windows import SessionWindow, SlidingWindow, TumblingWindow

ROWS = [(f"k{i % 7}", i) for i in range(700)]


class Echo(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Sum(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


class Last(Sum):
    def process(self, key, value):
        self.total += value

    def finish(self):
        self.emit(self.key, self.total)


class ByParity(Grouping):
    def choose(self, key, value, sub_units):
        return value % sub_units


class Batches(BatchBolt):
    def process_batch(self, rows):
        for key, value in rows:
            self.keyed[key] = self.keyed.get(key, 0) + value

    def finish(self):
        self.emit_batch(list(self.keyed.items()))


class Sides(Bolt):
    def __init__(self):
        self.seen = {"left": 0, "right": 0}

    def process_stream(self, stream, key, value):
        self.seen[stream] += value

    def finish(self):
        self.emit(self.key, (self.seen["left"], self.seen["right"]))


class Sorts(Bolt):
    def process(self, key, value):
        if value % 2:
            self.emit(key, value, stream="odd")
        else:
            self.emit(key, value)


class Fails(Bolt):
    def process(self, key, value):
        if value % 10 == 3:
            raise ValueError(value)
        self.emit(key, value)


class Name(Bolt):
    def __init__(self):
        self.count = 0

    def process(self, key, value):
        self.count += 1
        self.emit("row", (repr(key), self.count))


class NoTown(Exception):
    """As libraries write them: made of other arguments than its text."""

    def __init__(self, town: str, code: int) -> None:
        super().__init__(f"no town {town}")
        self.code = code


class Refuses(Bolt):
    def process(self, key, value):
        raise NoTown("Nowhere", 404)


def _one(bolt, rows=ROWS, **options) -> Topology:
    t = Topology("scenario")
    t.spout("rows", Items(rows)).bolt("worker", bolt, **options).sink("out", Collect())
    return t


def keyed() -> Topology:
    return _one(Sum, grouping=by_key(), parallelism=3)


def shuffled() -> Topology:
    return _one(Echo, grouping=shuffle(), parallelism=2)


def broadcast_to_all() -> Topology:
    return _one(Echo, grouping=broadcast(), parallelism=3)


def one_object() -> Topology:
    return _one(Sum, grouping=single())


def half_keys() -> Topology:
    return _one(Echo, grouping=partial_key(), parallelism=2)


def own_grouping() -> Topology:
    return _one(Echo, grouping=ByParity(), parallelism=2)


def batched() -> Topology:
    return _one(Batches, grouping=by_key(), parallelism=2)


def finished() -> Topology:
    return _one(Last, grouping=by_key(), parallelism=2)


def failing() -> Topology:
    return _one(Refuses, grouping=by_key())


def skipped() -> Topology:
    return _one(Fails, grouping=by_key(), on_error=skip())


def look_alikes() -> Topology:
    keys = [1, True, "1", b"1", 0, False, (1,), (True,)]
    return _one(Name, [(k, 0) for k in keys * 3], grouping=by_key(), parallelism=2)


BAD_KEYS = {"none": None, "float": 2.0, "list": ["k", 1], "inside": ("k", 2.0)}


class Late(Bolt):
    """What it emits is looked at one by one for a while; this comes after that."""

    def process(self, key, value):
        self.emit({"float": 2, "inside": ("k", 2)}.get(key, "k") if value < 2000 else BAD_KEYS[key], value)


def bad_key(what: str = "none", p: int = 1) -> Topology:
    """A key that cannot be one, behind many that can be, for whom Python takes some of them."""
    t = Topology("scenario")
    late = t.spout("rows", Items([(what, i) for i in range(2001)])).bolt("late", Late, grouping=shuffle())
    late.bolt("worker", Sum, grouping=by_key(), parallelism=p, max_parallelism=p).sink("out", Collect())
    return t


def all_values() -> Topology:
    values = [None, 1.5, b"b", 1 << 80, Decimal("1.5"), datetime(2026, 1, 2, 3), {1, 2}, {"a": [1, (2,)]}]
    return _one(Echo, [("k", v) for v in values], grouping=by_key())


def stepped() -> Topology:
    t = Topology("scenario")
    lines = t.spout("lines", Items([("f", "b a c")] * 50))
    words = lines.flat_map(str.split).filter(lambda w: w != "c").map(str.upper)
    words.key_by(lambda w: w).bolt("echo", Echo, grouping=by_key()).sink("out", Collect())
    words.sink("words", Collect())
    return t


def reduced() -> Topology:
    t = Topology("scenario")
    t.spout("rows", Items(ROWS)).reduce("sum", lambda total, v: total + v, initial=0).sink("out", Collect())
    return t


def two_inputs() -> Topology:
    t = Topology("scenario")
    left, right = t.spout("left", Items(ROWS)), t.spout("right", Items(ROWS[:70]))
    t.bolt("sides", Sides, inputs={left: by_key(), right: by_key()}, parallelism=2).sink("out", Collect())
    return t


def beside_the_main_stream() -> Topology:
    t = Topology("scenario")
    sorts = t.spout("rows", Items(ROWS)).bolt("sorts", Sorts, grouping=shuffle(), streams=("odd",))
    sorts.bolt("even", Last, grouping=by_key()).sink("evens", Collect())
    sorts["odd"].bolt("odd", Last, grouping=by_key()).sink("odds", Collect())
    return t


def three_deep() -> Topology:
    t = Topology("scenario")
    rows = t.spout("rows", Items(ROWS))
    first = rows.bolt("first", Echo, grouping=shuffle(), parallelism=2)
    first.bolt("second", Echo, grouping=by_key(), parallelism=2).bolt("third", Last, grouping=by_key()).sink(
        "out", Collect()
    )
    return t


class InWindow(Last):
    def process(self, key, value):
        self.total += value["n"]

    def finish(self):
        self.emit(self.key, (*self.window, self.total))


def windowed() -> Topology:
    """Event time from two readers through a shuffled bolt; windows of all kinds, a join, and windows behind windows."""
    t = Topology("scenario")
    rows = [(f"k{i % 7}", {"at": i // 3 - i % 5, "n": i}) for i in range(2100)]
    timed = t.spout("rows", Items(rows), parallelism=2, time=lambda v: v["at"], lateness=5)
    passed = timed.bolt("pass", Echo, grouping=shuffle(), parallelism=2)
    tumbling = passed.window("tumbling", InWindow, TumblingWindow(50), time=lambda v: v["at"], parallelism=2)
    tumbling.sink("out", Collect())
    tumbling["late"].sink("late", Collect())
    behind = tumbling.map(lambda v: {"at": v[1], "n": v[2]}).key_by(lambda v: v["at"] % 3)
    behind.window("behind", InWindow, TumblingWindow(100), time=lambda v: v["at"], parallelism=2).sink("b", Collect())
    passed.window("sliding", InWindow, SlidingWindow(60, 20), time=lambda v: v["at"]).sink("sliding", Collect())
    timed.window("session", InWindow, SessionWindow(3), time=lambda v: v["at"]).sink("session", Collect())
    other = t.spout("other", Items([(f"k{i % 7}", {"at": i, "n": i}) for i in range(0, 700, 10)]))
    joined = timed.join("join", other, TumblingWindow(10), time=lambda v: v["at"], kind="outer", parallelism=2)
    joined.map(lambda pair: tuple(None if v is None else v["n"] for v in pair)).sink("pairs", Collect())
    return t


def bounded_with_room() -> Topology:
    return _one(Sum, grouping=by_key(), parallelism=3, buffer=700, overflow="drop")


class Slow(Sum):
    def process(self, key, value):
        time.sleep(0.0005)
        super().process(key, value)


def overloaded() -> Topology:
    """More than it can hold, all at once: not the same rows each time, but the same sums."""
    t = Topology("scenario")
    rows = t.spout("rows", Items([(f"k{i % 7}", 1) for i in range(7000)]))
    slow = rows.bolt("worker", Slow, grouping=by_key(), parallelism=2, buffer=50, overflow="drop")
    slow.bolt("echo", Echo, grouping=by_key()).sink("out", Collect())
    return t


def in_order() -> Topology:
    """Rows beside the table of their keys, which is larger than they are and there first."""
    t = Topology("scenario")
    table = t.spout("table", Items([(f"k{i % 7}", f"is {i}") for i in range(7000)]))
    rows = t.spout("rows", Items(ROWS), after=table)
    rows.join_table("joined", table, parallelism=2).sink("out", Collect())
    return t
