"""The cut through the streams that come in (docs/explanation/checkpoints.md)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from esault.flow.channel.channel import InChannel
from esault.flow.channel.frame import Frame

__all__ = ["Alignment"]


class Alignment:
    """Holds back what comes behind the cut until it has come on every channel. Reading goes on meanwhile.

    The cut comes as a frame on each channel. What stands before it is processed as ever; what comes behind it on a channel is
    put aside, whole frames in order. A channel that has ended counts as having it.
    """

    def __init__(self) -> None:
        #: of the checkpoint that is on; None where none is
        self.number: int | None = None
        #: numbers of channels behind whose cut nothing is processed yet
        self._cut: set[int] = set()
        #: (channel, frame, bytes) in the order in which they came
        self._aside: deque[tuple[InChannel, Frame, int]] = deque()
        #: the newest one that was done or abandoned: its frames may still come
        self._over = 0

    def begin(self, number: int) -> bool:
        """A checkpoint has reached this sub-unit, by a channel or from the driver; False if it is over already."""
        if number <= self._over or (self.number is not None and number <= self.number):
            return self.number == number
        self.number = number
        self._cut.clear()
        return True

    def cut(self, channel: InChannel, number: int) -> None:
        """The cut came on this channel."""
        if self.begin(number):
            self._cut.add(channel.number)

    def holds(self, channel: InChannel) -> bool:
        """Return whether what comes on this channel is behind the cut."""
        return self.number is not None and channel.number in self._cut

    def put_aside(self, channel: InChannel, frame: Frame, size: int) -> None:
        """Keep a frame from behind the cut."""
        self._aside.append((channel, frame, size))

    def complete(self, channels: Iterable[InChannel]) -> bool:
        """Return whether the cut has come on all channels that have not ended."""
        return self.number is not None and all(c.ended or c.number in self._cut for c in channels)

    def release(self) -> list[tuple[InChannel, Frame, int]]:
        """The cut is made, or will not be: what was put aside, to be taken in now."""
        if self.number is not None:
            self._over = max(self._over, self.number)
        self.number = None
        self._cut.clear()
        aside = list(self._aside)
        self._aside.clear()
        return aside

    def abandon(self, number: int) -> bool:
        """This checkpoint is given up; whether it was the one that is on."""
        self._over = max(self._over, number)
        return self.number is not None and self.number <= number
