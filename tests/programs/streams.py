"""Random streams that come out of order, each with one operator over it: what a seed says, and the topology of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from esault import Bolt, Topology, shuffle
from esault import aggregates as agg
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.windows import CalendarWindow, CountWindow, SessionWindow, SlidingWindow, TumblingWindow
from tests.programs.timed import KINDS, Program, Unit

__all__ = ["BY_TIME", "OPERATORS", "at", "build", "draw", "found"]

#: windows of time: which of a key's tuples they hold is said by their times alone
BY_TIME = ("tumbling", "sliding", "calendar", "session", "dynamic session")
#: operator -> how often it is drawn
OPERATORS = {
    **dict.fromkeys(BY_TIME, 3),
    "late tumbling": 2,
    "late sliding": 1,
    "late session": 1,
    "count": 2,
    "running": 1,
    "pairwise": 1,
    "changes": 1,
    "interval join": 4,
    "window join": 2,
    "as-of join": 3,
    "table join": 2,
    "tables join": 2,
    "distinct": 3,
}
LATE = ("late tumbling", "late sliding", "late session")
#: those in which the order of a key's tuples decides: one reader, and nothing that shuffles
IN_ORDER = ("count", "running", "pairwise", "changes", "distinct", "as-of join", "table join", "tables join")
#: time zones, and a local date near which something odd happens there
ZONES = [
    ("UTC", (2023, 1, 1)),
    ("Europe/Berlin", (2023, 3, 26)),
    ("Europe/Berlin", (2023, 10, 29)),
    ("America/New_York", (2022, 11, 6)),
    ("Australia/Lord_Howe", (2022, 4, 3)),  # half an hour
    ("Asia/Beirut", (2022, 3, 27)),  # clocks go on at midnight: the day begins at 1 o'clock
    ("America/Havana", (2022, 11, 6)),  # clocks go back at 1 o'clock: midnight is there twice
    ("Pacific/Apia", (2011, 12, 30)),  # a day that never was
    ("Asia/Kathmandu", (2023, 1, 1)),
]
UNITS = ("day", "day", "week", "month", "quarter", "year")
HOUR = 3600


def at(value):
    return value["at"]


def amount(value):
    return value["v"]


def patience(value):
    """How long a session waits behind this value."""
    return 1 + abs(value["v"])


def is_left(value):
    return value["side"] == 0


def is_right(value):
    return value["side"] == 1


def of_table(value):
    """What the table is told: None takes the key out."""
    return None if value["gone"] else value


class BitByBit(Items):
    """Offers so many rows at a time, a hundredth of a second apart, so that watermarks go on while they come and not at the end alone."""

    def __init__(self, rows, each):
        super().__init__(rows)
        self._each, self._opens = each, 0.0

    def read(self, limit):
        if self.context.now() < self._opens:
            return []
        self._opens = self.context.now() + 0.01
        return super().read(min(limit, self._each))


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def _aggregates():
    return {
        "n": agg.count(),
        "sum": agg.sum("v"),
        "mean": agg.mean(amount),
        "least": agg.min("v"),
        "most": agg.max("v"),
        "best": agg.top_k(3, "v"),
        "all": agg.collect("n"),
        "different": agg.distinct("v"),
        "median": agg.quantile(0.5, "v"),
    }


def _rows(r, keys, most, unit, base, disorder, side=0):
    found, newest = [], r.randrange(20)
    steps = r.choice([[0, 0, 1, 2], [0, 1, 2, 8], [1, 3, 30]])
    for n in range(r.randint(0, most)):
        newest += r.choice(steps)
        behind = r.choice([0, 0, r.randint(0, disorder)]) if disorder else 0
        value = {"at": base + (newest - behind) * unit, "n": n, "v": r.randint(-40, 40) / 4, "side": side}
        found.append((r.choice(keys), {**value, "gone": False}))
    return found


def _window(r, operator, unit):
    if operator in ("tumbling", "late tumbling"):
        size = r.choice([1, 3, 7] if operator in LATE else [3, 7, 20]) * unit
        return {"size": size, "every": size, "offset": r.choice([0, 0, size / 2, -size / 4])}
    if operator in ("sliding", "late sliding"):
        size, every = r.choice([(6, 3), (9, 2), (20, 5), (7, 6)])
        return {"size": size * unit, "every": every * unit, "offset": r.choice([0, 0, unit, -unit])}
    if operator in ("session", "late session"):
        return {"gap": r.choice([1, 2, 5]) * unit}
    if operator == "calendar":
        zone, _ = how = r.choice(ZONES)
        return {"unit": r.choice(UNITS), "zone": zone, "week_starts": r.choice(["monday", "sunday"]), "near": how[1]}
    if operator == "count":
        size, every = r.choice([(1, 1), (4, 4), (4, 2), (5, 2), (10, 3)])
        return {"size": size, "every": every}
    return {}


def draw(seed: int) -> Program:
    """Return what a seed says: an operator, the rows of its streams, how the run is set and what befalls it."""
    r = random.Random(f"differential {seed}")
    operator = r.choices(list(OPERATORS), list(OPERATORS.values()))[0]
    keys = r.sample(["a", "b", "ü", 2, (2, "a"), b"a"], r.choice([1, 2, 4]))
    unit, base = r.choice([(1, 0), (1, -50), (1, 1_700_000_000), (0.125, 0), (0.125, 1_700_000_000), (0.1, 0)])
    disorder = r.choice([5, 15, 40] if operator in LATE else [0, 5, 15])
    how: dict[str, Any] = {"combine": r.random() < 0.5}
    most = r.choice([120] if operator in LATE else [6, 40, 120])
    if operator == "calendar":
        how |= _window(r, operator, unit)
        unit, base = HOUR // 2, int(datetime(*how["near"], tzinfo=timezone.utc).timestamp()) - r.randint(0, 60) * HOUR
    elif operator == "dynamic session":
        unit, base = 1, 0
    else:
        how |= _window(r, operator, unit)
    if operator == "interval join":
        before = r.choice([0, 1, 3, 10])
        keep = r.choice(["all", "all", "first", "last"])
        after = r.choice([0, 1, 4, -before])
        how |= {"before": before * unit, "after": after * unit, "keep": keep}
        how["kind"] = r.choice(KINDS if keep == "all" else KINDS[:2])
    elif operator == "window join":
        how |= _window(r, r.choice(["tumbling", "sliding"]), unit)
        how |= {"kind": r.choice(KINDS), "keep": r.choice(["all", "first", "last"])}
        most = min(most, 40)
    elif operator == "as-of join":
        how["missing"] = r.choice(["none", "drop"])
    elif operator == "table join":
        how["missing"] = r.choice(["none", "drop", "wait"])
    elif operator == "tables join":
        how["kind"] = r.choice(KINDS)
    elif operator == "distinct":
        how["within"] = r.choice([1, 4, 12]) * unit
    sides = 2 if operator.endswith("join") else 1
    spouts = {f"s{side}": _rows(r, keys, most, unit, base, disorder, side) for side in range(sides)}
    if operator in ("table join", "tables join"):  # what has arrived counts, so that both sides are one stream
        both = [row for rows in spouts.values() for row in rows]
        r.shuffle(both)
        for n, (_, value) in enumerate(both):
            value |= {"n": n, "gone": (value["side"] == 1 or operator == "tables join") and r.random() < 0.15}
        spouts = {"s0": both}
    how["lateness"] = 0.0 if operator in LATE else (disorder + 0.5) * unit
    if operator in LATE:
        how["lateness"] = r.choice([0, 1, disorder // 3]) * unit
    ordered = operator in IN_ORDER or operator in LATE or how.get("keep", "all") != "all"
    how["readers"] = 1 if ordered else r.choice([1, 1, 2, 3])
    #: rows that a reader offers at a time; None: as many as it is asked for, so that all come before the first watermark
    how["each"] = r.choice([1, 3, 10] if operator in LATE else [1, 3, 10, 10, None])
    how["through"] = not ordered and r.random() < 0.4
    arriving = operator in ("table join", "tables join")
    exactly = r.random() < 0.7
    return Program(
        seed,
        operator,
        how,
        spouts,
        Settings(
            delivery="eo" if exactly else r.choice(["alo", "none"]),
            ackers=r.choice([0, 0, 1]),
            max_pending=1 if arriving else r.choice([1, 2, 4]),
            pending_rows=1 if arriving else r.choice([1, 64]),
            root_rows=1 if arriving else r.choice([1, 4, 16]),
            frame_rows=r.choice([1, 8, 512]),
            watch_values=False,
            reload_state=r.random() < 0.3,
        ),
        r.choice([1, 1, 2, 3]),
        r.randint(1, 2) if exactly and r.random() < 0.7 else 0,
        r.choice([0.05, 0.2]),
        r.randint(1, 2) if exactly and r.random() < 0.3 else 0,
        {"out": Unit(), **({f"pass{i}": Unit() for i in range(sides)} if how["through"] else {})},
    )


def kind_of(program: Program) -> Any:
    """Return the window of a program that has one."""
    how, operator = program.how, program.shape
    if operator == "calendar":
        return CalendarWindow(how["unit"], how["zone"], how["week_starts"])
    if operator == "count":
        return CountWindow(how["size"], how["every"])
    if operator == "dynamic session":
        return SessionWindow(patience)
    if "gap" in how:
        return SessionWindow(how["gap"])
    if how["size"] == how["every"]:
        return TumblingWindow(how["size"], how["offset"])
    return SlidingWindow(how["size"], how["every"], how["offset"])


def build(program: Program, topology: Topology | None = None, prefix: str = "") -> Topology:
    """Return the topology of a program, or add it to one that others share, with names that begin with `prefix`."""
    t = topology or Topology("stream")
    how, operator = program.how, program.shape
    sides = []
    arriving = operator in ("table join", "tables join")
    for i, (name, rows) in enumerate(program.spouts.items()):
        timed = {} if arriving else {"time": at, "lateness": how["lateness"]}
        spout: Items[Any, Any] = Items(rows) if how["each"] is None else BitByBit(rows, how["each"])
        side = t.spout(prefix + name, spout, parallelism=how["readers"], **timed)
        if how["through"]:
            side = side.bolt(f"{prefix}pass{i}", Pass, shuffle(), parallelism=2)
        sides.append(side)
    name = f"{prefix}out"
    wide: dict[str, Any] = {"parallelism": program.parallelism}
    beside = []
    if operator == "interval join":
        within = (how["before"], how["after"])
        out = sides[0].join(name, sides[1], within=within, time=at, kind=how["kind"], keep=how["keep"], **wide)
        beside = ["late"]
    elif operator == "window join":
        out = sides[0].join(name, sides[1], kind_of(program), time=at, kind=how["kind"], keep=how["keep"], **wide)
        beside = ["late"]
    elif operator == "as-of join":
        out = sides[0].join_table(name, sides[1], as_of=True, time=at, missing=how["missing"], **wide)
        beside = ["late", "unmatched"]
    elif operator == "table join":
        table = sides[0].filter(is_right).map(of_table)
        out = sides[0].filter(is_left).join_table(name, table, missing=how["missing"], **wide)
        beside = ["unmatched"]
    elif operator == "tables join":
        left, right = sides[0].filter(is_left).map(of_table), sides[0].filter(is_right).map(of_table)
        out = left.join_tables(name, right, kind=how["kind"], **wide)
    elif operator == "distinct":
        out = sides[0].distinct(name, within=how["within"], **wide)
        beside = ["late"]
    elif operator == "running":
        out = sides[0].aggregate(name, _aggregates(), **wide)
    elif operator in ("pairwise", "changes"):
        out = sides[0].pairwise(name, **wide) if operator == "pairwise" else sides[0].changes(name, amount, **wide)
    else:
        # What is late is counted by its own tuples, which `combine` would put together.
        combine = how["combine"] and operator not in LATE
        time = at if how["through"] else None
        out = sides[0].aggregate(name, _aggregates(), kind_of(program), time=time, combine=combine, **wide)
        beside = [] if operator == "count" else ["late"]
    out.sink(f"{prefix}rows", Collect())
    for stream in beside:
        out[stream].sink(f"{prefix}{stream}", Collect())
    return t


# what came out -------------------------------------------------------------------------------------------


def _number(value):
    return None if value is None else value["n"]


def _aggregated(value):
    each = [value[name] for name in ("n", "sum", "mean", "least", "most")]
    best, everything = tuple(row["v"] for row in value["best"]), tuple(sorted(value["all"]))
    bounds = (value["start"], value["end"]) if "start" in value else ()
    return (*bounds, *each, best, everything, value["different"], value["median"])


def found(program: Program, landed: Mapping[str, list[tuple[Any, Any]]], prefix: str = "") -> dict[str, list[Any]]:
    """Return the rows of each sink in the form of the plain answers: (key, numbers of rows and figures)."""
    operator, answer = program.shape, {}
    for sink, rows in landed.items():
        name = sink.removeprefix(prefix)
        if name != "rows":
            answer[name] = [(key, _number(value)) for key, value in rows]
        elif operator.endswith("join") or operator == "pairwise":
            pairs = [(key, value and (_number(value[0]), _number(value[1]))) for key, value in rows]
            answer[name] = pairs
        elif operator in ("distinct", "changes"):
            answer[name] = [(key, _number(value)) for key, value in rows]
        else:
            answer[name] = [(key, _aggregated(value)) for key, value in rows]
    return answer
