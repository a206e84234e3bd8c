"""An inbox that holds so many tuples at most: what comes when it is full is dropped, counted, and acked as done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from esault.flow.channel.frame import Batch
from esault.flow.delivery.acks import Acks
from esault.flow.handover.divide import Entry, cut

__all__ = ["BoundedInbox"]


class BoundedInbox:
    """A filter between the channels and the inbox of a bolt with `buffer=N`.

    What other sub-units hand over does not pass here. The newest are dropped, so that what stays is in
    order. A dropped row is done: it is not replayed.
    """

    def __init__(self, most: int, waiting: Callable[[], int], random64: Callable[[], int], acks: Acks | None) -> None:
        """`most`: tuples; `waiting` tells how many wait; `acks` is None where nothing is acked."""
        self.most = most
        self._waiting = waiting
        self._random64 = random64
        self._acks = acks
        #: tuples so far
        self.dropped = 0

    def fitting(self, sent: float, batches: Sequence[Batch]) -> list[Batch]:
        """Return the batches of one frame that fit, the last one perhaps in part."""
        room = self.most - self._waiting()
        kept = []
        for batch in batches:
            rows = len(batch.keys)
            if rows <= room:
                kept.append(batch)
                room -= rows
                continue
            rest = batch
            if room > 0:
                first, last = cut(Entry(sent, batch), room, self._random64, self._acks)
                kept.append(first.batch)
                rest, room = last.batch, 0
            self.dropped += len(rest.keys)
            if self._acks is not None:
                self._acks.add(rest.root, rest.id, rest.id)
        return kept
