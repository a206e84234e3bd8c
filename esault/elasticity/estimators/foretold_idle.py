"""The idle times to come, where a rhythm says how many sub-units are needed in each of the next seconds."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ForetoldIdle"]

#: seconds within which those that are needed again are started by one change
TOGETHER = 1


class ForetoldIdle:
    """The time for which each sub-unit will not be needed, and what it is worth to stop it for that.

    A stop and a later start are worth some seconds of a sub-unit, for each of them. Moved keys are held besides, once for
    all that one change starts: each of thirteen that are needed again at once bears a thirteenth of that. Counted whole for each,
    a hold of 0.4 s keeps all thirteen through valleys of 10 s.
    """

    def __init__(self, needed: Sequence[int], change: float, hold: float) -> None:
        """`needed`: in each second from now; `change`, `hold`: seconds of a sub-unit that a change is worth, and that its hold is."""
        self._needed = needed
        self._change, self._hold = change, hold

    def until(self, rank: int) -> int:
        """Seconds until so many are needed, as far as is foretold."""
        return next((second for second, count in enumerate(self._needed) if count >= rank), len(self._needed))

    def pays(self, rank: int, idle: range, lead: float) -> bool:
        """Return whether the sub-unit of that rank is better stopped now; `idle`: all ranks that are not needed now, this one among them.

        `lead`: seconds before it is needed at which it is to be started.
        """
        again = self.until(rank)
        together = sum(abs(self.until(other) - again) <= TOGETHER for other in idle)
        return again - lead > self._change + self._hold / max(1, together)
