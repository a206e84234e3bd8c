"""Probes on their way through one sub-unit (Zhan et al. 2017, probes)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from esault.flow.channel.frame import PROBE, Frame
from esault.flow.channel.wire import Link, Wire
from esault.messages.probe import Counters
from esault.payload.codec import Codec

__all__ = ["Probes"]


class Probes:
    """A queue of probes that were read and have not come through: each does with the last batch that was read before it."""

    def __init__(
        self, incarnation: int, epoch: int, endpoint: str, wire: Wire, codec: Codec, counters: Callable[[], Counters]
    ) -> None:
        """`endpoint`: where answers go."""
        self._incarnation = incarnation
        self._epoch = epoch
        self._endpoint = endpoint
        self._wire = wire
        self._codec = codec
        self._counters = counters
        self._link: Link | None = None
        #: (batches taken from the inbox by when it is through, number, sent)
        self.waiting: deque[tuple[int, int, float]] = deque()

    def read(self, frame: Frame, ticket: int) -> None:
        """Take a probe, which is through when `ticket` batches have been processed. One that is none is not answered."""
        if type(frame.body) is float and self._endpoint:
            self.waiting.append((ticket, frame.seq, frame.body))
            self._answer(frame.seq, frame.body, False)

    def through(self, taken: int, empty: bool) -> None:
        """Answer those that are through after so many batches; `empty`: none is left in the inbox."""
        waiting = self.waiting
        while waiting and (empty or waiting[0][0] <= taken):
            _, number, sent = waiting.popleft()
            self._answer(number, sent, True)

    def _answer(self, number: int, sent: float, through: bool) -> None:
        if self._link is None:
            self._link = self._wire.link(self._endpoint)
        body = (sent, through, tuple(self._counters()))
        # An answer that the link refuses is dropped: no process reads there, and nothing but a sample is lost.
        self._link.send(self._codec.pack((PROBE, self._epoch, self._incarnation, number, body)))

    def close(self) -> None:
        """Give up the link."""
        if self._link is not None:
            self._link.close()
