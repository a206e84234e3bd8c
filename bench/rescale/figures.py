"""Figures of the rescaling bench from its records: pure functions over arrays. Latencies are in milliseconds, times in seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.rescale.topology import SHIFT, drawn

__all__ = [
    "TAIL_OF_CHANGE",
    "Rows",
    "around",
    "behind",
    "counts",
    "during_change",
    "movers",
    "read",
    "spread",
    "stopped",
    "timeline",
    "windows",
]

#: a tuple that takes longer is late: the bar for a live split
LATE_MS = 250.0
#: seconds before a request and after its end that count as the change's
BEFORE, AFTER = 0.02, 0.1
#: seconds between the end of a change and the window after it
SETTLE = 0.3
#: seconds after the end of a change that are not quiet
TAIL_OF_CHANGE = 0.5
#: seconds of a point in a time line
BIN = 0.05


class Rows(NamedTuple):
    """Rows that came out, in the order of their index."""

    index: Any
    key: Any
    #: how many tuples of its key there had been, this one included
    count: Any
    #: seconds since the epoch; nan in the filling
    due: Any
    out: Any
    #: a number for each place where rows were processed
    owner: Any


def read(folder: Path) -> tuple[Rows, dict[str, Any]]:
    """All rows of a run, and what was offered."""
    offered = json.loads((folder / "offered.json").read_text())
    keys = offered["keys"]
    parts = []
    for number, path in enumerate(sorted(folder.glob("*.rows"))):
        stamps = np.fromfile(path.with_suffix(".stamps"), dtype="f8").reshape(-1, 2)
        rows = np.fromfile(path, dtype="u8")
        out = np.repeat(stamps[:, 0], stamps[:, 1].astype("i8"))
        parts.append((rows, out, np.full(len(rows), number, dtype="i4")))
    packed, out, owner = (np.concatenate(column) for column in zip(*parts))
    index = (packed >> SHIFT).astype("i8")
    order = np.argsort(index, kind="stable")
    index = index[order]
    due = np.where(index < keys, np.nan, offered["start"] + (index - keys) / (offered["rate"] or np.inf))
    count = (packed & ((1 << SHIFT) - 1)).astype("i8")[order]
    return Rows(index, key_of(index, keys), count, due, out[order], owner[order]), offered


def key_of(index: Any, keys: int) -> Any:
    """The key of each tuple: first each one once, then as drawn."""
    order = np.asarray(drawn(keys))
    return np.where(index < keys, index, order[(index - keys) % len(order)])


def counts(rows: Rows, offered: int) -> dict[str, int]:
    """Return what is broken that a change must not break: each tuple comes out once, and the counts of a key are 1, 2, 3 ... in order."""
    unique = np.unique(rows.index)
    order = np.lexsort((rows.index, rows.key))
    key = rows.key[order]
    first = np.r_[True, key[1:] != key[:-1]]
    started = np.maximum.accumulate(np.where(first, np.arange(len(key)), 0))
    wrong = rows.count[order] != np.arange(len(key)) - started + 1
    return {
        "offered": int(offered),
        "lost": int(offered - len(unique)),
        "repeated": int(len(rows.index) - len(unique)),
        "wrong_counts": int(wrong.sum()),
    }


def movers(rows: Rows, began: float, ended: float, until: float) -> Any:
    """By row: 1 where the key was processed elsewhere after the change than before, 0 where not, -1 where that is not known."""
    size = int(rows.key.max()) + 1
    before, after = np.full(size, -1), np.full(size, -1)
    old = np.flatnonzero(rows.out < began)
    new = np.flatnonzero((rows.out > ended) & (rows.out < until))[::-1]
    before[rows.key[old]] = rows.owner[old]  # of several the last one counts
    after[rows.key[new]] = rows.owner[new]
    known = np.where((before < 0) | (after < 0), -1, (before != after).astype(int))
    return known[rows.key]


def spread(values: Any) -> dict[str, float]:
    """Number, median, 99th percentile and largest, of latencies in seconds, as milliseconds."""
    if not len(values):
        return {"n": 0, "p50": 0.0, "p99": 0.0, "max": 0.0}
    p50, p99 = np.percentile(values, [50, 99], method="higher")
    return {"n": len(values), "p50": 1000 * float(p50), "p99": 1000 * float(p99), "max": 1000 * float(np.max(values))}


def windows(first: float, end: float, length: float) -> list[tuple[float, float]]:
    """As many windows of this length as end at `end` and begin after `first`; a shorter one where none fits."""
    n = int((end - first) / length)
    if n < 1:
        return [(first, end)]
    return [(end - (i + 1) * length, end - i * length) for i in reversed(range(n))]


def _median(parts: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.median([part[name] for part in parts])) for name in parts[0]}


def around(rows: Rows, chosen: Any, quiet_from: float, began: float, ended: float) -> dict[str, Any]:
    """Latencies of the chosen rows in quiet windows before a change, during it, and in one after it, all of one length.

    `ratio` is the p99 during the change over the median p99 of the quiet windows; `quiet_ratio` is the same for the worst
    of the quiet windows: what the machine does without any change.
    """
    lasting = ended + AFTER - (began - BEFORE)
    late = rows.out - rows.due

    def of(window: tuple[float, float]) -> dict[str, float]:
        return spread(late[chosen & (rows.due >= window[0]) & (rows.due < window[1])])

    quiet = [of(window) for window in windows(quiet_from, began - BEFORE, lasting)]
    before, during = _median(quiet), of((began - BEFORE, ended + AFTER))
    return {
        "before": before,
        "during": during,
        "after": of((ended + SETTLE, ended + SETTLE + lasting)),
        "seconds": lasting,
        "quiet_windows": len(quiet),
        "ratio": during["p99"] / before["p99"] if before["p99"] else 0.0,
        "quiet_ratio": max(part["p99"] for part in quiet) / before["p99"] if before["p99"] else 0.0,
    }


def during_change(rows: Rows, quiet_from: float, began: float, ended: float, until: float) -> dict[str, Any]:
    """One live change."""
    moved = movers(rows, began, ended, until)
    late = rows.out - rows.due
    inside = (rows.due >= began - BEFORE) & (rows.due < ended + AFTER)
    return {
        "behind_ms": behind(rows, began),
        "untouched": around(rows, moved == 0, quiet_from, began, ended),
        "moved": spread(late[(moved == 1) & inside]),
        **stopped(rows, began, ended + SETTLE),
    }


def stopped(rows: Rows, began: float, ended: float) -> dict[str, Any]:
    """Return what all tuples suffer that are due between: how long nothing came out, how late they were, for how long."""
    late = rows.out - rows.due
    inside = (rows.due >= began - BEFORE) & (rows.due < ended)
    out = np.sort(rows.out[(rows.out > began - AFTER)])
    too_late = inside & (late > LATE_MS / 1000)
    return {
        "silent_ms": 1000 * float(np.max(np.diff(out), initial=0.0)),
        "worst_ms": spread(late[inside])["max"],
        "late": int(too_late.sum()),
        "late_for_s": float(np.max(rows.due[too_late] + late[too_late], initial=began) - began),
    }


def behind(rows: Rows, at: float) -> float:
    """Return how late the last rows before this moment came out, milliseconds: much where the engine does not keep up with its load."""
    last = np.flatnonzero((rows.out < at) & (rows.out > at - 2 * AFTER) & ~np.isnan(rows.due))
    return 1000 * float(np.median((rows.out - rows.due)[last])) if len(last) else 0.0


def timeline(rows: Rows, moved: Any, at: float, first: float, end: float) -> list[tuple[float, float, float]]:
    """(seconds since `at`, largest latency of untouched and of moved keys), by when tuples were due."""
    found = []
    late = 1000 * (rows.out - rows.due)
    for start in np.arange(first, end, BIN):
        here = (rows.due >= at + start) & (rows.due < at + start + BIN)
        worst = [float(np.max(late[here & (moved == kind)], initial=0.0)) for kind in (0, 1)]
        found.append((round(float(start), 3), round(worst[0], 2), round(worst[1], 2)))
    return found
