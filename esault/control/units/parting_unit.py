"""A unit whose senders leave while it goes on: one may go when all of ours have read its END (PROTOCOL section 5, step 6)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

from esault.control.units.unit import Unit
from esault.messages.change import EndRead, Leaving, Left
from esault.messages.control import Gone

__all__ = ["PartingUnit"]


class PartingUnit(Unit):
    """See the module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: who of ours has read END of which sender
        self._ends: dict[int, set[int]] = defaultdict(set)
        #: senders that have sent END and wait for us to have read it
        self._parting: set[int] = set()
        #: senders that have had a table
        self._tabled: set[int] = set()

    def _on_leaving(self, message: Leaving, now: float) -> None:
        """A sender has sent END: it may go when all of ours have read it."""
        self._parting.add(message.incarnation)
        self._check_parting(message.incarnation)

    def _on_end_read(self, message: EndRead, now: float) -> None:
        if message.sender not in self.senders:
            return
        self._ends[message.sender].add(message.incarnation)
        self._check_parting(message.sender)

    def _check_parting(self, sender: int) -> None:
        if sender not in self._parting or sender not in self.senders:
            return
        built = {r.incarnation for r in self.subs.values() if r.built is not None}
        if built <= self._ends[sender]:
            self._parting.discard(sender)
            unit, _ = self.senders.pop(sender)
            self._switching.pop(sender, None)
            self._ends.pop(sender, None)
            self._tabled.discard(sender)
            for incarnation in built:  # it has its END from there: a run may last for thousands of senders
                self._tell(incarnation, Gone(sender))
            self._tell_unit(unit, Left(self.name, sender))
            self._check_settled()

    _HANDLERS: ClassVar[dict[type, str]] = {
        **Unit._HANDLERS,
        EndRead: "_on_end_read",
        Leaving: "_on_leaving",
    }
