"""One change of a unit's table while tuples flow, from its request to its end (docs/explanation/rescaling.md)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from esault.messages.change_record import ChangeRecord
from esault.routing.table import Move, OutputTable
from esault.value_class import value_class

__all__ = ["Change", "Requested"]


@value_class(frozen=True)
class Requested:
    """A change that a user or a policy asks for."""

    #: of the request, until its answer: a request to a unit with replicas is one change of each, with one id
    id: int
    #: "split", "merge", "move", "rescale"
    kind: str
    #: the table as it will be, of the incarnations of new sub-units
    table_of: Callable[[list[int]], OutputTable]
    #: how many new sub-units it needs
    news: int
    reason: str = ""
    policy: str = "by hand"
    #: where the new ones are to be; None: anywhere
    host: str | None = None


@dataclass
class Change:
    """A change that is on its way."""

    id: int
    kind: str
    #: the table as it will be, once this subscale has moved
    table: OutputTable
    #: those of this subscale
    moves: list[Move]
    #: incarnations that are made for it
    news: set[int]
    at: float
    reason: str = ""
    policy: str = "by hand"
    before: int = 0
    #: new owners that have not said RangesHeld, then those that have not said StateInstalled
    waiting: set[int] = field(default_factory=set)
    #: old owners that have not said RangesHandedOver
    giving: set[int] = field(default_factory=set)
    #: replacements of new owners that were sent HoldRanges and have not said RangesHeld
    holding_anew: set[int] = field(default_factory=set)
    moved_keys: int = 0
    moved_bytes: int = 0
    held: float = 0.0
    #: when the table was published, seconds since the epoch
    published_at: float | None = None
    #: of a change in subscales: the table as it will be in the end, of those that were there at the start
    final: OutputTable | None = None
    #: in how many subscales it goes, and the moves of those to come
    subscales: int = 1
    later: deque[list[Move]] = field(default_factory=deque)
    #: the newest checkpoint when this subscale began
    checkpoint: int = 0
    #: a sub-unit has just died that has not been replaced
    dying: bool = False

    @property
    def version(self) -> int:
        """The version that its messages name it by."""
        return self.table.version + 1

    @property
    def moved(self) -> int:
        """Subscales that have moved, but for the last one."""
        return self.subscales - len(self.later) - 1

    @property
    def new_owners(self) -> set[int]:
        """The sub-units that get ranges."""
        return {move.new for move in self.moves}

    @property
    def old_owners(self) -> set[int]:
        """The sub-units that give ranges away."""
        return {move.old for move in self.moves}

    def old_owners_of(self, new_owner: int) -> set[int]:
        """Return the sub-units that it gets ranges from."""
        return {move.old for move in self.moves if move.new == new_owner}

    def rename(self, dead: int, new: int) -> None:
        """Put another incarnation in the place of a dead one."""

        self.moves = _renamed(self.moves, dead, new)
        for names in (self.news, self.waiting, self.giving):
            if dead in names:
                names.discard(dead)
                names.add(new)

    def rename_later(self, dead: int, new: int) -> None:
        """Put another incarnation in the place of a dead one in what is to come."""
        self.later = deque([_renamed(moves, dead, new) for moves in self.later])

    def record(self, unit: str, now: float, after: int, dropped: str = "") -> ChangeRecord:
        """Return the record for the report."""
        return ChangeRecord(
            at=self.at,
            unit=unit,
            kind=self.kind,
            before=self.before,
            after=after,
            reason=self.reason,
            policy=self.policy,
            moved_keys=self.moved_keys,
            moved_bytes=self.moved_bytes,
            held=self.held,
            seconds=now - self.at,
            dropped=dropped,
            prepared=(self.published_at or now) - self.at,
            id=self.id,
        )


def _renamed(moves: list[Move], dead: int, new: int) -> list[Move]:
    name = {dead: new}
    return [m._replace(old=name.get(m.old, m.old), new=name.get(m.new, m.new)) for m in moves]
