"""The greatest values of a window."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from esault.errors import TopologyError
from esault.topology.bolt import Bolt

__all__ = ["TopK"]


class TopK(Bolt[Any, Any, Any, Any]):
    """Emits, when its window closes, the `k` values that are greatest by `by(value)`, as one tuple, the greatest first.

    Of equal ones those that came first; one whose score is NaN is none of them. As a bolt: `functools.partial(TopK, 3, by=lambda value: value["price"])`; without `by`
    values are compared themselves. It holds k values. Raises TopologyError.
    """

    __slots__ = ("best", "by", "k", "seen")

    def __init__(self, k: int, by: Callable[[Any], Any] | None = None) -> None:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise TopologyError(f"TopK: k={k!r} must be a whole number from 1 on")
        if by is not None and not callable(by):
            raise TopologyError(f"TopK: by={by!r} is not callable; write by=lambda value: value['price']")
        self.k = k
        self.by = by
        #: (score, minus the number of its arrival, value), a heap whose first one is the next to go
        self.best: list[tuple[Any, int, Any]] = []
        self.seen = 0

    def process(self, key: Any, value: Any) -> None:
        """Keep the value if it is among the k greatest so far."""
        score = value if self.by is None else self.by(value)
        if score is None:
            raise TypeError(
                "TopK: None is neither more nor less than another value; leave it out with filter(...) before"
            )
        if score != score:  # NaN: among others it would hide some that are greater
            return
        self.seen += 1
        full = len(self.best) == self.k
        if not full or score > self.best[0][0]:
            best = self.best.copy()  # a score that cannot be compared raises, and leaves a heap in disorder
            (heapq.heapreplace if full else heapq.heappush)(best, (score, -self.seen, value))
            self.best = best

    def finish(self) -> None:
        """Emit them under the key."""
        best = sorted(self.best, key=lambda each: each[:2], reverse=True)
        self.emit(self.key, tuple([value for _, _, value in best]))

    def __getstate__(self) -> dict[str, Any]:
        return {"best": self.best, "seen": self.seen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.best, self.seen = list(state["best"]), state["seen"]
