"""The subscales of a change: how its moves are divided, so that only few keys are on their way at once (docs/explanation/rescaling.md)."""

from __future__ import annotations

import math
from collections import Counter

from esault.control.units.unit_state import UnitState
from esault.routing.table import Move, OutputTable
from esault.routing.table_change import subscales

__all__ = ["MOST_CUTS", "MOST_SUBSCALES", "MOST_TABLES", "SUBSCALE_KEYS", "cut", "divided", "keys_given"]

#: keys that one sub-unit gives in a subscale. Of 1 024, 2 048 and 4 096, tried two rounds in turns, it had the lowest p99 of keys that stay in a split
SUBSCALE_KEYS = 2048
#: subscales of a change, at most; the cuts that they make in a table; and the tables that senders get of a change
MOST_SUBSCALES, MOST_CUTS, MOST_TABLES = 128, 1024, 4096


def divided(unit: UnitState, moves: list[Move], senders: int) -> list[list[Move]]:
    """Return the moves of each subscale: one sub-unit gives not many more keys than `SUBSCALE_KEYS` in it."""
    plan = unit.plan
    if plan.objects != "key" or plan.batch or plan.replicas > 1:
        return subscales(moves, 1)
    most = min(MOST_SUBSCALES, MOST_CUTS // max(1, len(moves)), MOST_TABLES // max(1, senders))
    return subscales(moves, max(1, min(most, math.ceil(keys_given(unit, moves) / SUBSCALE_KEYS))))


def keys_given(unit: UnitState, moves: list[Move]) -> float:
    """Return about how many keys the sub-unit gives that gives most; 0 where states are on a disk."""
    assert unit.table is not None
    places: Counter[int] = Counter()
    for low, high, owner in unit.table.intervals():
        places[owner] += high - low + 1
    given: Counter[int] = Counter()
    for move in moves:
        given[move.old] += move.high - move.low + 1
    found = 0.0
    for old, share in given.items():
        status = unit.measurements.last(old)
        if status is None:
            continue
        if status.rows.keys_on_disk:  # their names, which subscales keep, would fill the memory that there is not
            return 0.0
        found = max(found, status.rows.elements * share / places[old])
    return found


def cut(table: OutputTable, parts: list[list[Move]]) -> OutputTable:
    """Return the table after the first subscale, cut where the others begin, so that senders compute no key's place for them."""
    after = table.copy()
    for moves in reversed(parts):
        for move in moves:
            after.assign(move.low, move.high, move.new if moves is parts[0] else move.old)
    after.version = table.version
    return after
