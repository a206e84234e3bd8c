"""A tuple every so many seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from esault.sources.ticks import Ticks
from esault.topology.arguments import check_seconds

__all__ = ["Ticker"]


class Ticker(Ticks):
    """Offers a tuple every `every` seconds, the first one at once. Key: None, value: when it was due, seconds since the epoch.

    Times are `every` apart from when it began, also with `--resume`: they do not drift, and one that comes late moves no other.
    `missed` is for ticks that came due while nothing ran, such as between a stop and `--resume`: "all" of them come then, with
    their times; "once", the last one; or "skip", none. It is said how many. With "all" the same ticks come whenever and however often
    a run goes on; with the others, those that are undone by a crash count as missed, too. `count`: the stream ends behind so many.
    """

    delivery_guarantee: ClassVar[str] = 'with checkpoints each tick counts once, also those missed (missed="all")'

    def __init__(self, every: float, *, missed: str = "all", count: int | None = None) -> None:
        self.every = check_seconds("Ticker", "every", every)
        super().__init__(f"Ticker({every:g})", missed, count)

    def times(self, began: float, last: float | None, number: int) -> Iterator[tuple[int, float]]:
        """Yield number and time of each tick behind `number`."""
        while True:
            number += 1
            yield number, began + (number - 1) * self.every
