"""One change of a unit's table while tuples flow, from its wish to its end (PROTOCOL section 5).

```
forking -> readying -> moving -> done
   '-----------'---> dropped          (before the table is published)
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from esault.routing.table import Move, OutputTable

__all__ = ["Change", "ChangeRecord", "merged", "moved", "rescaled", "split"]


@dataclass(frozen=True)
class ChangeRecord:
    """A change that has ended, for reports."""

    #: seconds since the epoch when it was asked for
    at: float
    unit: str
    #: "split", "merge", "move" or "rescale"
    kind: str
    before: int
    after: int
    reason: str
    policy: str
    moved_keys: int
    moved_bytes: int
    #: the longest that a row of a moved key was held because of it
    held: float
    #: from the wish to the end
    seconds: float
    #: why it was dropped; empty if it was not
    dropped: str = ""
    #: from the wish until new sub-units stood ready and the table was published: nothing waits in that time
    prepared: float = 0.0


@dataclass
class Change:
    """A change that is on its way."""

    kind: str
    #: the table as it will be
    table: OutputTable
    moves: list[Move]
    #: incarnations that are made for it
    news: set[int]
    at: float
    reason: str = ""
    policy: str = "by hand"
    #: "forking" until all news are started and known to everybody, "readying", "moving"
    phase: str = "forking"
    before: int = 0
    #: getters that have not said Ready, then those that have not said Installed
    waiting: set[int] = field(default_factory=set)
    #: givers that have not said Given
    giving: set[int] = field(default_factory=set)
    moved_keys: int = 0
    moved_bytes: int = 0
    held: float = 0.0
    #: when the table was published, seconds since the epoch
    published_at: float | None = None

    @property
    def getters(self) -> set[int]:
        """Those that get ranges."""
        return {move.new for move in self.moves}

    @property
    def givers(self) -> set[int]:
        """Those that give ranges away."""
        return {move.old for move in self.moves}

    def givers_of(self, getter: int) -> set[int]:
        """Those from whom it gets ranges."""
        return {move.old for move in self.moves if move.new == getter}

    def rename(self, dead: int, new: int) -> None:
        """Another incarnation takes the place of one in it."""

        def name(incarnation: int) -> int:
            return new if incarnation == dead else incarnation

        self.moves = [m._replace(old=name(m.old), new=name(m.new)) for m in self.moves]
        for names in (self.news, self.waiting, self.giving):
            if dead in names:
                names.discard(dead)
                names.add(new)

    def record(self, unit: str, now: float, after: int, dropped: str = "") -> ChangeRecord:
        """What the report says of it."""
        return ChangeRecord(
            self.at,
            unit,
            self.kind,
            self.before,
            after,
            self.reason,
            self.policy,
            self.moved_keys,
            self.moved_bytes,
            self.held,
            now - self.at,
            dropped,
            (self.published_at or now) - self.at,
        )


def split(table: OutputTable, owner: int, new: int, at: int | None = None) -> OutputTable:
    """The owner's largest interval, in two; the upper part goes to `new` (esault.md 3.1 and 3.3)."""
    after = table.copy()
    low, _ = max(table.ranges(owner), key=lambda r: r[1] - r[0])
    after.split(low, new, at)
    return after


def merged(table: OutputTable, owner: int) -> OutputTable:
    """The owner's intervals join their neighbours (esault.md 3.4). Raises ValueError for the only owner."""
    after = table.copy()
    if len(table.owners()) == 1:
        raise ValueError("the only sub-unit cannot be merged away")
    while ranges := after.ranges(owner):
        low = ranges[0][0]
        if after.merge_left(low) is None:
            after.merge_right(low)
    return after


def moved(table: OutputTable, owner: int, new: int) -> OutputTable:
    """The same ranges, another owner."""
    after = table.copy()
    after.replace(owner, new)
    return after


def rescaled(table: OutputTable, owners: Sequence[int]) -> OutputTable:
    """Equal shares for these owners, in this order on the ring."""
    after = OutputTable.even(owners)
    after.version = table.version
    return after
