"""News of where acks go, for all sub-units: sent once for all that a change starts or stops."""

from __future__ import annotations

from collections.abc import Mapping

from esault.control.replication.replicas import down, mergers
from esault.control.run.acker_assignment import AckerAssignment
from esault.control.run.credit import filling, widest
from esault.control.units.unit import Unit
from esault.topology.plan import Plan

__all__ = ["AckRoutingUpdates"]


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
