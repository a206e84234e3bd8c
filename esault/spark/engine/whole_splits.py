"""A source of splits that end, such as files, read as a whole: one split after the other, so that there is one order of all rows.

Actors deal splits out to their sub-units. Here a spout has parts whose number stays, and workers read what the driver has read before: both
must find the same rows in the same order.

Where event time starts at the source, each split is a part of its own. All parts are read side by side, and a watermark is the least of all of
them, as it is of the splits that actors have open: rows of one are not late behind those of another that was read first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar
from zlib import crc32

from esault.errors import SourceError, TopologyError
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.plan import UnitPlan
from esault.topology.split_source import SplitReader, SplitSource
from esault.topology.spout import EndOfStream, Spout

__all__ = ["MOST_ALONE", "WholeSplits", "can_be_whole", "each_alone"]

#: seconds until the splits must be known in a worker
_PATIENCE = 60.0
#: splits that are parts of their own, at most: all are open at a time, on the driver and in workers
MOST_ALONE = 128


def can_be_whole(unit: UnitPlan) -> bool:
    """Return whether its source is one of splits that all end, of which there are no more later on."""
    spout = unit.spout
    return isinstance(spout, SplitSource) and spout.bounded and spout.discovery_interval is None


def each_alone(unit: UnitPlan) -> bool:
    """Return whether each of its splits is a part of its own, since it has a watermark of its own."""
    return isinstance(unit.spout, (SplitSource, WholeSplits)) and bool(unit.watermark_targets)


class WholeSplits(Spout[Any, Any]):
    """See the module. Of several parts each has every so many splits."""

    parallel: ClassVar[bool] = True

    def __init__(self, source: SplitSource[Any, Any], alone: bool = False) -> None:
        """`alone`: each of its splits is a part of its own."""
        self.source = source
        self._alone = alone
        self._names: list[str] | None = None
        self._mark = 0
        #: the split that is read, where to begin in it, and its reader once it is open
        self._at = 0
        self._within: Any = None
        self._reader: SplitReader[Any, Any] | None = None

    def check(self) -> None:
        """As the source."""
        self.source.check()

    def count(self, context: Context) -> int:
        """Return how many splits there are, by the source itself, which is closed again. Raises TopologyError where they are too many to be
        read side by side.
        """
        self.open(context)
        try:
            found = self._waited(self.source.splits)
        finally:
            self.close()
        if found is None or len(found) > MOST_ALONE:
            what = "does not say within a minute which splits it has" if found is None else f"has {len(found)} splits"
            raise TopologyError(
                f"unit {context.unit!r}: {type(self.source).__name__} {what}; with event time all are read side by side on Spark, {MOST_ALONE} "
                "at most: name fewer files, of ParquetFiles also a larger split_size, or run it on actors"
            )
        return len(found)

    def open(self, context: Context) -> None:
        """The source; its splits one by one."""
        self.context = self.source.context = context
        self.source.open(context)

    def read(self, limit: int) -> Sequence[tuple[Any, Any]] | Columns:
        """Read the split at hand, or the next one."""
        names = self._known()
        if names is None:
            return []
        while True:
            if self._reader is None:
                if self._at == len(names):
                    raise EndOfStream
                self._reader = self.source.open_split(names[self._at], self._within)
            try:
                return self._reader.read(limit)
            except EndOfStream:
                self._let_go()
                self._at, self._within = self._at + 1, None

    def _known(self) -> list[str] | None:
        """Return the names of this part's splits; None where they are not known yet. Raises SourceError where there are more than parts."""
        if self._names is None:
            found = self.source.splits()
            if found is not None:
                if self._alone and len(found) > self.context.parts:  # two in one part: rows of the second would be late
                    raise SourceError(
                        f"{type(self.source).__name__} has {len(found)} splits by now, and had {self.context.parts} when the run began; with "
                        "event time each is a part of its own on Spark, and none may come beside them: read them from a folder of their own"
                    )
                self._names = list(found)[self.context.part :: self.context.parts]
                self._mark = crc32("\0".join(self._names).encode("utf-8", "surrogateescape"))
        return self._names

    def position(self) -> Any:
        """Return (number of the split, where in it, what all splits were)."""
        return self._at, self._within if self._reader is None else self._reader.position(), self._mark

    def beginning(self) -> Any:
        """Return the position before the first row, once the splits are known: workers that seek it find the same splits, or say so."""
        self._waited(self._known)
        return None if self._names is None else self.position()

    def seek(self, position: Any) -> None:
        """Go on there. Raises SourceError where the splits are others by now: rows would come twice, or not at all."""
        self._let_go()
        self._at, self._within, mark = position
        self._waited(self._known)
        if self._names is None or self._mark != mark:
            raise SourceError(
                f"{type(self.source).__name__} finds other files than when they were first read; on Spark those that are read must stay, and "
                "none may come beside them: read them from a folder of their own"
            )

    def counters(self) -> Mapping[str, int]:
        """As the source."""
        return self.source.counters()

    @staticmethod
    def _waited(ask: Callable[[], Sequence[str] | None]) -> Sequence[str] | None:
        """Return what is answered, once it is known; None where it takes too long."""
        until = time.monotonic() + _PATIENCE
        while (found := ask()) is None and time.monotonic() < until:
            time.sleep(0.01)
        return found

    def _let_go(self) -> None:
        if self._reader is not None:
            reader, self._reader = self._reader, None
            reader.close()

    def close(self) -> None:
        """The split at hand, and the source."""
        self._let_go()
        self.source.close()
