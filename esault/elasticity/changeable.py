"""The changes that a judge can make to a unit; live and in the simulator."""

from __future__ import annotations

from typing import Protocol

from esault.routing.table import OutputTable

__all__ = ["Changeable"]


class Changeable(Protocol):
    """A unit that carries out what its judge lets pass."""

    @property
    def width(self) -> int:
        """Return the number of its sub-units."""
        ...

    @property
    def table(self) -> OutputTable | None:
        """Return the owners of the parts of the ring; None before the table is built, and for spouts."""
        ...

    def adopt(self, after: OutputTable, news: int, now: float, kind: str, reason: str, policy: str) -> int:
        """Change to this table, in which -1, -2 ... stand for new sub-units; the id of the change. Raises UsageError."""
        ...

    def move(self, owner: int, now: float, reason: str = "", policy: str = "by hand", host: str | None = None) -> int:
        """A new sub-unit, on that host where one is said, takes the owner's place; the change's id. Raises UsageError."""
        ...

    def throttle(self, rate: float, seconds: float, now: float) -> None:
        """Process at most `rate` tuples a second, all sub-units together, for so long. Raises UsageError."""
        ...
