"""The time for which a run has had nothing to do, from what it tells of itself."""

from __future__ import annotations

from typing import Any

from esault.control.report.summary import Snapshot

__all__ = ["IdleWatch"]


class IdleWatch:
    """Call `seen` with each snapshot."""

    def __init__(self, after: float) -> None:
        """`after`: seconds without a tuple after which a run is idle."""
        self._after = after
        self._counts: Any = None
        self._since = 0.0

    def seen(self, snapshot: Snapshot, now: float) -> bool:
        """Return whether the run is idle: no unit has got or emitted a tuple for so long, and nothing is under way or waits."""
        counts = [(unit.name, unit.tuples_in, unit.tuples_out) for unit in snapshot.units]
        waits = any(unit.backlog for unit in snapshot.units) or snapshot.roots_open > 0
        if snapshot.phase != "running" or snapshot.draining or waits or counts != self._counts:
            self._counts, self._since = counts, now
        return now >= self._since + self._after
