"""News of where acks go, for all sub-units: sent once for all that a change starts or stops."""

from __future__ import annotations

from collections.abc import Mapping

from esault.control.replication.replicas import down, mergers
from esault.control.run.acker_assignment import AckerAssignment
from esault.control.units.unit import Unit
from esault.topology.plan import Plan, UnitPlan

__all__ = ["AckRoutingUpdates", "filling", "widest"]


class AckRoutingUpdates:
    """Sends an `AckRouting` to all when sub-units have come or gone.

    Each takes a message to every sub-unit and an answer. With one for each of k newcomers among n, that was most of
    what a large change took before its table could be published.
    """

    def __init__(self, plan: Plan, rows: int, assignment: AckerAssignment) -> None:
        """`rows`: the tuples on their way that are enough for a sub-unit."""
        self._plan = plan
        self._rows = rows
        self._assignment = assignment
        #: units of which sub-units have come or gone, and the rest of whose change is waited for
        self._postponed: set[str] = set()

    def send(self, units: Mapping[str, Unit], newcomer: bool = False) -> None:
        """Tell all at once; `newcomer`: an ack server took the place of a dead one."""
        self._postponed.clear()
        every = units.values()
        owners = {r.incarnation: r.built.express for u in every for r in u.subs.values() if r.built is not None}
        wide, fill = widest(units, self._rows), filling(self._plan, units)
        self._assignment.tell(owners, wide, fill, newcomer, down(every), mergers(every))

    def postpone(self, unit: str, units: Mapping[str, Unit]) -> None:
        """Tell all as soon as no sub-unit of this unit is about to start or to leave any more."""
        self._postponed.add(unit)
        self.settle(units)

    def settle(self, units: Mapping[str, Unit]) -> None:
        """Look again: a sub-unit has started, stopped or died."""
        # A unit is not waited for by another one's newcomers: a spout that leaves waits for what they have to ack.
        still = {name for name in self._postponed if units[name].state.coming_or_going}
        if still != self._postponed:
            self.send(units)
            self._postponed = still


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
