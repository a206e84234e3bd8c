"""A spout whose tuples a test sends while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from esault.topology.spout import EndOfStream, Spout

__all__ = ["Sent"]


class Sent(Spout[Any, Any]):
    """Stands for a spout whose tuples `LocalRuntime.send` gives, a few at a time; it ends with `run_until_drained`."""

    def __init__(self) -> None:
        #: what was sent, and True behind it once nothing more comes; that of all copies
        self._tuples: list[tuple[Any, Any]] = []
        self._over: list[bool] = []
        self._next = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Sent:
        """Return the spout of another sub-unit, which reads the same from its start."""
        made = Sent()
        made._tuples, made._over = self._tuples, self._over
        return made

    def add(self, tuples: Iterable[tuple[Any, Any]]) -> None:
        """Have these be read next."""
        self._tuples.extend(tuples)

    def end(self) -> None:
        """Have the stream end behind what was sent."""
        self._over.append(True)

    def read(self, limit: int) -> Sequence[tuple[Any, Any]]:
        if self._next >= len(self._tuples) and self._over:
            raise EndOfStream
        tuples = self._tuples[self._next : self._next + limit]
        self._next += len(tuples)
        return tuples

    def position(self) -> int:
        return self._next

    def seek(self, position: int) -> None:
        self._next = position
