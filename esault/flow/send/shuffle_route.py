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

#: pieces that pushes are divided into a second, besides one for each push, and how many of them may come at once: a batch more costs
#: two processes some 50 us, so that this is a twentieth of a processor
_PIECES, _SAVED = 1000.0, 256.0
#: of turns by rows: the rows of the longest, and the turns that each sub-unit has while the rows so far double
_TURN_ROWS, _TURNS = 256, 4


class ShuffleRoute(Route):
    """`shuffle`: to the sub-units with the least waiting, in turn where that is equal.

    What waits are frames that a socket does not take, and where acks tell of them, rows that are not processed: a slow
    sub-unit has read what it has not processed.

    Rows that come at once are divided, so that no sub-unit has all of them to do while others idle. How long a row takes is not known
    here. So the pieces a second have a limit: where many rows come, most pushes go whole, and rows that take long cannot be many.
    Arrays go whole.
    """

    def __init__(self, unit: str, edge: Edge, cache_size: int) -> None:
        super().__init__(unit, edge, cache_size)
        self._turn = 0
        #: pieces that may be made at once, as of then
        self._saved, self._saved_at = _SAVED, 0.0

    def install(self, table: OutputTable, channels: Mapping[int, OutChannel]) -> None:
        before = self._channels
        super().install(table, channels)
        if self.unprocessed is not None and set(before) < set(self._channels):
            self.unprocessed.share(before, self._channels)

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        channels, rows = self._channels, len(keys)
        pieces = min(rows, len(channels))
        if pieces > 1:
            saved = min(_SAVED, self._saved + max(0.0, now - self._saved_at) * _PIECES)
            pieces = min(pieces, 1 + int(saved))
            self._saved, self._saved_at = saved - (pieces - 1), now
        if pieces < 2:
            channels[self._best(lineage, rows)].add(lineage, self._input, keys, values, ids, now)
            return
        at = 0
        for channel, many in self._shares(lineage, rows, pieces):
            part = slice(at, at + many)
            channel.add(lineage, self._input, keys[part], values[part], None if ids is None else ids[part], now)
            at += many

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        self._send((self._best(lineage, len(batch.keys)),), lineage, batch, ids, now)

    def _waiting(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Return what waits in each channel, frames and rows, and the numbers of the channels, another one first each time."""
        channels = self._channels
        count = len(channels)
        self._turn = turn = (self._turn + 1) % count
        if self.unprocessed is None:
            waiting = [(len(channel.queue), 0) for channel in channels]
        else:
            waiting = [(len(channel.queue), channel.unprocessed) for channel in channels]
        return waiting, [*range(turn, count), *range(turn)]

    def _best(self, lineage: Lineage, rows: int) -> int:
        if len(self._channels) == 1:
            return 0
        waiting, numbers = self._waiting()
        best = min(numbers, key=waiting.__getitem__)
        if self.unprocessed is not None:
            self.unprocessed.add(lineage.root, self._channels[best], rows)
        return best

    def _shares(self, lineage: Lineage, rows: int, pieces: int) -> list[tuple[OutChannel, int]]:
        """Return channels, and how many of these rows each gets: such that as much waits in all of them, as far as that can be."""
        waiting, numbers = self._waiting()
        numbers.sort(key=waiting.__getitem__)
        frames = waiting[numbers[0]][0]
        chosen = [number for number in numbers[:pieces] if waiting[number][0] == frames]
        total = rows + sum([waiting[number][1] for number in chosen])
        while waiting[chosen[-1]][1] * len(chosen) > total:
            total -= waiting[chosen.pop()][1]
        level, more = divmod(total, len(chosen))
        found = []
        for i, number in enumerate(chosen):
            if many := level + (i < more) - waiting[number][1]:
                channel = self._channels[number]
                found.append((channel, many))
                if self.unprocessed is not None:
                    self.unprocessed.add(lineage.root, channel, many)
        return found


class RowShuffleRoute(Route):
    """`shuffle` where rows may have to go the same way again: each channel in turn gets so many rows.

    Which rows those are follows from their order alone, not from how many come at once. The first ones go one by one, so that few
    that take long do not all go to one; later turns are longer, up to `_TURN_ROWS`.
    """

    def __init__(self, unit: str, edge: Edge, cache_size: int) -> None:
        super().__init__(unit, edge, cache_size)
        self._begin(0)

    def _begin(self, turn: int) -> None:
        #: whose turn it is, how many of its rows are to come, and how many rows there were
        self._turn, self._left, self._rows = turn, 1, 0

    def restart(self, turn: int) -> None:
        self._begin(turn)

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
        at, count = 0, len(self._channels)
        while at < rows:
            many = min(self._left, rows - at)
            yield self._turn % count, slice(at, at + many)
            at += many
            self._rows += many
            self._left -= many
            if not self._left:
                self._turn += 1
                self._left = min(_TURN_ROWS, max(1, self._rows // (_TURNS * count)))
