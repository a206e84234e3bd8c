"""A spout that collects windows and emits their slices in the order in which they are released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from esault.topology.spout import Spout

__all__ = ["WindowedSpout"]

K = TypeVar("K")
V = TypeVar("V")


class WindowedSpout(Spout[K, V]):
    """The interface that the engine asks of it, besides that of every spout."""

    #: the spout within
    spout: Spout[K, V]
    #: seconds
    window: float
    slice: float

    def collect(self) -> None:
        """Read into the window; called also when the engine takes no tuples."""
        raise NotImplementedError

    def first(self) -> int:
        """The number of the first row of the last read in order of arrival; those of a read follow each other."""
        raise NotImplementedError

    def closed(self) -> tuple[int, tuple[tuple[int, int], ...]] | None:
        """The window that has closed and waits: (number, ((slice, rows), ...)), without what was released; None: there is none."""
        raise NotImplementedError

    def release(self, window: int, slices: Sequence[int]) -> None:
        """These slices go on, in this order. What is not there (any more) is passed over.

        A caller, even for nothing, is waited for from then on.
        """
        raise NotImplementedError

    def emitting(self) -> bool:
        """Return whether something was released and has not been read."""
        raise NotImplementedError

    def drain(self) -> None:
        """Collect no more: what was collected goes on, then the stream ends."""
        raise NotImplementedError
