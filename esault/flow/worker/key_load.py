"""A sample of the keys that come to a sub-unit: it shows where to cut its range, and keys too heavy for one sub-unit."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from esault.messages.probe import KeyLoad
from esault.payload.column import plain
from esault.routing.ring import position

__all__ = ["KeyLoadSampler"]

#: tuples that one probe has looked at; at ten probes a second this takes 0.3 % of a processor
PER_PROBE = 256
#: tuples that are kept: shares of an eighth are known to within about 6 %
KEPT = 2048
LONGEST_NAME = 60
#: tuples of a sample of which each report has a new summary; of more every fourth one has: it takes a millisecond where the cache is cold
MANY = 512
REPORTS = 4


class KeyLoadSampler:
    """A sampler that looks at a few tuples after each probe, never at all: `room` is 0 when it has seen enough."""

    def __init__(self) -> None:
        self.room = 0
        self._kept: deque[tuple[int, Any]] = deque(maxlen=KEPT)
        self._last = KeyLoad()
        self._stale = False
        #: reports that had the last summary since it was made
        self._reports = 0

    def refill(self) -> None:
        """Allow for some more tuples: a probe came."""
        self.room = PER_PROBE

    def sample(self, keys: Sequence[Any]) -> None:
        """Look at the first `room` of these keys."""
        chosen = plain(keys[: self.room])
        self.room -= len(chosen)
        self._kept.extend([(position(key), key) for key in chosen])
        self._stale = True

    def summary(self) -> KeyLoad:
        """Return the load by keys, from what was sampled of late."""
        self._reports += 1
        if self._stale and (self._reports >= REPORTS or self._last.size < MANY):
            self._stale, self._reports = False, 0
            names = dict(self._kept)
            self._last = KeyLoad.of([place for place, _ in self._kept], lambda place: repr(names[place])[:LONGEST_NAME])
        return self._last

    def forget(self) -> None:
        """Forget what was sampled: the range is another one now."""
        self._kept.clear()
        self._last = KeyLoad()
        self._stale = False
