"""Windows with several results, with tuples in the order of their times, and of the clock, for `timed`."""

from __future__ import annotations

from collections import Counter, defaultdict

from esault import Bolt, skip
from esault.windows import CalendarWindow, SlidingWindow, TumblingWindow
from tests.programs.generate import Failed


class Told(Bolt):
    """Emits what it knows of its window, and which pane it is."""

    def __init__(self):
        self.values = ()

    def process(self, key, value):
        self.values = (*self.values, value)

    def finish(self):
        self.emit(self.key, (self.window.start, tuple(self.pane), self.values))


def draw(r, shape, fraction):
    """What such a program is like: a shape, and the options of its window."""
    windows = [TumblingWindow(6), SlidingWindow(9, 3), TumblingWindow(6, offset=1), SlidingWindow(2.5, 0.5)]
    how = {"window": r.choice([*windows, CalendarWindow("day", "Europe/Berlin")])}
    if r.random() < 0.2:
        how["on_error"] = r.choice([skip(), skip(retries=1)])
    how["ordered"] = shape == "ordered" or r.random() < 0.3
    if shape == "ordered":
        return how
    how["updates"] = r.choice(["accumulate", "discard", "retract"])
    how["early_count"] = r.choice([None, 1, 2, 3])
    how["early_seconds"] = r.choice([None, 0.001, 0.1, 60])
    how["last_pane"] = r.random() < 0.5 or (shape == "clock" and how["early_count"] is how["early_seconds"] is None)
    if shape == "clock":
        how["window"] = r.choice([TumblingWindow(1 / 64), SlidingWindow(1 / 32, 1 / 64), TumblingWindow(60)])
        return {**how, "by": "processing"}
    # What is late for the watermark is not for the window.
    return {**how, "allowed_lateness": 100 * fraction}


def check(program, landed):
    """Raise Failed unless panes are what they say, and the newest of each window holds all its tuples in order."""
    how, exactly = program.how, program.settings.delivery == "eo"
    rows = landed["rows"]
    if landed.get("late"):
        raise Failed(f"{len(landed['late'])} rows were late")
    if how.get("updates") == "retract":
        rows = _kept(rows)
    panes = defaultdict(list)
    for key, (start, pane, values) in rows:
        panes[key, start].append((pane[1], pane, values))
    got, discards = {}, how.get("updates") == "discard"
    for place, found in panes.items():
        found.sort()
        last = [pane[2] for _, pane, _ in found]
        if [index for index, _, _ in found] != list(range(len(found))):
            raise Failed(f"{place}: panes {found}")
        one = "updates" not in how or how["last_pane"] or how.get("by") == "processing"
        if last != [False] * (len(found) - 1) + [one]:
            raise Failed(f"{place}: which is the last of {found}")
        kinds = [("early", "on_time", "late").index(pane[0]) for _, pane, _ in found]
        if kinds != sorted(kinds) or kinds.count(1) > 1:
            raise Failed(f"{place}: kinds of {found}")
        if how["ordered"]:
            parts = [values for _, _, values in found]
            if not discards:
                parts = [b[len(a) :] for a, b in zip([(), *parts], parts)]
            if how.get("by") != "processing" and any(sorted(part, key=_at) != list(part) for part in parts):
                raise Failed(f"{place}: not in order: {found}")
        got[place] = sum((values for _, _, values in found), ()) if discards else found[-1][2]
    _compare(program, got, exactly)


def _at(value):
    return value[0]


def _kept(rows):
    """Rows without what was taken back, of which the newest must be left alone."""
    count = Counter()
    for key, (value, diff) in rows:
        count[repr(key), repr(value[0])] += diff
    if any(left != 1 for left in count.values()):
        raise Failed(f"taken back otherwise than given: {count}")
    return [(key, value) for key, (value, diff) in rows if diff == 1]


def _compare(program, got, exactly):
    window, clock = program.how["window"], program.how.get("by") == "processing"
    given = [(key, value) for side in program.spouts.values() for key, value in side]
    if not clock:
        want = Counter(
            (repr(key), repr(window.window(i).start), repr(value))
            for key, value in given
            for i in window.indices(value[0])
        )
    else:
        times = round(window.size / window.every)
        want = Counter((repr(key), repr(value)) for key, value in given for _ in range(times))
    have = Counter(
        (repr(key), repr(value)) if clock else (repr(key), repr(start), repr(value))
        for (key, start), values in got.items()
        for value in values
    )
    if want != have:
        raise Failed(
            f"{exactly=}: missing {list((want - have).items())[:4]}, too many {list((have - want).items())[:4]}"
        )
