"""The user's spout as the engine asks it: rows become columns, and errors say which unit and hook they are of."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from esault.errors import SourceError
from esault.flow.operators.batch_emitter import BatchEmitter
from esault.flow.operators.emitter import Emitter
from esault.flow.operators.user_error import ConnectorError, UserError, described
from esault.flow.watermark.split_clock import OpenSplits
from esault.flow.worker.split_readers import SplitReaders
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.plan import UnitPlan
from esault.topology.split_source import SplitSource
from esault.topology.spout import EndOfStream, Spout, has_position, is_acknowledged
from esault.topology.windowed_spout import WindowedSpout

__all__ = ["SpoutReader", "reads_by"]

_STOPPING = (KeyboardInterrupt, GeneratorExit)
#: types of which only those of two are left once all rows are known to have one length: to look at each row costs as much as the rest
_PAIRS = frozenset({tuple, list})


def reads_by(kind: type[Any]) -> str:
    """Return "read", or "read_columns" where the very class that defines `read` has that, too: pairs are made for nothing then.

    It is a hook of the sources in the box: a method of that name in a user's spout may be anything, and its `read` may return `Columns`.
    """
    definer = next(cls for cls in kind.__mro__ if "read" in vars(cls))
    return "read_columns" if "read_columns" in vars(definer) and definer.__module__.startswith("esault.") else "read"


class SpoutReader:
    """The caller of the user's spout: rows, position, progress and lag. All of it raises UserError."""

    def __init__(self, plan: UnitPlan, context: Context, emitter: Emitter, splits: OpenSplits | None = None) -> None:
        """`splits`: of a source of splits, those that are open."""
        assert plan.spout is not None
        self._unit = plan.name
        self._emitter = emitter
        #: the user's, or what stands for it
        self.spout = plan.spout
        self.splits: SplitReaders | None = None
        if isinstance(plan.spout, SplitSource):
            assert splits is not None
            self.spout = self.splits = SplitReaders(plan.spout, splits)
        self.spout.context = context
        self.seekable = has_position(self.spout)
        self._acknowledged = is_acknowledged(self.spout)
        self._unscheduled = type(self.spout).next_due is Spout.next_due
        self._free = type(self.spout).held_back is Spout.held_back
        self._read = reads_by(type(self.spout))
        self._numbered = not self.seekable or type(self.spout).row_ids is Spout.row_ids
        #: the spout, where it collects windows
        self.windows = self.spout if isinstance(self.spout, WindowedSpout) else None
        #: rows read so far, by this sub-unit and those whose place it took
        self.rows = 0
        self._open = True
        #: what it said last of its progress and its lag
        self._said: tuple[tuple[float, float] | None, int | None, int] = (None, None, 0)
        self.call(lambda: self.spout.open(context), "open")

    def call(self, call: Callable[[], Any], hook: str) -> Any:
        """Call the user's code. Raises EndOfStream as it is, and UserError for all other errors."""
        try:
            return call()
        except EndOfStream:
            raise
        except _STOPPING:
            raise
        except SourceError as error:
            raise ConnectorError(f"unit {self._unit!r}: {error}") from error
        except StopIteration as error:  # as sources of other engines say it, and `next` of what is empty
            raise UserError(
                f"unit {self._unit!r}: {type(self.spout).__name__}.{hook} raised StopIteration; at the end of the source raise "
                "EndOfStream (from esault import EndOfStream)"
            ) from error
        except BaseException as error:
            if self.splits is not None and hook == "read":
                hook = f"read of split {self.splits.asked!r}"
            raise ConnectorError(f"unit {self._unit!r}, {hook}: {described(error)}") from error

    def read(self, limit: int) -> tuple[Any, Any] | None:
        """Return columns of keys and values, or None where there is nothing yet. Raises EndOfStream as well."""
        rows = self.call(lambda: getattr(self.spout, self._read)(limit), "read")
        if rows is None:
            raise UserError(
                f"unit {self._unit!r}: {type(self.spout).__name__}.read returned None; return a list of (key, value) "
                "pairs, [] when there is nothing yet, and raise EndOfStream when there will never be more"
            )
        if not rows:
            return None
        if isinstance(rows, Columns):
            assert isinstance(self._emitter, BatchEmitter)
            return self._emitter.columns(rows.keys, rows.values)
        try:
            keys, values = zip(*rows, strict=True)
        except (TypeError, ValueError):
            raise self._no_pairs(rows) from None
        if not self._emitter.trusted:
            if not _PAIRS.issuperset(map(type, rows)) and not all(map(_is_pair, rows)):
                raise self._no_pairs(rows)
            for key, value in zip(keys, values):
                self._emitter.check(key, value)
        return keys, values

    def _no_pairs(self, rows: Sequence[Any]) -> UserError:
        wrong = next((row for row in rows if not _is_pair(row)), rows[0])
        return UserError(
            f"unit {self._unit!r}: {type(self.spout).__name__}.read must return (key, value) pairs, got {reprlib.repr(wrong)}"
        )

    def next_due(self) -> float | None:
        """Return the time before which there is nothing to read, as far as the spout knows."""
        return None if self._unscheduled else self.call(self.spout.next_due, "next_due")

    def held_back(self) -> bool:
        """Return whether the spout gives no more until what it has given is durable."""
        return not self._free and bool(self.call(self.spout.held_back, "held_back"))

    def caught_up(self) -> bool:
        """Return whether what was there when it was opened has been read."""
        return bool(self.call(self.spout.caught_up, "caught_up"))

    def row_ids(self, count: int) -> Sequence[str] | None:
        """Return the names of the rows of the last read; None: they are numbered in the order of reading."""
        if self._numbered:
            return None
        ids = self.call(self.spout.row_ids, "row_ids")
        if ids is not None and len(ids) != count:
            raise UserError(
                f"unit {self._unit!r}: {type(self.spout).__name__}.row_ids must return one name for each of the {count} rows of the last "
                f"read, got {len(ids)}"
            )
        return ids  # type: ignore[no-any-return]

    def seek(self, position: Any, rows: int) -> None:
        """Go on at this position, behind so many rows."""
        self.rows = rows
        self.call(lambda: self.spout.seek(position), "seek")

    def place(self) -> tuple[Any, int] | None:
        """Return the position behind what was read, and the number of rows before it; None: it has none."""
        return (self.call(self.spout.position, "position"), self.rows) if self._acknowledged else None

    def settle(self) -> None:
        """Have what stands for the spout make durable what it has read, before a checkpoint says so."""
        settle = getattr(self.spout, "settle", None) if self.seekable else None
        if settle is not None:
            settle()

    def halt(self) -> bool:
        """Have the spout take no more; return whether what it has taken already still comes. What makes no tuple is told."""
        if self.seekable or not self.spout.takes_ahead:
            return False
        rest = self.call(self.spout.halt, "halt")
        if rest is not None:
            self.spout.context.logger.warning(
                "what was taken and makes no whole tuple is not read, since there is no state folder (--checkpoint): %s",
                reprlib.repr(rest),
            )
        return True

    def put_aside(self) -> None:
        """Have what stands for the spout keep what it has taken, before the run is paused."""
        put_aside = getattr(self.spout, "put_aside", None) if self.seekable else None
        if put_aside is not None:
            self.call(put_aside, "halt")

    def commit(self, position: Any) -> None:
        """Tell the spout that all before this position is durable."""
        self.call(lambda: self.spout.commit(position), "commit")

    def ask(self) -> tuple[tuple[float, float] | None, int | None, int]:
        """Return its progress, its lag, and how much it has left out; once it is closed, those that it said last."""
        if self._open:
            skipped = sum(self.call(self.spout.counters, "counters").values())
            self._said = (self.call(self.spout.progress, "progress"), self.call(self.spout.lag, "lag"), skipped)
        return self._said

    def give_up(self) -> None:
        """Ask nothing any more: the spout is closed, or has failed."""
        self._open = False

    def close(self) -> None:
        """Close the spout; what goes wrong is only printed."""
        self._open = False
        try:
            self.spout.close()
        except _STOPPING:
            raise
        except BaseException as error:
            print(f"unit {self._unit!r}, close: {described(error)}", file=sys.stderr)


def _is_pair(row: Any) -> bool:
    """Return whether it is (key, value): text that is two long is none, nor is a dict of two fields."""
    return hasattr(row, "__len__") and not isinstance(row, (str, bytes, Mapping, Set)) and len(row) == 2
