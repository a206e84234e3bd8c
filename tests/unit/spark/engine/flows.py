"""Topologies that both the chain without Spark and Spark itself run."""

from __future__ import annotations

import asyncio
import random
import time

import numpy as np

from esault import (
    BatchBolt,
    Bolt,
    Columns,
    EndOfStream,
    Grouping,
    SplitReader,
    SplitSource,
    Spout,
    Topology,
    broadcast,
    by_key,
    dead_letter,
    partial_key,
    shuffle,
    single,
    skip,
)
from esault import aggregates as agg
from esault.sinks import Collect, JsonLines, SparkTable
from esault.sources import CsvFiles, Directory, Items, ParquetFiles
from esault.windows import CalendarWindow, CountWindow, SessionWindow, SlidingWindow, TumblingWindow

TEXT = ["the cat sat on the mat", "a dog and a cat", "the end of the cat", "mat dog sat end"] * 25


class Split(Bolt):
    def process(self, key, value):
        for word in value.split():
            self.emit(word, 1)


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)

    def finish(self):
        self.emit(self.key, self.total, stream="totals")


class Tagged(Bolt):
    """Where both sides of a diamond meet."""

    def __init__(self):
        self.seen = {}

    def process_stream(self, stream, key, value):
        self.seen[stream] = self.seen.get(stream, 0) + 1
        self.emit(key, (stream, value, self.seen[stream]))


class Fragile(Bolt):
    """Every tenth tuple fails."""

    def process(self, key, value):
        if value % 10 == 3:
            raise ValueError(f"not {value}")
        self.emit(key, value)


class FragileCount(Count):
    def process(self, key, value):
        if value % 10 == 7:
            raise ValueError(f"not {value} of {key}")
        super().process(key, value)


DRAWN = []


def fragile(out="dead"):
    """Dead letters of a bolt without a state, of one with, and of a function step; rows that a function draws."""

    def drawn():
        for i in range(300):
            DRAWN.append(i)
            yield i % 5, i

    def step(value):
        if value % 10 == 9:
            raise ValueError(f"no step for {value}")
        return value

    t = Topology("fragile")
    rows = t.spout("rows", Items(drawn)).bolt(
        "fragile", Fragile, grouping=shuffle(), on_error=dead_letter(f"{out}/dead.jsonl")
    )
    rows = rows.map(step, on_error=dead_letter(f"{out}/steps.jsonl"))
    rows.bolt("count", FragileCount, grouping=by_key(), on_error=dead_letter(f"{out}/dead.jsonl"), streams=("totals",))[
        "totals"
    ].sink("totals", Collect())
    return t


class Drip(Spout):
    """A row each twentieth of a second, whose times run ahead and fall back."""

    ROWS = [(f"k{i % 3}", float(i + (0, 0, 25, 3, -18)[i % 5])) for i in range(120)]

    def __init__(self):
        self.next = 0
        self.pace = True

    def open(self, context):
        self.context, self.started = context, context.now()

    def read(self, limit):
        if self.next == len(self.ROWS):
            raise EndOfStream
        due = int((self.context.now() - self.started) / 0.05) - self.next if self.pace else limit
        rows = self.ROWS[self.next : self.next + max(0, min(due, limit))]
        self.next += len(rows)
        return rows

    def due(self):
        return self.started + 0.05 * self.next

    def without_pace(self):
        unpaced = Drip()
        unpaced.pace = False
        return unpaced

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


def tardy():
    """Some tuples come behind the end of their window."""
    t = Topology("tardy")
    rows = t.spout("rows", Drip()).timed(lambda value: value, lateness=2)
    for name, window in (("tens", TumblingWindow(10)), ("slides", SlidingWindow(20, 5)), ("gaps", SessionWindow(3))):
        windows = rows.window(name, Sizes, window)
        windows.sink(name, Collect())
        windows["late"].sink(f"{name}-late", Collect())
    return t


