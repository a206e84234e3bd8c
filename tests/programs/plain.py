"""What operators over streams come to, in plain loops over all of their rows; nothing of the engine is used."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from tests.programs.timed import Program

__all__ = ["answer", "wrong_lateness"]

Rows = list[tuple[Any, dict[str, Any]]]


def answer(program: Program, late: frozenset[int] = frozenset()) -> dict[str, list[Any]]:
    """Return (key, what came out) for each sink, without the rows whose numbers are `late`."""
    how, operator = program.how, program.shape
    sides: list[Rows] = [
        [(key, value) for key, value in rows if value["n"] not in late] for rows in program.spouts.values()
    ]
    if operator == "interval join":
        return {"rows": _near(by_key(sides[0]), by_key(sides[1]), how), "late": []}
    if operator == "window join":
        return {"rows": _together(sides, how), "late": []}
    if operator == "as-of join":
        return _as_of(by_key(sides[0]), by_key(sides[1]), how["missing"])
    if operator == "table join":
        return _table(by_key(sides[0]), how["missing"])
    if operator == "tables join":
        return {"rows": _tables(by_key(sides[0]), how["kind"])}
    keyed = by_key(sides[0])
    if operator == "distinct":
        return {"rows": _distinct(keyed, how["within"]), "late": []}
    if operator == "pairwise":
        pairs = [(key, (a["n"], b["n"])) for key, rows in keyed.items() for a, b in pairwise(rows)]
        return {"rows": pairs}
    if operator == "changes":
        changed = [
            (key, row["n"])
            for key, rows in keyed.items()
            for i, row in enumerate(rows)
            if not i or rows[i - 1]["v"] != row["v"]
        ]
        return {"rows": changed}
    if operator == "running":
        return {
            "rows": [(key, figures(rows[: i + 1])) for key, rows in keyed.items() for i in range(len(rows))],
        }
    windows = [(key, *window) for key, rows in keyed.items() for window in windows_of(rows, operator, how)]
    told = [(key, (start, end, *figures(rows))) for key, start, end, rows in windows]
    return {"rows": told} if operator == "count" else {"rows": told, "late": []}


def by_key(rows: Rows) -> dict[Any, list[dict[str, Any]]]:
    """Return the values of each key, in the order in which they came."""
    found: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for key, value in rows:
        found[key].append(value)
    return found


def figures(rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Return the aggregates of some rows."""
    values = sorted(row["v"] for row in rows)
    total = sum(values)
    return (
        len(rows),
        total,
        total / len(rows),
        values[0],
        values[-1],
        tuple(reversed(values[-3:])),
        tuple(sorted(row["n"] for row in rows)),
        len(set(values)),
        statistics.median_low(values),
    )


# windows -------------------------------------------------------------------------------------------------


