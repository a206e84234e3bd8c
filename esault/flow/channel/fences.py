"""Fences: rows of a key that has moved come behind those that its old owner had emitted, on whichever channel each is read.

A new owner emits rows of a key as soon as it has the key's state, and its channel may be read before that of the old owner, where older
rows stand. So an old owner puts a FENCE into all its channels before each portion of state, and a new one puts one that names the
portion before it takes it in. What a receiver finds behind the second waits until it has read the first.

A chained bolt that gets processes of its own is a move, too: from who has run it so far to the new sub-units. Who has run it puts a FENCE
into its channels, and one that says `TO_BE_NAMED` first into that of each new sub-unit, which then names who has run it before the
rows that come of what is behind. Such a portion has the new sub-unit's incarnation below zero in place of a version.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from esault.errors import FrameError
from esault.flow.channel.channel import InChannel
from esault.flow.channel.frame import Frame

__all__ = ["TO_BE_NAMED", "Fences"]

#: in place of the old owner: who reads this puts a fence that names the sender before what it emits from now on
TO_BE_NAMED = -1

#: a portion of a change: version of its table, number
Portion = tuple[int, int]


class Fences:
    """Holds back what comes behind the fence of a new owner. Reading goes on meanwhile."""

    def __init__(self, put: Callable[[int, int, int], None] = lambda version, number, old: None) -> None:
        """`put`: a fence among what is emitted here: version, number, and the sender that it names."""
        self.put = put
        #: what waits on the channel of a new owner, by its number, and for which old owner's portion
        self._waiting: dict[int, tuple[int, Portion]] = {}
        self._aside: dict[int, deque[tuple[InChannel, Frame, int]]] = {}

    def holds(self, channel: InChannel) -> bool:
        """Return whether what comes on this channel is behind a fence."""
        return channel.number in self._aside

    def put_aside(self, channel: InChannel, frame: Frame, size: int) -> None:
        """Keep a frame from behind the fence."""
        self._aside[channel.number].append((channel, frame, size))

    def read(self, channel: InChannel, body: object, channels: Iterable[InChannel]) -> None:
        """Take in a FENCE: (version, number, old owner), of which the last is 0 where the sender is that itself. Raises FrameError."""
        if type(body) is not tuple or len(body) != 3 or any(type(part) is not int for part in body):
            raise FrameError("FENCE is three integers")
        version, number, old = body
        if old == TO_BE_NAMED:
            self.put(version, number, channel.sender)
        elif not old and version < 0:
            channel.parted.add((version, number))
        elif not old:
            channel.passed = max((version, number), channel.passed)
        elif not self._is_passed(old, (version, number), channels):
            self._waiting[channel.number] = (old, (version, number))
            self._aside[channel.number] = deque()

    def _is_passed(self, old: int, portion: Portion, channels: Iterable[InChannel]) -> bool:
        """Return whether no row from before the portion can come: one that has ended, died or left sends none."""
        return all(
            c.ended or (portion in c.parted if portion[0] < 0 else c.passed >= portion)
            for c in channels
            if c.sender == old
        )

    def released(self, channels: Iterable[InChannel]) -> list[tuple[InChannel, Frame, int]]:
        """Take out what need not wait any more, in the order of each channel."""
        channels = list(channels)
        known = {channel.number for channel in channels}
        found: list[tuple[InChannel, Frame, int]] = []
        for number, (old, portion) in list(self._waiting.items()):
            if number not in known or self._is_passed(old, portion, channels):
                del self._waiting[number]
                found += self._aside.pop(number)
        return found
