"""One change of a unit's table while tuples flow, from its wish to its end (PROTOCOL section 5).

```
forking -> readying -> moving -> done
   '-----------'---> dropped          (before the table is published)
```
"""

from __future__ import annotations

from dataclasses import dataclass, field

from esault.messages.change_record import ChangeRecord
from esault.routing.table import Move, OutputTable

__all__ = ["Change"]


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
    def new_owners(self) -> set[int]:
        """Those that get ranges."""
        return {move.new for move in self.moves}

    @property
    def old_owners(self) -> set[int]:
        """Those that give ranges away."""
        return {move.old for move in self.moves}

    def old_owners_of(self, new_owner: int) -> set[int]:
        """Those from whom it gets ranges."""
        return {move.old for move in self.moves if move.new == new_owner}

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