def windows_of(rows, operator, how):
    """The windows of one key: (start, end, rows)."""
    if operator == "count":
        size, every = how["size"], how["every"]
        for end in range(every, -(-len(rows) // every) * every + 1, every):
            yield max(0, end - size), end, rows[max(0, end - size) : end]
        return
    if operator in ("session", "dynamic session", "late session"):
        yield from _sessions(rows, how.get("gap"))
        return
    cells: dict[Any, list[Any]] = {}
    for row in rows:
        for bounds in _calendar(row["at"], how) if operator == "calendar" else bounds_of(row["at"], how):
            cells.setdefault(bounds, []).append(row)
    for (start, end), inside in cells.items():
        yield start, end, inside


def bounds_of(time, how):
    """The windows of even length that contain a time."""
    size, every, offset = how["size"], how["every"], how["offset"]
    first = math.floor((time - offset - size) / every) - 1
    for k in range(first, math.floor((time - offset) / every) + 2):
        start = k * every + offset
        end = start + size if size > every else (k + 1) * every + offset
        if start <= time < end:
            yield start, end


def _calendar(time, how):
    zone = ZoneInfo(how["zone"])
    here = datetime.fromtimestamp(time, zone)
    day = datetime(here.year, here.month, here.day)
    if how["unit"] == "day":
        first, then = day, day + timedelta(days=1)
    elif how["unit"] == "week":
        first = day - timedelta(days=(day.weekday() + (how["week_starts"] == "sunday")) % 7)
        then = first + timedelta(days=7)
    else:
        months = {"month": 1, "quarter": 3, "year": 12}[how["unit"]]
        first = day.replace(day=1, month=(day.month - 1) // months * months + 1)
        month = first.month - 1 + months
        then = first.replace(year=first.year + month // 12, month=month % 12 + 1)
    yield tuple(each.replace(tzinfo=zone).timestamp() for each in (first, then))


def _sessions(rows, gap):
    start = end = None
    inside: list[Any] = []
    for row in sorted(rows, key=lambda row: row["at"]):
        until = row["at"] + (1 + abs(row["v"]) if gap is None else gap)
        if end is not None and row["at"] > end:
            yield start, end, inside
            end = None
        if end is None:
            start, end, inside = row["at"], until, []
        end = max(end, until)
        inside.append(row)
    if end is not None:
        yield start, end, inside


# joins ---------------------------------------------------------------------------------------------------


def _chosen(rows, keep):
    """The earliest or latest of some rows, of those of one time the one that came first or last; or all."""
    if keep == "all" or not rows:
        return rows
    least = min if keep == "first" else max
    return [least(rows, key=lambda row: (row["at"], row["n"]))]


def _near(left, right, how):
    found, taken = [], set()
    for key, rows in left.items():
        for row in rows:
            near = [o for o in right.get(key, ()) if row["at"] - how["before"] <= o["at"] <= row["at"] + how["after"]]
            for other in _chosen(near, how["keep"]):
                taken.add(other["n"])
                found.append((key, (row["n"], other["n"])))
            if not near and how["kind"] in ("left", "outer"):
                found.append((key, (row["n"], None)))
    if how["kind"] in ("right", "outer"):
        found += [(key, (None, o["n"])) for key, rows in right.items() for o in rows if o["n"] not in taken]
    return found


def _together(sides, how):
    cells: dict[Any, Any] = {}
    for i, side in enumerate(sides):
        for key, row in side:
            for bounds in bounds_of(row["at"], how):
                cells.setdefault((key, bounds), ([], []))[i].append(row)
    found = []
    for (key, _), both in cells.items():
        left, right = [[row["n"] for row in _chosen(rows, how["keep"])] for rows in both]
        if (left and right) or {"inner": False, "left": left, "right": right, "outer": True}[how["kind"]]:
            found += [(key, (a, b)) for a in left or [None] for b in right or [None]]
    return found


def _as_of(left, table, missing):
    rows, unmatched = [], []
    for key, tuples in left.items():
        for row in tuples:
            held = [version for version in table.get(key, ()) if version["at"] <= row["at"]]
            if held or missing == "none":
                newest = _chosen(held, "last")
                rows.append((key, (row["n"], newest[0]["n"] if newest else None)))
            else:
                unmatched.append((key, row["n"]))
    return {"rows": rows, "late": [], "unmatched": unmatched}


def _table(keyed, missing):
    rows, unmatched = [], []
    for key, both in keyed.items():
        newest, waiting = None, []
        for row in both:
            if row["side"]:
                newest = None if row["gone"] else row["n"]
                if newest is not None:
                    rows += [(key, (n, newest)) for n in waiting]
                    waiting = []
            elif newest is not None or missing == "none":
                rows.append((key, (row["n"], newest)))
            elif missing == "drop":
                unmatched.append((key, row["n"]))
            else:
                waiting.append(row["n"])
        unmatched += [(key, n) for n in waiting]
    return {"rows": rows, "unmatched": unmatched}


def _tables(keyed, kind):
    found = []
    for key, both in keyed.items():
        newest, was = [None, None], False
        for row in both:
            newest[row["side"]] = None if row["gone"] else row["n"]
            left, right = newest[0] is not None, newest[1] is not None
            there = {"inner": left and right, "left": left, "right": right, "outer": left or right}[kind]
            if there or was:
                found.append((key, tuple(newest) if there else None))
            was = there
    return found


def _distinct(keyed, within):
    found = []
    for key, rows in keyed.items():
        kept: list[float] = []
        for row in rows:
            if not any(abs(row["at"] - time) < within for time in kept):
                kept.append(row["at"])
                found.append((key, row["n"]))
    return found


# what was late -------------------------------------------------------------------------------------------


def wrong_lateness(program: Program, got: dict[str, list[Any]]) -> str:
    """Return what is wrong with a run in which tuples may be late, whenever the watermark passed; nothing: all is well.

    Each tuple is in windows or late, never both, and late only if tuples before it in the stream had brought the watermark so far.
    """
    how, rows = program.how, [value for _, value in program.spouts["s0"]]
    late = [n for _, n in got["late"]]
    if len(late) != len(set(late)):
        return f"late twice: {late}"
    newest = -math.inf
    for row in rows:
        if row["n"] in late:
            end = row["at"] + how["gap"] if "gap" in how else max(end for _, end in bounds_of(row["at"], how))
            if newest - how["lateness"] < end:
                return f"{row} was late, and the watermark can have been {newest - how['lateness']}, before {end}"
        newest = max(newest, row["at"])
    times = {row["n"]: row["at"] for row in rows}
    places: dict[int, list[Any]] = defaultdict(list)
    for _, window in got["rows"]:
        start, end, numbers = window[0], window[1], window[8]
        if "gap" in how:
            inside = sorted(times[n] for n in numbers)
            held = [b <= a + how["gap"] for a, b in pairwise(inside)]
            if (start, end) != (inside[0], inside[-1] + how["gap"]) or not all(held):
                return f"no session: {window}"
        for n in numbers:
            places[n].append((start, end))
    for n, time in times.items():
        mine = sorted(places[n])
        if (n in late) == bool(mine):
            return f"row {n} is {'in windows and late' if mine else 'nowhere'}"
        if "gap" in how:
            if len(mine) > 1:
                return f"row {n} is in two sessions"
        else:
            whole = sorted(bounds_of(time, how))
            if mine != whole[len(whole) - len(mine) :]:
                return f"row {n} is in {mine}, which are not the last ones of {whole}"
    return ""