class Upper(Bolt):
    def process(self, key, value):
        self.emit(key.upper(), value)
        if key == "cat":
            self.emit(key, value, stream="cats")


class Lengths(BatchBolt):
    """Counts letters by the length of words."""

    def process_batch(self, rows):
        for key, _ in rows:
            self.keyed[len(key)] = self.keyed.get(len(key), 0) + len(key)

    def finish(self):
        self.emit_batch(sorted(self.keyed.items()))


class ByLength(Grouping):
    def choose(self, key, value, sub_units):
        return len(key) % sub_units


class Seen(Bolt):
    """One object for each sub-unit: counts what comes."""

    def __init__(self):
        self.count = 0

    def process(self, key, value):
        self.count += 1

    def finish(self):
        self.emit(None, self.count)


class Picky(Bolt):
    def process(self, key, value):
        if key == "dog":
            raise ValueError("no dogs")
        self.emit(key, value)


class Pour(Spout):
    """Cannot seek."""

    def __init__(self, rows):
        self.rows = list(rows)

    def read(self, limit):
        if not self.rows:
            raise EndOfStream
        rows, self.rows = self.rows[: min(limit, 7)], self.rows[min(limit, 7) :]
        return rows


def lines(t, name="lines"):
    return t.spout(name, Items([(None, line) for line in TEXT]))


class Turns(Bolt):
    """One object for each sub-unit, with state."""

    def __init__(self):
        self.count = 0

    def process(self, key, value):
        self.count += 1
        self.emit(key, (value, self.count))

    def tick(self, now):
        self.emit("tick", (now, self.count))


