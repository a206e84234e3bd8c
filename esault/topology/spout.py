"""Spouts: where tuples come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from esault.topology.columns import Columns
from esault.topology.context import Context

__all__ = ["EndOfStream", "Spout"]

K = TypeVar("K")
V = TypeVar("V")


class EndOfStream(Exception):
    """Raised by `Spout.read` when there will never be another tuple."""


class Spout(Generic[K, V]):
    """A source of tuples. Subclasses write `read`; the other hooks are optional.

    Constructors open nothing: a spout is built in several processes, `open` is called in the
    one that reads. With `position` and `seek` the engine goes on after a restart; without them
    it keeps open tuples in the spout's memory, which is enough when a bolt's process dies. A queue, which cannot go back and forgets
    what is acknowledged, has `position` and `commit`, and says `seekable = False`.

    Order of calls, one at a time. On an object of its own, in the driver's process: `check()`. On the one that reads: `open`, and
    `seek` where it goes on; then `read`, after one that gave something `due`, and between reads `position`, `commit`, `progress`
    and `lag`; at an orderly stop `halt`, and then `read` to EndOfStream; no `read` behind it; at last `close`, and nothing after it. Nor is anything but `close` called once a
    hook has raised. On Spark the driver's object is asked all this but `lag`, and those of workers `open`, `seek`, `read` and `close`.
    """

    #: True allows several sub-units; each object finds its part in `self.context.part` of `.parts`
    parallel: ClassVar[bool] = False

    #: where `parallel` is False for what was asked of this one: why, and the remedy
    alone: str = ""

    #: True says that it reads what only the command's own process has, such as its standard input: a run on several hosts refuses it
    reads_command: bool = False

    #: True says that it takes more from outside than it has given, such as all that a socket holds: then an orderly stop calls `halt`
    takes_ahead: bool = False

    #: False says that rows come again in another order behind `seek`: then it has `row_ids`, and a wrapper cannot count them
    ordered: bool = True

    #: False, of one that defines `position`, says that it cannot seek: the broker gives again what `commit` has not acknowledged, such as
    #: a queue. Then `seek` is never called
    seekable: bool = True

    #: True says that `seek` reads all that comes before: then Spark, which reads what the driver has seen once more, reads it from the disk
    seeks_by_reading: bool = False

    #: True says that the key of a tuple is the piece of `pieces` that it is of, such as the name of its file
    keyed_by_piece: bool = False

    #: what it begins with may be gone, or elsewhere, a moment later, such as the newest message, or a log that is rotated: a new run
    #: takes its first checkpoint at once, since one that goes back to its beginning would begin there
    moving_start: bool = False

    #: set by the engine before `open`
    context: Context

    def check(self) -> None:
        """Called once before anything starts; raises SourceError when the source cannot be read."""

    def pieces(self) -> Sequence[int] | None:
        """Return the sizes, in bytes, of all that several readers can share, such as files; None where that is not known or has no end.

        Asked for behind `check`, of a class that is `parallel`. Where all else allows it, a run begins with more readers then.
        """
        return None

    def open(self, context: Context, /) -> None:
        """Open connections and files; called once in the reading process, before `seek`."""

    def read(self, limit: int, /) -> Sequence[tuple[K, V]] | Columns:
        """Up to `limit` (key, value) pairs, or `Columns` of them, without waiting; `[]` when there is nothing yet.

        Raises EndOfStream when there will never be another one.
        """
        raise NotImplementedError(f"{type(self).__name__} must define read(limit)")

    def position(self) -> Any:
        """Return the position of the source after the last read, or the one that was sought; any value that can travel."""
        return None

    def seek(self, position: Any, /) -> None:
        """Go to `position`, before the first read; from there the same tuples come again."""

    def halt(self) -> Any:
        """Take nothing more from outside, since the run stops in order: what was taken still comes with `read`, then EndOfStream.

        Called where the class says `takes_ahead` and there is no `position`. Returns what was taken and makes no tuple yet, such as
        half a line, as a value that can travel; None: nothing.
        """
        return None

    def begin_with(self, rest: Any, /) -> None:
        """Go on behind what `halt` returned in an earlier run; called after `open`, before the first read."""

    def commit(self, position: Any, /) -> None:
        """All tuples up to `position`, as it was behind one of the reads, are durable: a broker may forget them.

        Without checkpoints that is when all that followed from them is processed and sinks have committed; with them, when a checkpoint
        is complete. Of a spout that is not `seekable` what it has read is kept on disk with checkpoints; when its process was killed, the
        next one is told the last position that was kept, right behind `open`. Where positions name messages for good it can leave out
        what the broker gives once more, and nothing comes twice. Where they do not, rows with `row_ids` that are on disk are passed over.
        """

    def due(self) -> float | None:
        """Return the time at which the first tuple of the last read was due, seconds since the epoch.

        None means: when it was read. An open-loop source such as `Paced` says when the tuple
        should have been offered, so that latency counts the time it waited for the engine.
        """
        return None

    def next_due(self) -> float | None:
        """Return the time before which there is nothing to read, seconds since the epoch; None: that is not known.

        Asked for behind a `read`. A spout that knows is not asked in between: a source with a schedule costs nothing while it waits.
        """
        return None

    def held_back(self) -> bool:
        """Return whether the last `read` gave nothing since as much was given as may be open: more comes when some of it is durable.

        Asked for behind a `read` that gave nothing. A source that is held back is not silent: event time waits for it, whatever `idle` says.
        """
        return False

    def row_ids(self) -> Sequence[str] | None:
        """Return a name for each row of the last read that follows from where it stands in the source; None: their numbers are.

        The same row has the same name whenever it is read, and no other has it: sinks drop repeats by it. Asked for behind a `read`
        that gave something, where a sink wants ids.
        """
        return None

    def progress(self) -> tuple[float, float] | None:
        """Return (read, total), in any one unit of measure; None where the total cannot be known."""
        return None

    def lag(self) -> int | None:
        """Return the number of tuples that are due and have not been read, now; None where it cannot be known.

        A policy that scales what follows learns from it how much more would come than is read.
        """
        return None

    def caught_up(self) -> bool:
        """Return whether all has been read that was there when it was opened: another spout with `after` need not wait for its end.

        Asked for behind reads, where one waits. What has no end should say so, or the other one waits for ever.
        """
        return False

    def counters(self) -> Mapping[str, int]:
        """Return how much was left out or cut short so far, by reason; the report shows the sum as the unit's `skipped`."""
        return {}

    def without_pace(self) -> Spout[K, V]:
        """Return the spout to read what is known to be due: itself, where it only waits for its source."""
        return self

    def close(self) -> None:
        """The object leaves this process; not called in a crash."""


class SpoutAround(Spout[K, V]):
    """Base of a spout that reads another one, and tells of the source what that one does."""

    #: the spout within
    spout: Spout[K, V]

    def progress(self) -> tuple[float, float] | None:
        return self.spout.progress()

    def counters(self) -> Mapping[str, int]:
        return self.spout.counters()

    def lag(self) -> int | None:
        return self.spout.lag()

    def held_back(self) -> bool:
        return self.spout.held_back()

    def caught_up(self) -> bool:
        return self.spout.caught_up()

    def close(self) -> None:
        self.spout.close()


def has_position(spout: Spout[Any, Any]) -> bool:
    """Return whether this spout can go on after a restart: its class defines `position`, and it can seek."""
    return is_acknowledged(spout) and spout.seekable


def is_acknowledged(spout: Spout[Any, Any]) -> bool:
    """Return whether this spout is told what is durable: its class defines `position`."""
    return type(spout).position is not Spout.position
