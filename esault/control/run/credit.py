"""The number of tuples on their way that keeps every sub-unit busy and fills bounded inboxes."""

from __future__ import annotations

from collections.abc import Mapping

from esault.control.units.unit import Unit
from esault.topology.plan import Plan, UnitPlan

__all__ = ["filling", "widest"]


def widest(units: Mapping[str, Unit], rows: int) -> int:
    """Return the sub-units of the bolt that has most of them, where `rows` tuples on their way are enough for each.

    One whose calls wait takes as many tuples as it may have calls, and counts for that many more: twice over, since those that are
    done go in any order, and a root is done with its last one.
    """
    return max((len(u.subs) * _times(u.plan, rows) for u in units.values() if u.plan.kind == "bolt"), default=1)


def _times(plan: UnitPlan, rows: int) -> int:
    return 1 if plan.concurrency is None else max(1, -(-2 * plan.concurrency // rows))


def filling(plan: Plan, units: Mapping[str, Unit]) -> dict[str, int]:
    """Return for each spout how many tuples fill the bounded inboxes that it sends to, twice: those under way are in none.

    Each of those that wait may be of another root, the rest of which was dropped: with a window of fewer roots it would be the
    window that decides how much such a unit gets, and its source would wait although nothing has to.
    """
    rows: dict[str, int] = {}
    for name, unit in units.items():
        if unit.plan.buffer is None:
            continue
        above, found = [name], {name}
        while above:
            for sender in plan.senders(above.pop()):
                if sender not in found:
                    found.add(sender)
                    above.append(sender)
        for sender in found:
            if plan.units[sender].kind == "spout":
                rows[sender] = rows.get(sender, 0) + 2 * unit.plan.buffer * len(unit.subs)
    return rows
