"""The route where hot keys are split: each sender finds by itself which keys are hot, and spreads their tuples.

Which part of a key gets a tuple changes no result, since the parts are combined behind. So senders agree on nothing, and nothing has to
be told when a key is split or joined again. (Nasir et al., When two choices are not enough, 2016: W-Choices, by shares that each
sender sees.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from typing import Any

from esault.errors import PayloadError
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.channel import OutChannel
from esault.flow.channel.lineage import Lineage
from esault.flow.channel.refused_key import refused_keys
from esault.flow.send.route import KeyRoute
from esault.routing.many_keys import are_keys
from esault.routing.ring import position
from esault.routing.table import OutputTable
from esault.topology.plan import Edge

__all__ = ["SplitKeyRoute"]

#: a key is split from this share of one sub-unit's part of the tuples on ...
HOT = 0.5
#: ... and joined again below this one
COOLED = 0.25
#: tuples of one key that are seen at least before it is taken for hot
SEEN = 32
#: tuples by which shares are judged, at least
JUDGED = 256
#: names that are tried for each sub-unit to find a part of a key there
TRIED = 32
LONGEST_NAME = 60
#: the part of a key that is not split
WHOLE = "0"


class SplitKeyRoute(KeyRoute):
    """By the place of (key, part): of a hot key each sub-unit has a part, and that one gets a tuple that got the fewest from here."""

    def __init__(self, unit: str, edge: Edge, cache_size: int, splits: bool = True) -> None:
        super().__init__(unit, edge, cache_size)
        self._splits = splits
        self._counts: Counter[Any] = Counter()
        self._judged = 0
        #: hot key -> (its part at each sub-unit that could be given one), by number of the channel
        self._parts: dict[Any, dict[int, str]] = {}
        #: rows that each channel got of late
        self._sent: list[int] = []

    def install(self, table: OutputTable, channels: Mapping[int, OutChannel]) -> None:
        super().install(table, channels)
        self._sent = [0] * len(self._channels)
        self._parts = {key: self._parts_of(key) for key in self._parts} if self._only is None else {}
        self._say()

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        numbers, parts = self._choose(keys)
        self._spread(numbers, lineage, parts, values, ids, now)

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        numbers, parts = self._choose(batch.rows[0])
        for number, part, part_ids in ArrayBatch(parts, batch.values).divided(numbers, ids):
            self._send((number,), lineage, part, part_ids, now)

    def _choose(self, keys: Sequence[Any]) -> tuple[list[int], list[Any]]:
        """For each key a channel's number, and the name of the part there."""
        if not are_keys(keys):
            raise refused_keys(self._unit, keys)
        if self._only is None and self._splits:
            self._judge(keys)
        named = [(key, WHOLE) for key in keys]
        try:
            numbers = list(map(self._cache.__getitem__, named))
            if self._parts:
                self._choose_parts(keys, numbers, named)
            return numbers, named
        except PayloadError as error:
            raise refused_keys(self._unit, keys, str(error)) from None

    def _choose_parts(self, keys: Sequence[Any], numbers: list[int], named: list[Any]) -> None:
        """Name other parts where a key is hot."""
        cache, sent, hot = self._cache, self._sent, self._parts
        places: list[int] = []
        for i, key in enumerate(keys):
            if key in hot:
                places.append(i)
            else:
                sent[numbers[i]] += 1
        waiting = {key: [(sent[number], number) for number in parts] for key, parts in hot.items()}
        for heap in waiting.values():
            heapify(heap)
        for i in places:
            key = keys[i]
            heap = waiting[key]
            _, number = heap[0]
            # Keys that Python takes for equal are counted as one; where a part lies follows from the key itself.
            named[i] = (key, hot[key][number])
            numbers[i] = cache[named[i]]
            sent[number] += 1
            heapreplace(heap, (sent[number], number))
        self.split_tuples += len(places)

    def _say(self) -> None:
        self.split_keys = {repr(key)[:LONGEST_NAME]: len(parts) for key, parts in self._parts.items()}

    def _judge(self, keys: Sequence[Any]) -> None:
        """Count keys, and see now and then which are hot."""
        counts = self._counts
        counts.update(keys)
        self._judged += len(keys)
        n = len(self._channels)
        if self._judged < max(JUDGED, SEEN * n):
            return
        part = self._judged / n
        hot = {
            key
            for key, count in counts.items()
            if count > (COOLED if key in self._parts else HOT) * part and (count >= SEEN or key in self._parts)
        }
        for key in [key for key in self._parts if key not in hot]:
            del self._parts[key]
        for key in hot:
            if key not in self._parts:
                self._parts[key] = self._parts_of(key)
        self._say()
        # What was seen before counts half, so that a share is one of late; what came once is forgotten.
        self._counts = Counter({key: count // 2 for key, count in counts.items() if count > 1})
        self._judged //= 2
        self._sent = [count // 2 for count in self._sent]

    def _parts_of(self, key: Any) -> dict[int, str]:
        """A part of the key for each sub-unit, by the names whose places are its own."""
        n = len(self._channels)
        found: dict[int, str] = {}
        for i in range(TRIED * n):
            part = str(i)
            found.setdefault(self._cache.at(position((key, part))), part)
            if len(found) == n:
                break
        return found
