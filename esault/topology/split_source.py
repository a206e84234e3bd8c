"""Sources that are read in splits: the partitions of a topic, the files of a folder (FLIP-27's words: split, enumerator, reader)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

from esault.errors import TopologyError
from esault.topology.arguments import check_seconds
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.spout import Spout

__all__ = ["SplitReader", "SplitSource", "refuse_splits"]

K = TypeVar("K")
V = TypeVar("V")


class SplitReader(Generic[K, V]):
    """A reader of one split, made by `SplitSource.open_split`. Subclasses write `read` and `position`; the rest is optional.

    The hooks mean what those of `Spout` mean. One split is read by one reader at a time. It is closed at the end of the split, or
    where another sub-unit goes on with the split, which opens it at the `position` of this one.
    """

    def read(self, limit: int, /) -> Sequence[tuple[K, V]] | Columns:
        """Up to `limit` (key, value) pairs, or `Columns` of them, without waiting; `[]` when there is nothing yet.

        Raises EndOfStream at the end of the split, such as the end of a file.
        """
        raise NotImplementedError(f"{type(self).__name__} must define read(limit)")

    def position(self) -> Any:
        """Return the position behind the last read, or the one that it was opened at; any value that can travel.

        `open_split` with it gives the tuples that come behind it. Asked for once right after the split is opened: one that is to
        begin at a moving place, such as the newest message, says here which place that is.
        """
        raise NotImplementedError(f"{type(self).__name__} must define position()")

    def commit(self, position: Any, /) -> None:
        """All tuples of the split up to `position` are durable: with checkpoints in a complete one, else processed and committed."""

    def due(self) -> float | None:
        """Return the time at which the first tuple of the last read was due, seconds since the epoch; None: when it was read."""
        return None

    def row_ids(self) -> Sequence[str] | None:
        """Return a name for each row of the last read, the same whenever it is read; None: its number in the split is."""
        return None

    def lag(self) -> int | None:
        """Return the number of tuples of the split that are due and have not been read, now; None where it cannot be known."""
        return None

    def caught_up(self) -> bool:
        """Return whether all of the split has been read that was there when it was opened. Raises what `read` does."""
        return False

    def counters(self) -> Mapping[str, int]:
        """Return how much was left out or cut short so far, by reason."""
        return {}

    def close(self) -> None:
        """Close what is open; nothing is called after it. Not called in a crash."""


class SplitSource(Spout[K, V]):
    """A source whose tuples are in splits. Subclasses write `splits` and `open_split`.

    The engine deals the splits out to the sub-units of the spout, moves them when these become more or fewer, and opens each where it
    was read to before. `splits` is called on one object of all, at the start and every `discovery_interval` seconds; `open_split` on
    the object of the sub-unit that is to read the split, or `open_added_split`. Tuples of one split stay in order; those of different splits have none.

    Order of calls, one at a time. In the driver's process: `check()`. In each sub-unit: `open`; then `splits` and `open_split`, and
    the hooks of the readers; at last `close` of each reader, and `close`. Nothing but `close` is called once a hook has raised.
    """

    parallel: ClassVar[bool] = True
    ordered = False

    #: seconds between two calls of `splits`, for sources that get new splits while they are read: such a run has no end. None: it is
    #: called once, and the run ends when all splits have
    discovery_interval: float | None = None

    #: True says that each split has an end, as a file has. Then they may be read one after the other, as the Spark engine does
    bounded: ClassVar[bool] = False

    #: splits that one sub-unit reads at a time, so that many files need not all be open; others wait until one ends. None: all
    splits_at_once: int | None = None

    def splits(self) -> Sequence[str] | None:
        """Return the names of all splits there are now, in the order in which to begin them. Called between reads: it should be quick.
        None: they are not known yet; it is asked again in a moment.

        A name says the same split in each run and is not used again for another. One that was read to its end and is not named any
        more is forgotten.
        """
        raise NotImplementedError(f"{type(self).__name__} must define splits()")

    def open_split(self, id: str, position: Any, /) -> SplitReader[K, V]:
        """Return a reader of this split from `position` on; None: from where it begins. Raises SourceError where that cannot be."""
        raise NotImplementedError(f"{type(self).__name__} must define open_split(id, position)")

    def open_added_split(self, id: str, /) -> SplitReader[K, V]:
        """Return a reader of this split from its very beginning: it was not there when the source was first read.

        In place of `open_split(id, None)`, once others are known: from an earlier call of `splits`, or from the checkpoint that the run
        goes on from. One that begins at a moving place, such as the newest message, would leave out what came before it was found.
        """
        return self.open_split(id, None)

    def examine(self, where: str) -> None:
        """Raise TopologyError for hooks that are missing or for readers, and for numbers that cannot be; the engine asks."""
        cls = type(self)
        for hook in ("splits", "open_split"):
            if getattr(cls, hook) is getattr(SplitSource, hook):
                raise TopologyError(
                    f"{where}: {cls.__name__} does not define {hook}: a SplitSource has splits and open_split"
                )
        for hook in ("read", "position", "seek"):
            if getattr(cls, hook) is not getattr(SplitSource, hook):
                raise TopologyError(
                    f"{where}: {cls.__name__} is a SplitSource and defines {hook}, which is for the readers that open_split returns; move it"
                )
        where = f"{where}, {cls.__name__}"
        if self.discovery_interval is not None:
            check_seconds(where, "discovery_interval", self.discovery_interval)
        most: object = self.splits_at_once
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise TopologyError(f"{where}: splits_at_once={most!r}: write a number of splits of at least 1, or None")

    # A source of splits has positions, and is not read as a whole.

    def open(self, context: Context, /) -> None:
        """Open what all splits share, such as a connection; called once in each sub-unit's process."""

    def read(self, limit: int, /) -> NoReturn:
        """Refuse: the readers of its splits are read."""
        raise TypeError(f"{type(self).__name__} is read in splits: open_split(id, position).read(limit)")

    def position(self) -> NoReturn:
        """Refuse: each split has a position of its own."""
        raise TypeError(f"{type(self).__name__} is read in splits: open_split(id, position).position()")

    def seek(self, position: Any, /) -> NoReturn:
        """Refuse: each split is opened at a position of its own."""
        raise TypeError(f"{type(self).__name__} is read in splits: open_split(id, position)")


def refuse_splits(wrapper: str, spout: Spout[Any, Any]) -> None:
    """Raise TopologyError where a source of splits is put into what reads a spout as a whole."""
    if isinstance(spout, SplitSource):
        raise TopologyError(
            f"{wrapper}: {type(spout).__name__} is read in splits, which the engine deals out, and not as a whole; leave {wrapper} out, or "
            "hold the source back with esault throttle"
        )
