"""Who has done its part of a checkpoint: one is complete when all have (PROTOCOL section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from esault.control.elastic_unit import ElasticUnit
from esault.messages.checkpoint import Abandon, Checkpoint, Completed, Piece, Snapped

__all__ = ["Checkpoints", "Cut"]


@dataclass
class Cut:
    """One checkpoint on its way."""

    number: int
    begun_at: float
    #: sub-units that have not said Snapped
    waiting: set[int] = field(default_factory=set)
    #: what they said, by unit
    parts: dict[str, list[Snapped]] = field(default_factory=dict)
    #: which part of its spout a sub-unit reads, or its number in the unit
    places: dict[int, int] = field(default_factory=dict)


class Checkpoints:
    """Begins checkpoints, gathers their parts, and says when one is complete. `keep` is told of it before anybody else."""

    def __init__(
        self,
        every: float,
        patience: float,
        tell: Callable[[int, Any], None],
        keep: Callable[[Cut], None],
        newest: int = 0,
    ) -> None:
        """`every`: seconds between two; 0: only when asked for. `patience`: seconds until one is given up."""
        self._every = every
        self._patience = patience
        self._tell = tell
        self._keep = keep
        self.newest = newest
        #: numbers are never used twice
        self._last = newest
        self.current: Cut | None = None
        self._due: float | None = None
        #: of the newest complete one: unit -> sub-unit -> its pieces, the base first
        self.chains: dict[str, dict[int, list[Piece]]] = {}
        self._unit_of: dict[int, str] = {}

    def may_begin(self, units: Iterable[ElasticUnit]) -> bool:
        """Whether no change, no death and no end is being dealt with."""
        for unit in units:
            if unit.change is not None or unit.unsettled:
                return False
            if unit.finishing and not all(record.finished for record in unit.subs.values()):
                return False
            # Who leaves takes part: what its sinks hold is committed with a checkpoint, and not before.
            if not all(record.started_at is not None for record in unit.subs.values()):
                return False
        return True

    def tick(self, units: Iterable[ElasticUnit], now: float) -> None:
        """Begin one that is due, give up one that takes too long."""
        units = list(units)
        if self.current is not None:
            if now > self.current.begun_at + self._patience:
                self.abandon()
            return
        if self._every:
            self._due = self._due or now + self._every
        due = (self._due is not None and now >= self._due) or any(unit.wants_checkpoint for unit in units)
        if due and self.may_begin(units):
            if self._due is not None:
                self._due = max(self._due + self._every, now)
            self.begin(units, now)

    def begin(self, units: Iterable[ElasticUnit], now: float) -> int:
        """Have everybody that no channel leads to cut; the number."""
        self._last += 1
        self.current = Cut(self._last, now)
        for unit in units:
            for record in unit.subs.values():
                self.current.waiting.add(record.incarnation)
                self._unit_of[record.incarnation] = unit.name
                self.current.places[record.incarnation] = record.part
                # Spouts begin by it, and those whose channels have all ended; to others it says nothing new.
                self._tell(record.incarnation, Checkpoint(self._last))
        return self._last

    def snapped(self, message: Snapped) -> None:
        """Somebody has done its part."""
        cut = self.current
        if cut is None or message.number != cut.number or message.incarnation not in cut.waiting:
            return
        cut.waiting.discard(message.incarnation)
        cut.parts.setdefault(self._unit_of[message.incarnation], []).append(message)
        if not cut.waiting:
            self.current = None
            self._chain(cut)
            self._keep(cut)
            self.newest = cut.number
            for parts in cut.parts.values():
                for part in parts:
                    self._tell(part.incarnation, Completed(cut.number))
            self._unit_of.clear()

    def _chain(self, cut: Cut) -> None:
        for unit, parts in cut.parts.items():
            before = self.chains.get(unit, {})
            now: dict[int, list[Piece]] = {}
            for part in parts:
                if part.piece is not None:
                    chain = [] if part.piece.base else before.get(part.incarnation, [])
                    now[part.incarnation] = [*chain, part.piece]
            self.chains[unit] = now

    def abandon(self) -> None:
        """Give up the one that is on, such as when somebody died."""
        cut, self.current = self.current, None
        if cut is not None:
            for incarnation in self._unit_of:
                self._tell(incarnation, Abandon(cut.number))
            self._unit_of.clear()
