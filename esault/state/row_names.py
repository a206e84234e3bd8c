"""The names of rows in a spool that a source may give once more, since it has not been told that they are durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

__all__ = ["RowNames"]


#: seconds for which names are remembered once the source was told: a server that dies forgets what it heard last (RabbitMQ writes
#: acknowledgements down some hundred milliseconds later); and how many names at most, but for the last telling
REMEMBERED, MOST = 10.0, 1_000_000


class RowNames:
    """Knows rows by name until the source was told of them, and for a while more: word may be lost."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        #: what the source gave since the last cut, and between cuts that it has not been told of
        self._given: list[str] = []
        self._cuts: deque[list[str]] = deque()
        #: what it was told of, and when
        self._told: deque[tuple[float, list[str]]] = deque()

    def __len__(self) -> int:
        return len(self._known)

    def learn(self, names: Sequence[str]) -> None:
        """Names that stand in the spool: the source may give them once more."""
        self._known.update(names)

    def new(self, names: Sequence[str]) -> list[int]:
        """Return the places of those that are not known, of each name the first."""
        first = {name: i for i, name in reversed(list(enumerate(names))) if name not in self._known}
        return sorted(first.values())

    def note(self, names: Sequence[str]) -> None:
        """The source has given these, and they are written."""
        self._given += names
        self._known.update(names)

    def cut(self) -> None:
        """Set a cut behind all that was given: it is durable."""
        self._cuts.append(self._given)
        self._given = []

    def told(self, cuts: int, now: float) -> None:
        """The source was told of all before the oldest so many cuts; `now` in seconds."""
        self._told.append((now, [name for _ in range(cuts) for name in self._cuts.popleft()]))
        while len(self._told) > 1 and (self._told[0][0] <= now - REMEMBERED or len(self._known) > MOST):
            self._known.difference_update(self._told.popleft()[1])
