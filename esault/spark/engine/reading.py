"""Spouts on the driver, read in a thread: what they gave is told to Spark, batch by batch.

It is one module of over 300 lines: what is read ahead and what is told of it take turns in one loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from esault.flow.operators.user_error import UserError, described
from esault.payload.codec import Codec
from esault.spark.engine.batch_size import BatchSize
from esault.spark.engine.offsets import Offset, publish
from esault.spark.engine.source_part import Part, spools
from esault.state.spool import Spooled, spooled
from esault.topology.context import Context, logger_of
from esault.topology.plan import Plan, UnitPlan

__all__ = ["Reading"]

#: tuples that a spout is asked for at a time
READ_ROWS = 2048
#: how often, at most, it is told what was read: seconds between, and of how many times the processor's seconds that it takes
TELL_EVERY, TELL_SHARE = 0.02, 20.0
#: seconds for which what was read waits for more, where more comes, so that no batch is for a few tuples with many behind them
HOLD = 0.2
#: seconds for which it waits where a whole batch will be there by then, as it seems from what came so far
HOLD_WHOLE = 1.0


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
        #: name of a spout -> those that are read before
        self._after = {unit.name: unit.after for unit in plan.units.values() if unit.after}
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
                if not part.ended and room > 0 and self._has_its_turn(part):
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

    def _has_its_turn(self, part: Part) -> bool:
        """Return whether all that stands before this one has ended or caught up, in a batch that is committed."""
        before = self._after.get(part.unit, ())
        return not before or all(p.is_over() for p in self.parts if p.unit in before)

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
