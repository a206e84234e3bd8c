"""The events of a simulation, a line each, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from bench.simulation.events import Events

__all__ = ["History"]


class History:
    """Lines with their times, and counts."""

    def __init__(self, events: Events, show: Callable[[str], None] | None = None) -> None:
        """`show` is called with each line as it comes."""
        self._events = events
        self._show = show
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()

    def tell(self, text: str) -> None:
        """Add a line."""
        self.lines.append(f"{self._events.now:12.4f}  {text}")
        if self._show is not None:
            self._show(self.lines[-1])

    def __str__(self) -> str:
        return "\n".join(self.lines)
