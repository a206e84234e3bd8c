"""Rows that go to all sub-units, while a change makes new ones: whose broadcast state is that of an old one at the barriers.

Each sender sends by the table before up to its barrier, to old sub-units alone, and by the new one behind it, to the new ones as well.
So an old owner copies its state when it has processed all such rows before the barriers of all senders, and none behind; and a new one
processes none before it has the copy. Then each row is processed once in each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from esault.flow.handover.divide import Entry

__all__ = ["BroadcastRows"]


class BroadcastRows:
    """Says of rows of broadcast inputs whether they wait, and where in the inbox they stand."""

    def __init__(self, inputs: frozenset[int]) -> None:
        self._inputs = inputs
        #: version of the change whose new sub-units get a copy from here; 0: none
        self.gives = 0
        #: this sub-unit is new, and has no copy yet
        self.takes = False
        #: rows that wait until the copy is made, or is there
        self.aside: deque[Entry] = deque()

    @property
    def active(self) -> bool:
        """Return whether rows must be looked at."""
        return bool(self.gives or self.takes or self.aside)

    def waits(self, entry: Entry, version: int) -> bool:
        """Return whether a batch is to wait that was sent by this version of the table."""
        if not self._inputs or entry.batch.input not in self._inputs:
            return False
        if self.gives and not self.takes:
            return version >= self.gives
        return self.takes or bool(self.aside)  # they keep their order

    def place(self, entry: Entry, inbox: deque[Entry]) -> int:
        """Return where a batch goes in the inbox.

        What the copy waits for goes before rows of keys, so that a long inbox does not hold up the change.
        """
        if not self.gives or entry.batch.input not in self._inputs:
            return len(inbox)
        return next((at for at, other in enumerate(inbox) if other.batch.input not in self._inputs), len(inbox))

    def settled(self, inbox: deque[Entry]) -> bool:
        """Return whether all rows are processed that came before the barriers; the first in the inbox, by `place`."""
        return not self.gives or not inbox or inbox[0].batch.input not in self._inputs

    def released(self) -> Iterator[Entry]:
        """Take out what need not wait any more."""
        while self.aside and not self.gives and not self.takes:
            yield self.aside.popleft()
