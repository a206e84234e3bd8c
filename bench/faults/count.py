"""The rows that came out of the topology of `bench/faults`, against those that must come out of so many numbers."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from bench.faults.topology import EACH, KEYS

__all__ = ["BAD", "each_once", "nothing_missing", "rows_up_to_now"]

#: counts that are to be 0 with checkpoints, where a topology has what they count: only random programs have late rows
BAD = (
    "tuples_lost",
    "tuples_doubled_in_state",
    "keys_with_another_sum",
    "rows_lost",
    "rows_doubled",
    "ends_doubled",
    "rows_late",
)


def _rows(folder: Path) -> list[tuple[str, Any]]:
    with (folder / "out.jsonl").open() as lines:
        rows = [json.loads(line) for line in lines]
    return [(row["key"], row["value"]) for row in rows]


def each_once(folder: Path, number: int, keys: int = KEYS, every: int = EACH) -> dict[str, int]:
    """State and table against what must be; a row comes at each `every`th tuple of a key."""
    want_n: Counter[str] = Counter()
    want_sum: Counter[str] = Counter()
    for i in range(number):
        want_n[f"k{i % keys}"] += 2
        want_sum[f"k{i % keys}"] += 3 * i
    ends: dict[str, list[dict[str, int]]] = defaultdict(list)
    rows: Counter[tuple[str, int]] = Counter()
    for key, value in _rows(folder):
        if "sum" in value:
            ends[key].append(value)
        else:
            rows[key, value["n"]] += 1
    lost = doubled = wrong = 0
    for key, n in want_n.items():
        seen = ends[key][0] if ends[key] else {"n": 0, "sum": 0}
        lost += max(0, n - seen["n"])
        doubled += max(0, seen["n"] - n)
        wrong += seen["sum"] != want_sum[key]
    should = Counter((key, m) for key, n in want_n.items() for m in range(every, n + 1, every))
    return {
        "tuples_lost": lost,
        "tuples_doubled_in_state": doubled,
        "keys_with_another_sum": wrong,
        "ends_doubled": sum(len(each) - 1 for each in ends.values()),
        "rows": rows.total(),
        "rows_lost": (should - rows).total(),
        "rows_doubled": (rows - should).total(),
    }


def rows_up_to_now(folder: Path, every: int = EACH) -> dict[str, int]:
    """The rows that a run under way has put out: of each key those up to its newest must be there, each once.

    What is newer than the newest row of a key is not known yet, nor what its state holds.
    """
    path = folder / "out.jsonl"
    # the last line may be half written
    lines = path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []
    rows = Counter((row["key"], row["value"]["n"]) for row in map(json.loads, lines) if "sum" not in row["value"])
    newest: Counter[str] = Counter()
    for key, n in rows:
        newest[key] = max(newest[key], n)
    should = Counter((key, m) for key, n in newest.items() for m in range(every, n + 1, every))
    return {
        "rows": rows.total(),
        "rows_lost": (should - rows).total(),
        "rows_doubled": (rows - should).total(),
    }


def nothing_missing(folder: Path, number: int) -> dict[str, int]:
    """The table of a run without checkpoints, in which rows may be repeated."""
    should: Counter[tuple[str, int]] = Counter()
    for i in range(number):
        should[f"k{i % KEYS}", 2 * i] += 1
        should[f"k{i % KEYS}", i] += 1
    rows = Counter(_rows(folder))
    return {"tuples_lost": (should - rows).total(), "rows": rows.total(), "rows_repeated": (rows - should).total()}
