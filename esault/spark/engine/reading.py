"""Spouts on the driver: they are read ahead to learn positions; workers read the tuples from one position to another.

What a spout gives that cannot seek, or only by reading all that comes before, is kept on disk on the way (`esault.state.spool`), and
workers read that.

It is one module of over 300 lines: reading ahead and reading again must agree on one kind of positions.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from esault.errors import PayloadError, SourceError
from esault.flow.operators.user_error import UserError, described
from esault.flow.worker.spout_reader import reads_by
from esault.payload.codec import Codec
from esault.spark.engine.batch_size import BatchSize
from esault.spark.engine.offsets import Offset, pack_position, publish, unpack_position
from esault.spark.engine.whole_splits import WholeSplits
from esault.state.spool import Spooled, spooled
from esault.topology.columns import Columns
from esault.topology.context import Context, logger_of
from esault.topology.plan import Plan, UnitPlan
from esault.topology.spout import EndOfStream, Spout

__all__ = ["Part", "Reading", "spools"]

#: tuples that a spout is asked for at a time
READ_ROWS = 2048
#: tuples behind which the first marks stand, and what part of the tuples before them the gaps between later ones are
FIRST_PIECE, GAPS = 128, 8
#: seconds by which tuples that were due at different times are told apart
TOGETHER = 0.01
#: how often, at most, it is told what was read: seconds between, and of how many times the processor's seconds that it takes
TELL_EVERY, TELL_SHARE = 0.02, 20.0
#: tuples of a part, and reads, that may be ahead of what was processed where they can be left to a later run
AHEAD_ROWS, AHEAD_READS = 1 << 19, 1 << 11
#: what part of a batch more the last one may have, so that no other follows for a few tuples
LAST = 4
#: bytes, by a look at a tuple of each read, that a part has in a batch at most
AHEAD_BYTES = 512 << 20
#: seconds for which what was read waits for more, where more comes, so that no batch is for a few tuples with many behind them
HOLD = 0.2
#: seconds for which it waits where a whole batch will be there by then, as it seems from what came so far
HOLD_WHOLE = 1.0


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


class Reading:
    """All spouts of a run, read in a thread of the driver's."""

    def __init__(
        self,
        *,
        plan: Plan,
        plans: Callable[[], Plan],
        run: str,
        run_dir: str,
        folder: Path,
        state: Path,
        offset: Offset,
        lineage: str = "",
        generation: int = 0,
        between: float = 0.0,
    ) -> None:
        """`folder`: where offsets are published; `state`: of spools; `plans` gives a plan with spouts of its own; `lineage`: of the state;
        `between`: seconds between the beginnings of two batches, unless a whole one waits."""
        self._folder = folder
        self._codec = Codec()
        self._offset = offset
        self._generation = generation
        self._pulses = {u.name: every for u in plan.units.values() if (every := _pulse_every(u)) is not None}
        self._due = dict.fromkeys(self._pulses, 0.0)
        self.parts: list[Part] = []
        self._contexts: list[Context] = []
        for name, states in offset["parts"].items():
            for number, part in enumerate(states):
                unit = plans().units[name]
                again = not unit.spooled
                if spools(unit):
                    unit = spooled(unit, state, number)
                assert unit.spout is not None
                self.parts.append(Part(name, number, unit.spout, part, self._codec, again))
                if not (isinstance(unit.spout, Spooled) or offset["end"]):
                    self.parts[
                        -1
                    ].ended = False  # the run goes on, and this source can be asked again: it may have grown
                self._contexts.append(
                    Context(
                        name,
                        sub_unit=number,
                        logger=logger_of(unit.spout),
                        part=number,
                        parts=len(states),
                        run=run,
                        lineage=lineage or run,
                        run_dir=run_dir,
                    )
                )
        self.size = BatchSize(between)
        self._between = between
        #: from when on, by the monotonic clock, the next batch may begin
        self._opens = 0.0
        #: part -> how far it was in the last epoch
        self._ends = {(part.unit, part.number): part.rows for part in self.parts}
        self._lock = threading.Lock()
        self._processed: list[tuple[str, int, int, bytes | None]] = []
        self._draining = self._pausing = False
        #: the processor's seconds that it took when it was told last
        self._telling = 0.0
        #: something may be said that is not published yet
        self._untold = False
        #: since when what was read waits for more, and how much each part had read then
        self._since: float | None = None
        self._had: list[int] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        #: spouts are open, or `_refused` says why not; they are to be read
        self._opened, self._begins = threading.Event(), threading.Event()
        self._refused: BaseException | None = None
        #: why it cannot go on; for people
        self.failure: str | None = None
        #: all that will ever be read has been published
        self.over = threading.Event()

    # asked from other threads ----------------------------------------------------------------------

    def open(self) -> None:
        """Open all spouts, in the thread that will read them: what they open may be of that thread alone, as a connection of SQLite is.

        Raises UserError; then all that was opened is closed.
        """
        self._thread = threading.Thread(target=self._live, name="esault-spouts", daemon=True)
        self._thread.start()
        self._opened.wait()
        if self._refused is not None:
            raise self._refused

    def start(self) -> None:
        """Read."""
        self._begins.set()

    def drain(self, pause: bool) -> None:
        """Read no more. Units finish behind what was read, unless it is a pause."""
        self._pausing = pause  # before the other: the thread that reads looks at both
        self._draining = True

    def processed(
        self,
        ends: Mapping[tuple[str, int], tuple[int, bytes | None]],
        seconds: float | None = None,
        worked: tuple[float, float] | None = None,
    ) -> None:
        """An epoch was committed: how far parts have come with it, and, where it was computed now, what its batch and its workers took."""
        with self._lock:
            self._processed += [(unit, part, rows, position) for (unit, part), (rows, position) in ends.items()]
            had = max((rows - self._ends[part] for part, (rows, _) in ends.items()), default=0)
            self._ends |= {part: rows for part, (rows, _) in ends.items()}
            if seconds is not None:
                self.size.took(had, any(p.rows - p.done >= self.size.rows for p in self.parts), seconds, worked)

    @property
    def ending(self) -> bool:
        """The end was published: units finish behind it."""
        return bool(self._offset["end"])

    def skipped(self, unit: str) -> int:
        """Return how many records of the unit's sources were left out or cut short."""
        return sum(part.skipped for part in self.parts if part.unit == unit)

    def progress(self, unit: str) -> tuple[float, float] | None:
        """Return (read, total) of the unit's sources, in any one unit of measure; None where it cannot be known."""
        known = [part.progress for part in self.parts if part.unit == unit]
        if not known or any(p is None for p in known):
            return None
        return sum(p[0] for p in known if p), sum(p[1] for p in known if p)

    def waiting(self, unit: str) -> int:
        """Tuples that were read and are not processed."""
        return sum(part.rows - part.done for part in self.parts if part.unit == unit)

    def stop(self) -> None:
        """No more; spouts are closed."""
        self._stop.set()
        self._begins.set()
        if self._thread is not None:
            self._thread.join(10.0)

    # the thread ------------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            for part, context in zip(self.parts, self._contexts):
                if not (part.ended and isinstance(part.spout, Spooled)):  # opened anew it might begin anew
                    part.open(context)
        except BaseException as error:
            self._close()
            self._refused = error
            return
        finally:
            self._opened.set()
        self._begins.wait()
        self._run()

    def _run(self) -> None:
        try:
            due, happened = 0.0, False
            while not self._stop.is_set() and not self.over.is_set():
                now = time.monotonic()
                told, shut = self._offset, self.shut(now)
                tell = now >= due and not self.waits(now, happened) and not shut
                happened = self.step(time.time(), tell, not shut)
                if self._offset is not told:
                    self._opens = now + self._between
                if not happened:
                    self._stop.wait(0.002)
                elif tell:
                    due = now + min(HOLD, max(TELL_EVERY, TELL_SHARE * self._telling))
            while not self._stop.wait(0.05):
                self._settle()
            self._settle()  # what was committed last
        except UserError as error:
            self.failure = str(error)
        except Exception as error:
            self.failure = described(error)
        finally:
            self._close()

    def waits(self, now: float, happened: bool) -> bool:
        """Return whether what was read waits for more: where the last step read some, or none since a whole batch was there that is over now."""
        if not (self._settle() or happened):
            return False
        if any(part.rows - part.done >= part.batch_rows(self.size.rows) for part in self.parts):
            return False
        if self._since is None:
            self._since, self._had = now, [part.rows for part in self.parts]
        waited = now - self._since
        return waited < HOLD or waited + self._whole_in(waited) < HOLD_WHOLE

    def _whole_in(self, waited: float) -> float:
        """Return after how many seconds a part has read a whole batch, at the speed of so many seconds."""
        speeds = [(part, (part.rows - had) / waited) for part, had in zip(self.parts, self._had)]
        lacking = [(part.batch_rows(self.size.rows) - (part.rows - part.done)) / v for part, v in speeds if v > 0]
        return min(lacking, default=HOLD_WHOLE)

    def shut(self, now: float) -> bool:
        """Return whether the next batch may not begin yet: so soon after the last one, and with less than it may have."""
        return now < self._opens and all(p.rows - p.told < p.batch_rows(self.size.rows) for p in self.parts)

    def step(self, now: float, tell: bool = True, pulse: bool = True) -> bool:
        """Read a little of each part and publish it, if `tell` says so or it is the last; whether there was anything.

        `pulse`: units whose time has come are called, too.
        """
        self._settle()
        happened = False
        draining = self._draining  # once: it may change while this step publishes, and then the next one is the last
        if not draining:
            for part in self.parts:
                # While a batch is processed the next one is read, so that it is whole when its turn comes.
                room = part.room(self.size.rows, self.size.next_rows)
                if not part.ended and room > 0:
                    before, piece = part.ended, part.piece(self.size.piece)
                    happened = (
                        part.read(min(READ_ROWS, room, piece), now, piece) > 0 or part.ended != before or happened
                    )
                    part.ask_progress()
        if tell or draining or all(part.ended for part in self.parts):
            for part in self.parts:
                if draining:
                    self._untold = part.drain(self.size.rows, self.size.next_rows) or self._untold
                else:
                    self._untold = part.tell(part.batch_rows(self.size.rows)) or self._untold
        ended = all(part.ended and part.told == part.rows for part in self.parts)
        end = self._offset["end"] or ended or (draining and not self._pausing)
        pulses = self._pulses_due(now) if pulse and not end else {}
        if self._untold or pulses or end != self._offset["end"]:
            self._publish(pulses, end, now)
            self._untold, self._since = False, None
        if end or draining:
            self.over.set()
        return happened

    def _pulses_due(self, now: float) -> dict[str, Any]:
        due = {}
        for unit, every in self._pulses.items():
            if not self._due[unit]:
                self._due[unit] = now + every
            if now >= self._due[unit]:
                # Those that could not come in time are not made up for.
                self._due[unit] = max(self._due[unit] + every, now)
                number, _ = self._offset["pulses"].get(unit, (0, 0.0))
                due[unit] = [number + 1, now]
        return due

    def _publish(self, pulses: dict[str, Any], end: bool, now: float) -> None:
        began = time.thread_time()
        parts: dict[str, list[Any]] = {}
        for part in self.parts:
            settle = getattr(part.spout, "settle", None)
            if settle is not None:  # what workers read must be on the disk
                settle()
            parts.setdefault(part.unit, []).append(part.state())
        self._offset = {"parts": parts, "pulses": {**self._offset["pulses"], **pulses}, "end": end, "now": now}
        self._offset["generation"] = self._generation
        publish(self._folder, self._offset)
        # Not by the clock: where the processor was another's for half a second, nothing was told for ten.
        self._telling = time.thread_time() - began

    def _settle(self) -> bool:
        """Take note of what was committed; whether there was any."""
        with self._lock:
            processed, self._processed = self._processed, []
        if processed:
            self._since = None  # a batch begins
        for unit, number, rows, position in processed:
            for part in self.parts:
                if (part.unit, part.number) == (unit, number):
                    part.processed(rows, position)
        return bool(processed)

    def _close(self) -> None:
        for part in self.parts:
            part.close()


#: seconds that a timer of processing time is late at most, besides what a batch takes
_TIMERS_EVERY = 0.5


def _pulse_every(unit: UnitPlan) -> float | None:
    """Seconds between two times at which all tasks of a unit are called though no tuple came."""
    times = [unit.tick_every] if unit.tick_every is not None else []
    times += [unit.expire_after / 4] if unit.expire_after is not None else []
    times += [_TIMERS_EVERY] if unit.timers or (unit.window is not None and unit.window.clocked) else []
    return min(times) if times else None
