"""A part of a spout on the driver: it is read ahead to learn positions; workers read the tuples from one position to another.

What a spout gives that cannot seek, or only by reading all that comes before, is kept on disk on the way (`esault.state.spool`), and
workers read that.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from esault.errors import PayloadError, SourceError
from esault.flow.operators.user_error import UserError, described
from esault.flow.worker.spout_reader import reads_by
from esault.payload.codec import Codec
from esault.spark.engine.offsets import pack_position, unpack_position
from esault.spark.engine.whole_splits import WholeSplits
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.plan import UnitPlan
from esault.topology.spout import EndOfStream, Spout

__all__ = ["Part", "spools"]

#: tuples behind which the first marks stand, and what part of the tuples before them the gaps between later ones are
FIRST_PIECE, GAPS = 128, 8
#: seconds by which tuples that were due at different times are told apart
TOGETHER = 0.01
#: tuples of a part, and reads, that may be ahead of what was processed where they can be left to a later run
AHEAD_ROWS, AHEAD_READS = 1 << 19, 1 << 11
#: what part of a batch more the last one may have, so that no other follows for a few tuples
LAST = 4
#: bytes, by a look at a tuple of each read, that a part has in a batch at most
AHEAD_BYTES = 512 << 20


def spools(unit: UnitPlan) -> bool:
    """Return whether workers read a spout's tuples from the disk, where the driver keeps them: it cannot seek, or reads all before."""
    return unit.spooled or (unit.spout is not None and unit.spout.seeks_by_reading)


