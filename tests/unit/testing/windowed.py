"""Topologies with windows that tests share, and what must come out of them, computed at once from all rows."""

from __future__ import annotations

from collections import Counter

from counting import Landed

from esault import Bolt, Topology, shuffle

LATENESS = 7


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Gather(Bolt):
    """What was in a window, in the order in which it came."""

    def __init__(self):
        self.rows = ()

    def process(self, key, value):
        self.rows = (*self.rows, value["n"])

    def combine(self, other):
        self.rows += other.rows

    def finish(self):
        self.emit(self.key, {"at": self.window.end, "start": self.window.start, "rows": self.rows})


class Again(Bolt):
    """How many windows, and rows in them, came under one key."""

    def __init__(self):
        self.windows = self.rows = 0

    def process(self, key, value):
        self.windows += 1
        self.rows += len(value["rows"])

    def finish(self):
        self.emit(self.key, (self.window.start, self.windows, self.rows))


def at(value):
    return value["at"]


def chain(spout, window, again, parallelism=2, apart=True, passing=Pass, grouping=None, split=False):
    """Rows through a bolt, shuffled, into windows, and these into windows that must wait for them. `apart`: time is read at the spout."""
    t = Topology("windows")
    given = {"time": at, "lateness": LATENESS} if apart else {}
    rows = t.spout("rows", spout, parallelism=parallelism, **given)
    passed = rows.bolt("pass", passing, grouping=grouping or shuffle(), parallelism=2)
    given = {} if apart else {"lateness": LATENESS, "idle": 1e6}
    first = passed.window("window", Gather, window, time=at, parallelism=2, split_hot_keys=split, **given)
    first.sink("table", Landed())
    first["late"].sink("late", Landed())
    # Windows that closed at one end, whatever their keys: all of them must be here before it closes.
    second = first.map(dict).key_by(lambda value: value["at"] % 3).window("again", Again, again, time=at, parallelism=2)
    second.sink("more", Landed())
    second["late"].sink("more-late", Landed())
    return t


def windows_of(kind, rows):
    """(key, start, end) -> numbers of the rows in it, sorted."""
    found = {}
    for key, value in rows:
        for index in kind.indices(value["at"]):
            bounds = kind.window(index)
            found.setdefault((key, *bounds), []).append(value["n"])
    return {window: sorted(numbers) for window, numbers in found.items()}


def sessions_of(gap, rows):
    """The same for sessions."""
    found = {}
    for key in {key for key, _ in rows}:
        mine = sorted((value["at"], value["n"]) for k, value in rows if k == key)
        start = end = None
        for time, number in mine:
            if end is None or time > end:
                start, numbers = time, []
            else:
                del found[(key, start, end)]
            end = time + gap
            numbers.append(number)
            found[(key, start, end)] = sorted(numbers)
    return found


def gathered(rows):
    """The same from what `Gather` emitted; no window twice."""
    found = {}
    for key, value in rows:
        window = (key, value["start"], value["at"])
        assert window not in found, f"{window} closed twice"
        found[window] = sorted(value["rows"])
    return found


def again_of(kind, windows):
    """What `Again` must emit, given the windows before."""
    counts = Counter()
    rows = Counter()
    for (_, _, end), numbers in windows.items():
        for index in kind.indices(end):
            place = (end % 3, kind.window(index).start)
            counts[place] += 1
            rows[place] += len(numbers)
    return sorted((key, (start, counts[key, start], rows[key, start])) for key, start in counts)
