"""Rows on their way: which channels hold how many that were not processed, as far as the acks of roots tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from esault.flow.channel.channel import OutChannel
from esault.flow.channel.frame import Root

__all__ = ["UnprocessedRows"]


class UnprocessedRows:
    """Counts, at each channel, the rows of this sub-unit's own roots until all that came of their root is processed."""

    def __init__(self, incarnation: int) -> None:
        self._incarnation = incarnation
        #: number of a root -> where its rows went, and how many
        self._sent: dict[int, list[tuple[OutChannel, int]]] = {}

    def add(self, root: Root, channel: OutChannel, rows: int) -> None:
        """Count rows that were given to a channel. Of roots of others nothing is heard: they are not counted."""
        if root[0] == self._incarnation:
            channel.unprocessed += rows
            self._sent.setdefault(root[1], []).append((channel, rows))

    def processed(self, number: int) -> None:
        """All rows of this root are processed, in whichever attempt."""
        for channel, rows in self._sent.pop(number, ()):
            channel.unprocessed -= rows

    def share(self, olds: Sequence[OutChannel], channels: Sequence[OutChannel]) -> None:
        """Those that have `olds` share what waits with new ones: all of `channels` count as having the same from now on."""
        moved, ours, next_one = set(olds), set(channels), cycle(channels)
        for number, sent in self._sent.items():
            self._sent[number] = [(next(next_one) if channel in moved else channel, rows) for channel, rows in sent]
        for channel in channels:
            channel.unprocessed = 0
        for sent in self._sent.values():
            for channel, rows in sent:
                if channel in ours:
                    channel.unprocessed += rows