class Part:
    """One part of one spout."""

    def __init__(
        self, unit: str, number: int, spout: Spout[Any, Any], state: list[Any], codec: Codec, again: bool = False
    ) -> None:
        """`state`: as it stands in an offset; `again`: what is read can be read again, by a run that goes on."""
        self.unit = unit
        self.number = number
        self.spout = spout
        self.again = again
        self._codec = codec
        self.rows: int = state[0]
        _, position, self.ended, marks = state
        self._position = unpack_position(position)
        self.done: int = self.rows
        #: how far it has been told, and each read behind that: (rows, position, progress)
        self.told, self._told_position, self._told_end = self.rows, self._position, self.ended
        self._reads: deque[tuple[int, bytes | None, tuple[float, float] | None]] = deque()
        self._marks = deque(marks)
        if not self._marks:
            self._marks.append([self.rows, 0.0, position])
        self._begun: int = self.rows
        self._divided: int = self.rows
        #: of a tuple, on the average of late
        self.row_bytes = 64.0
        #: how much of how much was told, and how much was left out, as the spout said last
        self.progress: tuple[float, float] | None = None
        self.skipped = 0
        self._opened = False
        #: tuples behind which it has caught up
        self._caught_up: int | None = None

    def open(self, context: Context) -> None:
        """Open it and go to where it was. Raises UserError."""
        self.spout.context = context
        self._opened = True
        self._call(lambda: self.spout.open(context), "open")
        if self._position is not None:
            position = self._codec.unpack(self._position)
            self._call(lambda: self.spout.seek(position), "seek")
        elif isinstance(self.spout, WholeSplits):
            beginning = self._call(self.spout.beginning, "splits")
            if beginning is not None:
                self._position = self._codec.pack_value(beginning)
                self._marks[0][2] = pack_position(self._position)

    def read(self, most: int, now: float, piece: int) -> int:
        """Read at most so many tuples; how many there were. Behind each `piece` another worker may begin. Raises UserError."""
        try:
            rows = self._call(lambda: getattr(self.spout, reads_by(type(self.spout)))(most), "read")
        except EndOfStream:
            self.ended = True
            return 0
        if rows is None:
            raise UserError(
                f"unit {self.unit!r}: {type(self.spout).__name__}.read returned None; return a list of (key, value) pairs, [] "
                "when there is nothing yet, and raise EndOfStream when there will never be more"
            )
        count = len(rows)
        if not count:
            return 0
        first = rows[0] if not isinstance(rows, Columns) else rows.values[0] if type(rows.values) is list else None
        if first is not None:
            with contextlib.suppress(PayloadError):  # the worker says what is wrong with it
                self.row_bytes += (len(self._codec.pack_value(first)) - self.row_bytes) / 8
        due = self.spout.due()
        due = now if due is None else due
        divide = self.rows - self._divided >= piece
        if divide or due - self._marks[-1][1] >= TOGETHER:
            if divide:
                self._divided = self.rows
            self._marks.append([self.rows, round(due, 4), pack_position(self._position) if divide else None])
        self.rows += count
        position = self._call(self.spout.position, "position")
        self._position = self._codec.pack_value(position)
        self._reads.append((self.rows, self._position, None))
        return count

    def tell(self, most: int | None) -> bool:
        """Have `state` say what was read, so far that a batch has at most so many tuples, or one read; None: all. Whether it says more."""
        before = self.told, self._told_end
        if most is not None and self.ended and self.rows - self.done <= most + most // LAST:
            most = None  # what little is left would cost a batch of its own
        while self._reads and (most is None or self._reads[0][0] - self.done <= most or self.told <= self.done):
            self.told, self._told_position, self.progress = self._reads.popleft()
        self._told_end = self.ended and not self._reads
        return (self.told, self._told_end) != before

    def piece(self, most: int) -> int:
        """Return how many tuples there are to the next mark, `most` at most. The first ones are read before it is known how many a batch has:
        marks are near each other there, so that several workers begin with the first batch, and none is new when there is much to do.
        """
        return min(most, max(FIRST_PIECE, (self.rows - self._begun) // GAPS))

    def batch_rows(self, ahead: int) -> int:
        """Return how many of its tuples a batch has at most, where those of others are `ahead`."""
        return min(ahead, int(AHEAD_BYTES / self.row_bytes) + 1)

    def room(self, rows: int, next_rows: int) -> int:
        """Return how many tuples may be read, where a batch has so many at most, and the next one."""
        most, ahead = self.batch_rows(rows), self.batch_rows(next_rows)
        limit: int = most + ahead
        if self.again:
            limit += ahead // LAST  # whether that is the end is known then
        if self.again and len(self._reads) < AHEAD_READS:
            # Spark takes seconds to start, and for each batch: a source that is slower than the workers is read meanwhile.
            limit = max(limit, self.batch_rows(AHEAD_ROWS))
        return min(most, limit - self.rows + self.done)

    def drain(self, rows: int, next_rows: int) -> bool:
        """Read no more: the last batch has what the next two might have had; whether `state` says more. What was read behind that is left
        to a later run."""
        if not self.again:
            return self.tell(None)
        more = self.tell(self.batch_rows(rows) + self.batch_rows(next_rows))
        if self._reads:
            self._reads.clear()
            self.rows, self._position, self.ended = self.told, self._told_position, False
        return more

    def is_over(self) -> bool:
        """Return whether all that it had, or what was there when it was opened, is in a batch that is committed. Raises UserError."""
        if self.ended:
            return self.done == self.rows
        if self._caught_up is None and self._call(self.spout.caught_up, "caught_up"):
            self._caught_up = self.rows
        return self._caught_up is not None and self.done >= self._caught_up

    def ask_progress(self) -> None:
        """Have the spout say how far it is, and what it has left out. Raises UserError."""
        self.skipped = sum(self._call(self.spout.counters, "counters").values())
        progress = self._call(self.spout.progress, "progress")
        if self._reads:
            self._reads[-1] = (*self._reads[-1][:2], progress)
        else:
            self.progress = progress

    def close(self) -> None:
        """Close it, if it was opened; an error is told and ends nothing, since all has been read."""
        if not self._opened:
            return
        self._opened = False
        try:
            self.spout.close()
        except Exception as error:
            print(f"unit {self.unit!r}, close: {described(error)}", file=sys.stderr)

    def processed(self, rows: int, position: bytes | None) -> None:
        """All before this is in an epoch that was committed."""
        self.done = max(self.done, rows)
        while len(self._marks) > 1 and self._marks[1][0] <= self.done:
            self._marks.popleft()
        if position is not None:
            value = self._codec.unpack(position)
            self._call(lambda: self.spout.commit(value), "commit")

    def state(self) -> list[Any]:
        """As it stands in an offset."""
        marks = [list(mark) for mark in self._marks if mark[0] <= self.told]
        return [self.told, pack_position(self._told_position), self._told_end, marks]

    def _call(self, call: Callable[[], Any], hook: str) -> Any:
        try:
            return call()
        except EndOfStream:
            raise
        except SourceError as error:
            raise UserError(f"unit {self.unit!r}: {error}") from error
        except Exception as error:
            raise UserError(f"unit {self.unit!r}, {hook}: {described(error)}") from error
