"""Routes of `shuffle`: any sub-unit will do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.channel import OutChannel
from esault.flow.channel.lineage import Lineage
from esault.flow.send.route import Route
from esault.routing.table import OutputTable
from esault.topology.plan import Edge

__all__ = ["RowShuffleRoute", "ShuffleRoute"]

#: rows that go to one sub-unit before the next one's turn, where they are counted
_TURN_ROWS = 256


class ShuffleRoute(Route):
    """`shuffle`: whole batches, to the sub-unit with the least waiting, in turn where that is equal.

    What waits are frames that a socket does not take, and where acks tell of them, rows that are not processed: a slow
    sub-unit has read what it has not processed.
    """

    def __init__(self, unit: str, edge: Edge, cache_size: int) -> None:
        super().__init__(unit, edge, cache_size)
        self._turn = 0

    def install(self, table: OutputTable, channels: Mapping[int, OutChannel]) -> None:
        before = self._channels
        super().install(table, channels)
        if self.unprocessed is not None and set(before) < set(self._channels):
            self.unprocessed.share(before, self._channels)

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        self._channels[self._best(lineage, len(keys))].add(lineage, self._input, keys, values, ids, now)

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        self._send((self._best(lineage, len(batch.keys)),), lineage, batch, ids, now)

    def _best(self, lineage: Lineage, rows: int) -> int:
        channels = self._channels
        count = len(channels)
        if count == 1:
            return 0
        self._turn = turn = (self._turn + 1) % count
        unprocessed = self.unprocessed
        if unprocessed is None:
            return min(range(turn, turn + count), key=lambda i: len(channels[i % count].queue)) % count
        waiting = [(len(channel.queue), channel.unprocessed) for channel in channels]
        best = min(range(turn, turn + count), key=lambda i: waiting[i % count]) % count
        unprocessed.add(lineage.root, channels[best], rows)
        return best


class RowShuffleRoute(Route):
    """`shuffle` where rows may have to go the same way again: each channel in turn gets `_TURN_ROWS` rows.

    Which rows those are follows from their order alone, not from how many come at once.
    """

    def __init__(self, unit: str, edge: Edge, cache_size: int) -> None:
        super().__init__(unit, edge, cache_size)
        self._turn = self._rows = 0

    def restart(self, turn: int) -> None:
        self._turn, self._rows = turn, 0

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        for channel, rows in self._turns(len(keys)):
            self._channels[channel].add(
                lineage, self._input, keys[rows], values[rows], None if ids is None else ids[rows], now
            )

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        for channel, rows in self._turns(len(batch.keys)):
            part, part_ids = batch.picked(range(rows.start, rows.stop), ids)
            self._send((channel,), lineage, part, part_ids, now)

    def _turns(self, rows: int) -> Iterator[tuple[int, slice]]:
        """Channels, and which of the next rows each gets."""
        at = 0
        while at < rows:
            number, within = divmod(self._rows, _TURN_ROWS)
            many = min(_TURN_ROWS - within, rows - at)
            self._rows += many
            yield (self._turn + number) % len(self._channels), slice(at, at + many)
            at += many
