"""All splits that a sub-unit reads, as one spout: its position is the place in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from esault.flow.watermark.split_clock import OpenSplits
from esault.messages.splits import AssignedSplit
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.split_source import SplitReader, SplitSource
from esault.topology.spout import EndOfStream, Spout

__all__ = ["Place", "SplitReaders"]

#: position, rows before it, whether the split ends there
Place = tuple[Any, int, bool]


class SplitReaders(Spout[Any, Any]):
    """Stands for a source of splits. It reads in turns those that it is told to."""

    ordered = False

    def __init__(self, source: SplitSource[Any, Any], clocks: OpenSplits) -> None:
        self.source = source
        self._clocks = clocks
        self._readers: dict[str, SplitReader[Any, Any]] = {}
        #: where each split stands that is here, those that have ended as well; replaced, never changed, since roots keep it
        self._places: dict[str, Place] = {}
        #: where each was opened, and up to which row it is to be read where the run is drained
        self._begun: dict[str, Place] = {}
        self._until: dict[str, int] = {}
        #: splits to read, the next one first
        self._turns: list[str] = []
        #: those that spouts wait for which are read after this one
        self.awaited: set[str] = set()
        #: up to which row each reader was told that all is durable
        self._told: dict[str, int] = {}
        #: split that was asked last, split of the last rows, and how many these were
        self.asked = self._current = ""
        self._count = 0
        self._counted: Counter[str] = Counter()
        self._draining = False
        #: no other split will come
        self.over = False

    # the splits that are here ------------------------------------------------------------------

    def add(self, split: AssignedSplit, position: Any, rows: int) -> None:
        """Open a split behind so many rows."""
        id = split.id
        if id in self._places:
            return
        added = split.added and split.position is None
        reader = self.source.open_added_split(id) if added else self.source.open_split(id, position)
        if not isinstance(reader, SplitReader):
            raise TypeError(
                f"{type(self.source).__name__}.{'open_added_split' if added else 'open_split'}({id!r}) returned {reader!r}; return an object of a class derived from SplitReader"
            )
        self._readers[id] = reader
        place = (reader.position(), rows, False)
        self._begun[id] = place
        self._until[id] = split.until
        if not split.caught_up:
            self.awaited.add(id)
        self._places = {**self._places, id: place}
        self._turns.append(id)
        self._clocks.begin(id, split.times)

    def rest(self, id: str) -> None:
        """Read this split no more."""
        if id in self._turns:
            self._turns.remove(id)

    def is_done(self, id: str, committed: dict[str, Place]) -> bool:
        """Return whether all that was read of a split is processed; `committed`: up to where all splits are."""
        return self.safe(id, committed)[1] >= self._places[id][1]

    def safe(self, id: str, committed: dict[str, Place]) -> Place:
        """Return the place in a split before which all is processed."""
        return max(self._begun[id], committed.get(id, self._begun[id]), key=itemgetter(1))

    def forget(self, id: str) -> tuple[float, ...]:
        """Close a split, which goes on elsewhere or is over; how far event time had come in it."""
        self.rest(id)
        self.awaited.discard(id)
        self._places = {each: place for each, place in self._places.items() if each != id}
        for each in (self._told, self._begun, self._until):  # a source that is followed has ever new splits
            each.pop(id, None)
        times = self._clocks.end(id)
        reader = self._readers.pop(id)
        self._counted.update(reader.counters())
        reader.close()
        return times

    @property
    def ended(self) -> list[str]:
        """The splits that were read to their end."""
        return [id for id, place in self._places.items() if place[2]]

    def __contains__(self, id: str) -> bool:
        return id in self._places

    def drain(self) -> None:
        """Read no more, but for what a sub-unit that died had read."""
        self._draining = True

    @property
    def drained(self) -> bool:
        """Return whether nothing is left to be read where the run is drained."""
        return not self._wanted()

    def _wanted(self) -> list[str]:
        return [id for id in self._turns if self._places[id][1] < self._until[id]] if self._draining else self._turns

    # as a spout --------------------------------------------------------------------------------

    def open(self, context: Context) -> None:
        self.source.context = context
        self.source.open(context)

    def read(self, limit: int) -> Sequence[tuple[Any, Any]] | Columns:
        """Up to `limit` rows of the next split that has some."""
        wanted = self._wanted()
        for id in list(wanted):
            self._turns.remove(id)
            self.asked = id
            try:
                rows = self._readers[id].read(limit)
            except EndOfStream:
                self._clocks.over(id)
                self._places = {**self._places, id: (*self._places[id][:2], True)}
                continue
            self._turns.append(id)
            if rows is None:
                raise TypeError(
                    f"{type(self._readers[id]).__name__}.read returned None; return a list of (key, value) pairs, [] when there is nothing "
                    "yet, and raise EndOfStream at the end of the split"
                )
            if rows:
                place = self._places[id]
                self._places = {**self._places, id: (self._readers[id].position(), place[1] + len(rows), False)}
                self._current, self._count, self._clocks.current = id, len(rows), id
                self._clocks.quiet[id] = None
                return rows
            if self._clocks.quiet[id] is None:
                self._clocks.quiet[id] = self.source.context.now()
        if self.over and not self._turns:
            raise EndOfStream
        return []

    def position(self) -> dict[str, Place]:
        return self._places

    def seek(self, position: Any) -> None:
        """Do nothing: splits are opened where they go on."""

    def commit(self, position: dict[str, Place] | None) -> None:
        for id, (value, rows, _) in (position or {}).items():
            reader = self._readers.get(id)
            if reader is not None and self._told.get(id, 0) < rows:
                self._told[id] = rows
                reader.commit(value)

    def due(self) -> float | None:
        reader = self._readers.get(self._current)
        return None if reader is None else reader.due()

    def row_ids(self) -> Sequence[str]:
        """Return the names of the rows of the last read: they follow from the split and the place in it."""
        id = self._current
        given = self._readers[id].row_ids()
        end = self._places[id][1]
        return [f"{id}:{name}" for name in (range(end - self._count, end) if given is None else given)]

    def lag(self) -> int | None:
        said = [self._readers[id].lag() for id in self._turns]
        known = [each for each in said if each is not None]
        return sum(known) if len(known) == len(said) and said else None

    def caught_up(self) -> bool:
        source = self.source
        if source.bounded or source.splits_at_once is not None:
            return False  # others may wait for these to end: the unit knows when all that it had found have
        return self._clocks.dealt and all(self._places[id][2] or self._readers[id].caught_up() for id in self.awaited)

    def has_caught_up(self, id: str) -> bool:
        """Return whether spouts that are read after this one need not wait for a split."""
        return id not in self.awaited or self._readers[id].caught_up()

    def counters(self) -> Counter[str]:
        counted = self._counted + Counter(self.source.counters())
        return sum((Counter(reader.counters()) for reader in self._readers.values()), counted)

    def close(self) -> None:
        for id in list(self._readers):
            self._readers.pop(id).close()
        self.source.close()