class Timed(Bolt):
    """Many keys have timers at one time."""

    def __init__(self):
        self.count = 0

    def process(self, key, value):
        self.count += 1
        self.timer("full", value // 100 * 100 + 100)

    def on_timer(self, name, at):
        self.emit(self.key, (at, self.count))


class Asked(Bolt):
    """Calls end in another order each time."""

    async def process(self, key, value):
        await asyncio.sleep(random.random() / 200)
        self.emit(key, value)


def spread(out: str = "out") -> Topology:
    """Groupings whose choice does not follow from the key, one behind the other; times, ticks and calls that wait."""
    t = Topology("spread")
    rows = t.spout("rows", Items([(f"k{i % 50}", i) for i in range(30_000)]))
    turns = rows.bolt("turns", Turns, grouping=shuffle(), parallelism=3, tick_every=0.001)
    halves = turns.bolt("halves", Count2, grouping=partial_key())
    last = halves.bolt("last", Turns, grouping=shuffle(), parallelism=2)
    last.sink("last", Collect())
    asked = rows.filter(lambda value: value % 100 == 0).bolt("asked", Asked, grouping=by_key())
    asked.bolt("behind", Turns, grouping=shuffle(), parallelism=2).sink("behind", Collect())
    timed = rows.timed(lambda value: value, idle=0.01)
    timed.bolt("timers", Timed, grouping=by_key()).bolt("rung", Turns, grouping=shuffle(), parallelism=2).sink(
        "rung", Collect()
    )
    timed.window("windows", Sizes, TumblingWindow(100)).bolt("after", Turns, grouping=shuffle(), parallelism=2).sink(
        "after", Collect()
    )
    return t


class Count2(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += 1
        self.emit(key, self.total)


class Sizes(Count2):
    def process(self, key, value):
        self.total += 1

    def finish(self):
        self.emit(self.key, (self.window.start, self.total))


def words(out: str = "out") -> Topology:
    """Word count with a table, and the totals at the end."""
    t = Topology("words")
    split = lines(t).bolt("split", Split, grouping=shuffle())
    count = split.bolt("count", Count, grouping=by_key(), streams=("totals",))
    count.sink("table", SparkTable(f"{out}/table", columns={"word": str, "total": int}))
    count["totals"].sink("totals", Collect())
    return t


def everything(out: str = "out") -> Topology:
    """Each grouping, several inputs, named streams, steps, a batch bolt, reduce, an error policy."""
    t = Topology("everything")
    text = lines(t)
    split = text.bolt("split", Split, grouping=shuffle())
    upper = split.bolt("upper", Upper, grouping=shuffle(), streams=("cats",))
    upper["cats"].sink("cats", JsonLines(f"{out}/cats.jsonl"))
    lower = upper.map(lambda value: value + 1).key_by(lambda value: value)
    lower.bolt("seen", Seen, grouping=single()).sink("seen_by_one", Collect())
    count = split.bolt("count", Count, grouping=by_key(), streams=("totals",))
    both = t.bolt("both", Tagged, inputs={split: by_key(), count: by_key()})
    both.sink("both", Collect())
    split.bolt("lengths", Lengths, grouping=by_key(), parallelism=2).sink("lengths", Collect())
    split.bolt("half", Count, grouping=partial_key(), streams=("totals",))["totals"].sink("halves", Collect())
    split.bolt("all", Seen, grouping=broadcast(), parallelism=2).sink("seen_by_all", Collect())
    split.bolt("own", Seen, grouping=ByLength(), parallelism=2).sink("seen_by_some", Collect())
    split.bolt("picky", Picky, grouping=shuffle(), on_error=skip()).sink("no_dogs", Collect())
    t.spout("numbers", Items([(i, i % 3) for i in range(50)])).key_by(lambda value: value).reduce(
        "sum", lambda total, value: total + value, initial=0
    ).sink("sums", Collect())
    return t


class Ruled(Bolt):
    """Counts its tuples; `finish` says how many, and what was broadcast, in order."""

    def __init__(self):
        self.n = 0

    def process_broadcast(self, key, value):
        self.broadcast_state[key] = (*self.broadcast_state.get(key, ()), value)

    def process(self, key, value):
        self.n += 1

    def finish(self):
        self.emit(self.key, (self.n, tuple(sorted(self.broadcast_state.items()))))


def ruled(out: str = "out") -> Topology:
    """Broadcast state beside state of keys."""
    t = Topology("ruled")
    numbers = t.spout("numbers", Items([(i % 7, i) for i in range(100)]))
    rules = t.spout("rules", Items([(f"rule-{i % 3}", i) for i in range(60)]))
    t.bolt("ruled", Ruled, {numbers: by_key(), rules: broadcast()}, parallelism=3).sink("ends", Collect())
    return t


def poured(out: str = "out") -> Topology:
    """From a source that cannot seek."""
    t = Topology("poured")
    t.spout("pour", Pour([(i % 5, 1) for i in range(100)])).bolt(
        "count", Count, grouping=by_key(), streams=("totals",)
    )["totals"].sink("totals", Collect())
    return t


def numbered(out: str = "out") -> Topology:
    """Sums so far of numbers that are all others: one that is left out or comes twice shows in each that follows."""
    t = Topology("numbered")
    sums = t.spout("numbers", Items([(i % 7, 1 + i) for i in range(2000)])).bolt(
        "sum", Count, grouping=by_key(), streams=("totals",)
    )
    sums.sink("rows", JsonLines(f"{out}/rows.jsonl"))
    sums["totals"].sink("totals", Collect())
    return t


class Endless(Spout):
    """Never ends."""

    def __init__(self):
        self.next = 0

    def read(self, limit):
        rows = [(i % 7, 1) for i in range(self.next, self.next + min(limit, 50))]
        self.next += len(rows)
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


def endless(out: str = "out") -> Topology:
    """Until it is told to end."""
    t = Topology("endless")
    count = t.spout("numbers", Endless()).bolt("count", Count, grouping=by_key(), streams=("totals",))
    count.sink("rows", JsonLines(f"{out}/rows.jsonl"))
    count["totals"].sink("totals", Collect())
    return t


def newcomers(out: str = "out") -> Topology:
    """Keys come up bit by bit, and all that were there go on."""
    t = Topology("newcomers")
    numbers = t.spout("numbers", Items([(i % (2 + i // 100), 1) for i in range(1500)]))
    count = numbers.bolt("count", Count, grouping=by_key(), streams=("totals",))
    count.sink("rows", JsonLines(f"{out}/rows.jsonl"))
    return t


def once(out: str = "out") -> Topology:
    """Each key comes once."""
    t = Topology("once")
    count = t.spout("numbers", Items([(i, 1) for i in range(4000)])).bolt(
        "count", Count, grouping=by_key(), streams=("totals",)
    )
    count.sink("rows", JsonLines(f"{out}/rows.jsonl"))
    return t


class Sleepy(Count):
    def process(self, key, value):
        time.sleep(0.002)
        super().process(key, value)


def sleepy(out: str = "out") -> Topology:
    """Two milliseconds for a tuple."""
    t = Topology("sleepy")
    count = t.spout("numbers", Items([(i % 7, 1) for i in range(700)])).bolt(
        "count", Sleepy, grouping=by_key(), streams=("totals",)
    )
    count.sink("rows", JsonLines(f"{out}/rows.jsonl"))
    count["totals"].sink("totals", Collect())
    return t


def two_sources(out: str = "out") -> Topology:
    """Two sources that end, a file and rows that are collected."""
    t = Topology("two_sources")
    split = lines(t).bolt("split", Split, grouping=shuffle())
    count = split.bolt("count", Count, grouping=by_key(), streams=("totals",))
    count.sink("rows", JsonLines(f"{out}/rows.jsonl"))
    t.spout("numbers", Items([(i, i % 3) for i in range(50)])).key_by(lambda value: value).reduce(
        "sum", lambda total, value: total + value, initial=0
    ).sink("sums", Collect())
    return t


def abreast(where: str, out: str = "out") -> Topology:
    """Two sources of the same hours, whose readers may be silent for 30 s, or behind a bolt for 1 s."""
    t = Topology("abreast")
    starts = {"time": lambda value: value, "idle": 30} if where == "source" else {}
    both = [t.spout(name, Items([(f"{name}-{i % 5}", i) for i in range(20_000)]), **starts) for name in ("a", "b")]
    if where == "bolt":
        both = [each.bolt(f"{name}-passed", Passed, shuffle()).timed(float) for name, each in zip("ab", both)]
    merged = both[0].union(both[1])
    counted = merged.window("counted", Counted, TumblingWindow(100))
    counted.sink("counts", JsonLines(f"{out}/counts.jsonl", mode="replace"))
    return t


class Passed(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Counted(Count):
    def process(self, key, value):
        self.total += 1

    def finish(self):
        self.emit(self.key, (self.window.start, self.total))


def latest(out: str = "out", primary_key: str = "key") -> Topology:
    """Rows of one reader go to a table by key, and others through a bolt by key."""
    t = Topology("latest")
    rows = t.spout("rows", Items([(f"k{i % 40}", i) for i in range(30_000)]))
    columns = {"key": str, "n": int}
    rows.map(lambda n: n).sink("table", SparkTable(f"{out}/table", columns, mode="replace", primary_key="key"))
    others = t.spout("others", Items([(i % 3, i) for i in range(3000)]))
    others.bolt("count", Count2, grouping=by_key()).sink("rest", Collect())
    return t


class Angry(Bolt):
    def process(self, key, value):
        if key == "mat":
            raise ValueError("not the mat")
        self.emit(key, value)


def angry(out: str = "out") -> Topology:
    """Fails."""
    t = Topology("angry")
    split = lines(t).bolt("split", Split, grouping=shuffle())
    split.bolt("angry", Angry, grouping=by_key()).sink("rows", Collect())
    return t


class Tally(Bolt):
    """How many, and their sum, in a window."""

    def __init__(self):
        self.count = self.sum = 0

    def process(self, key, value):
        self.count += 1
        self.sum += value["n"]

    def finish(self):
        self.emit(self.key, (self.window.start, self.window.end, self.count, self.sum))


class Largest(Bolt):
    def __init__(self):
        self.most = 0

    def process(self, key, value):
        self.most = max(self.most, value[2])

    def finish(self):
        self.emit(self.window.start, self.most)


def events(seed: int, count: int = 600):
    """Up to five seconds out of order."""
    chosen = random.Random(seed)
    return [
        (None, {"who": f"w{chosen.randrange(5)}", "at": float(max(0, i // 5 + chosen.randrange(-5, 1))), "n": i})
        for i in range(count)
    ]


def timed(out: str = "out") -> Topology:
    """All kinds of windows, one behind another, two inputs."""
    t = Topology("timed")
    left = t.spout("left", Items(events(1))).key_by(lambda value: value["who"])
    right = t.spout("right", Items(events(2))).key_by(lambda value: value["who"])

    def at(value):
        return value["at"]

    minutes = left.window("minutes", Tally, TumblingWindow(10), time=at, lateness=5)
    minutes.sink("minutes", Collect())
    minutes["late"].sink("late", Collect())
    left.window("slides", Tally, SlidingWindow(20, 5), time=at, lateness=5).sink("slides", Collect())
    left.window("sessions", Tally, SessionWindow(3), time=at, lateness=5).sink("sessions", Collect())
    left.window("counts", Tally, CountWindow(7)).sink("counts", Collect())
    minutes.key_by(lambda value: "all").window(
        "largest", Largest, TumblingWindow(30), time=lambda value: value[0]
    ).sink("largest", Collect())
    left.join("joined", right, TumblingWindow(10), time=at, lateness=5).sink("joined", Collect())
    nested = right.key_by(lambda value: (value["who"], (value["n"] % 2, None)))
    for name, of, window in (("plain", "n", TumblingWindow(10)), ("odd", odd, SlidingWindow(20, 5))):
        nested.aggregate(name, aggregates_of(of), window, time=at, lateness=5).sink(name, Collect())
    return t


def odd(value):
    """Ints whose sum has more than 64 bits, and bools, in most batches."""
    n = value["n"]
    return -(1 << 62) - n if n % 5 == 0 else n % 3 == 0 if n % 100 < 30 else n


def aggregates_of(of):
    return {"n": agg.count(), "sum": agg.sum(of), "mean": agg.mean(of), "least": agg.min(of), "most": agg.max(of)}


class Told(Bolt):
    """How many, their sum, and which pane."""

    def __init__(self):
        self.numbers = ()

    def process(self, key, value):
        self.numbers = (*self.numbers, value["n"])

    def finish(self):
        self.emit(self.key, (self.window.start, tuple(self.pane), self.numbers))


def more_windows(out: str = "out") -> Topology:
    """Of the calendar, with offsets, with gaps of tuples' own, and the last few tuples."""
    t = Topology("more-windows")
    rows = t.spout("left", Items(events(1))).key_by(lambda value: value["who"])

    def at(value):
        return 1_700_000_000 + value["at"] * 1800

    def gap(value):
        return 600 + value["n"] % 3 * 900

    kinds = {
        "days": CalendarWindow("day", "Europe/Berlin"),
        "shifts": TumblingWindow(8 * 3600, offset=6 * 3600),
        "slides": SlidingWindow(7200, 3600, offset=1800),
        "sessions": SessionWindow(gap),
    }
    for name, kind in kinds.items():
        rows.window(name, Tally, kind, time=at, lateness=5 * 1800).sink(name, Collect())
    rows.window("last", Tally, CountWindow(7, every=3)).sink("last", Collect())
    return t


def paned(out: str = "out") -> Topology:
    """Windows with several results, in order, and of the clock."""
    t = Topology("paned")
    rows = t.spout("left", Items(events(1))).key_by(lambda value: value["who"])

    def at(value):
        return value["at"]

    rows.window("ordered", Told, TumblingWindow(10), time=at, lateness=5, ordered=True).sink("ordered", Collect())
    late = rows.window(
        "late", Told, SlidingWindow(20, 10), time=at, updates="retract", allowed_lateness=60, last_pane=True
    )
    late.sink("late", Collect())
    early = rows.window("early", Told, TumblingWindow(50), time=at, lateness=5, updates="discard", early_count=3)
    early.sink("early", Collect())
    clock = rows.window("clock", Told, TumblingWindow(0.05), by="processing", updates="accumulate", early_seconds=0.01)
    clock.sink("clock", Collect())
    return t


class Ticking(Bolt):
    """Says at each tick how much came since the last one."""

    def __init__(self):
        self.count = 0

    def process(self, key, value):
        self.count += 1

    def tick(self, now):
        self.emit(self.key, ("tick", self.count))
        self.count = 0

    def finish(self):
        self.emit(self.key, ("finish", self.count))


def ticking(out: str = "out") -> Topology:
    """Ticks and expiry; never ends."""
    t = Topology("ticking")
    numbers = t.spout("numbers", Endless())
    numbers.bolt("ticks", Ticking, grouping=by_key(), tick_every=0.01).sink("ticks", Collect())
    numbers.filter(lambda value: value == 0).bolt("never", Count, grouping=by_key()).sink("never", Collect())
    return t


class Once(Endless):
    """Seven keys once, then nothing for ever."""

    def read(self, limit):
        return [] if self.next >= 7 else super().read(7)


def expiring(out: str = "out") -> Topology:
    """Keys that have no tuples any more."""
    t = Topology("expiring")
    t.spout("numbers", Once()).bolt("count", Ticking, grouping=by_key(), expire_after=0.08).sink("gone", Collect())
    return t


class Ask(Bolt):
    """Asks a service through what was made in the event loop."""

    async def open(self, context):
        self.loop = asyncio.get_running_loop()

    async def process(self, key, value):
        assert self.loop is asyncio.get_running_loop()
        await asyncio.sleep(value % 3 / 1000)
        if value % 10 == 7:
            raise ValueError("no answer")
        self.emit(key, value)

    def __getstate__(self):
        return {}


class Remember(Bolt):
    """Counts across the wait: a second call of its key at once would be lost."""

    open_calls = most_calls = 0

    def __init__(self):
        self.seen = 0

    async def process(self, key, value):
        cls, seen = Remember, self.seen
        cls.open_calls += 1
        cls.most_calls = max(cls.most_calls, cls.open_calls)
        await asyncio.sleep(value % 4 / 1000)
        cls.open_calls -= 1
        self.seen = seen + 1
        self.emit(key, (self.seen, value))

    async def tick(self, now):
        await asyncio.sleep(0)
        self.emit(self.key, ("tick", self.seen))

    async def finish(self):
        await asyncio.sleep(0.001)
        self.emit(self.key, self.seen, stream="totals")


class Sum(Bolt):
    def __init__(self):
        self.sum = 0

    def process(self, key, value):
        self.sum += value[1]

    def finish(self):
        self.emit(self.key, (self.window.start, self.sum))


def waiting(out: str = "out") -> Topology:
    """Bolts that wait: one behind the spout, one with an object for each key; windows behind both."""
    t = Topology("waiting")
    numbers = t.spout("numbers", Items([(f"k{i % 9}", i) for i in range(300)]), time=float)
    asked = numbers.bolt("ask", Ask, grouping=shuffle(), on_error=skip(), concurrency=8)
    kept = asked.bolt("remember", Remember, grouping=by_key(), concurrency=4, streams=("totals",))
    kept.sink("rows", Collect())
    kept["totals"].sink("totals", Collect())
    kept.window("sums", Sum, TumblingWindow(50), time=lambda value: value[1]).sink("sums", Collect())
    return t


def waiting_hooks(out: str = "out") -> Topology:
    """`tick` and `finish` wait too, this one also when a key expires; never ends."""
    t = Topology("waiting-hooks")
    t.spout("numbers", Endless()).bolt(
        "remember", Remember, by_key(), tick_every=0.01, concurrency=4, streams=("totals",)
    ).sink("rows", Collect())
    once = t.spout("once", Once()).bolt("expire", Remember, by_key(), expire_after=0.04, streams=("totals",))
    once["totals"].sink("gone", Collect())
    return t


def unanswered(out: str = "out") -> Topology:
    """Fails while other calls are open."""
    t = Topology("unanswered")
    t.spout("numbers", Items([(i, i) for i in range(30)])).bolt("ask", Ask, by_key()).sink("rows", Collect())
    return t


class Trips(Bolt):
    """Emits what came between the ends of a key's trips, and forgets the key with each."""

    def __init__(self):
        self.rows = []

    def process(self, key, value):
        self.rows.append(value)
        if value % 3 == 0:
            self.emit(key, tuple(self.rows))
            self.clear_state()


def trips(out: str = "out") -> Topology:
    """State that bolts clear themselves, some of it first in the batch."""
    t = Topology("trips")
    rows = t.spout("rows", Items([(f"k{i * i % 13}", i) for i in range(400)]))
    rows.bolt("trip", Trips, by_key()).sink("trips", Collect())
    return t


ALIKE = [0, False, 1, True, (1,), (True,), ("a", 0), ("a", False), "a", 7]


class Kept(BatchBolt):
    def process_columns(self, keys, values):
        for key in keys.tolist() if hasattr(keys, "tolist") else keys:
            self.keyed[key] = self.keyed.get(key, 0) + 1

    def finish(self):
        self.emit_batch(list(self.keyed.items()))


class InArrays(Spout):
    """Booleans and what Python takes them for, in turn."""

    def __init__(self):
        self.next = 0

    def read(self, limit):
        if self.next == 24:
            raise EndOfStream
        self.next += 1
        return Columns(np.array([[True, False, True], [1, 0, 5]][self.next % 2]), np.arange(3))

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position


class Named(Count):
    """Keys as they are written: in JSON true is no number, but in Python it is."""

    def process(self, key, value):
        self.total += 1

    def finish(self):
        self.emit(repr(self.key), self.total)


def alike(out: str = "out") -> Topology:
    """Keys that Python takes for equal, in rows and in arrays."""
    t = Topology("alike")
    rows = t.spout("rows", Items([(ALIKE[i * 7 % 10], 1) for i in range(200)]))
    arrays = t.spout("arrays", InArrays())
    for name, stream in (("rows", rows), ("arrays", arrays)):
        stream.bolt(f"{name}_count", Named, by_key()).sink(f"{name}_counts", Collect())
        kept = stream.bolt(f"{name}_keyed", Kept, by_key())
        kept.bolt(f"{name}_last", Named, by_key()).sink(f"{name}_kept", Collect())
        stream.bolt(f"{name}_expire", Named, by_key(), expire_after=3600).sink(f"{name}_expired", Collect())
    return t


class Rows(Bolt):
    """How many rows of a key there were, and the newest."""

    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1
        self.emit(key, (self.n, value))


class TimedReader(SplitReader):
    """A number of rows of one split, as many at a time as it likes."""

    def __init__(self, rows, at):
        self.rows, self.at = rows, at

    def read(self, limit):
        if self.at == len(self.rows):
            raise EndOfStream
        rows = self.rows[self.at : self.at + min(limit, 50)]
        self.at += len(rows)
        return rows

    def position(self):
        return self.at


class TimedSplits(SplitSource):
    """Splits of one's own, by name; asked twice before they are known."""

    bounded = True
    splits_at_once = 16

    def __init__(self, splits):
        self.rows, self.asked = splits, 0

    def splits(self):
        self.asked += 1
        return None if self.asked < 2 else sorted(self.rows)

    def open_split(self, id, position):
        return TimedReader(
            [(f"k{i % 7}", {"k": f"k{i % 7}", "n": n}) for i, n in enumerate(self.rows[id])], position or 0
        )


def timed_files(kind: str, folder: str, splits: dict | None = None) -> Topology:
    """Sources that actors read in splits, with event time at the source: a watermark is the least of all splits."""
    sources = {
        "csv": lambda: CsvFiles(folder, key="k", types={"n": int}),
        "parquet": lambda: ParquetFiles(folder, key="k"),
        "own": lambda: TimedSplits(splits),
    }
    t = Topology("timed_files")
    rows = t.spout("rows", sources[kind](), time=lambda row: row["n"])
    tens = rows.window("tens", Sizes, TumblingWindow(10))
    tens.sink("tens", Collect())
    tens["late"].sink("late", Collect())
    return t


def files(kind: str, folder: str) -> Topology:
    """Sources that actors read in splits."""
    sources = {
        "csv": lambda: CsvFiles(folder, key="k", types={"n": int}),
        "parquet": lambda: ParquetFiles(folder, key="k"),
        "directory": lambda: Directory(folder, every=None),
    }
    t = Topology("files")
    t.spout("rows", sources[kind](), parallelism=2).bolt("seen", Rows, grouping=by_key()).sink("seen", Collect())
    return t


class EndlessTable(Spout):
    """A table that has no end, and says when it has given what was there."""

    def __init__(self):
        self.given = 0

    def read(self, limit):
        first, self.given = self.given, min(400, self.given + min(limit, 50))
        return [(f"c{i % 40}", f"name {i}") for i in range(first, self.given)]

    def position(self):
        return self.given

    def seek(self, position):
        self.given = position

    def caught_up(self):
        return self.given == 400


def caught_up() -> Topology:
    """As `ordered`, where the table goes on for ever."""
    t = Topology("caught-up")
    names = t.spout("names", EndlessTable())
    seen = t.spout("seen", Items([(f"c{i % 40}", i) for i in range(80)]), after=names)
    seen.join_table("joined", names).sink("joined", Collect())
    return t


def ordered() -> Topology:
    """A stream that is read when the table that it is joined with is whole, of many tuples for each of its own."""
    t = Topology("ordered")
    names = t.spout("names", Items([(f"c{i % 40}", f"name {i}") for i in range(400)]))
    changes = t.spout("changes", Items([(f"c{i}", f"changed {i}") for i in range(20)]), after=names)
    seen = t.spout("seen", Items([(f"c{i % 40}", i) for i in range(80)]), after=[names, changes])
    seen.join_table("joined", names.union(changes)).sink("joined", Collect())
    return t


class Rounds(Bolt):
    """Goes on by itself: a timer every five seconds."""

    def process(self, key, value):
        self.timer("round", value["at"] + 5)

    def on_timer(self, name, at):
        self.emit(self.key, {"at": at})
        self.timer("round", at + 5)


def rounds(long_first: bool = False) -> Topology:
    """Two spouts, of which one has come far when it ends and the other has not; and what follows, a level further."""
    short = [("a", {"at": 0, "n": 0}), *[("b", {"at": 21, "n": n}) for n in range(6)]]
    long = [("c", {"at": 3, "n": 0}), ("d", {"at": 100, "n": 1})]
    t = Topology("rounds")
    rows = (long, short) if long_first else (short, long)
    spouts = [t.spout(name, Items(each), time=lambda v: v["at"]) for name, each in zip(("first", "second"), rows)]
    found = t.bolt("rounds", Rounds, dict.fromkeys(spouts, by_key()))
    found.sink("out", Collect())
    found.bolt("behind", Rounds, by_key()).sink("later", Collect())
    return t
