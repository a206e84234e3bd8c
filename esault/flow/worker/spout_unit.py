"""The sub-unit of a spout: reads roots while its window has credit.

It is one module of over 300 lines: reading, its end, checkpoints and what is told of them share one turn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from esault.flow.operators.user_error import UserError
from esault.flow.worker.catching_up import CatchingUp
from esault.flow.worker.environment import Environment
from esault.flow.worker.phase import Phase
from esault.flow.worker.rate_cap import RateLimit
from esault.flow.worker.read_pace import ReadPace
from esault.flow.worker.spout_reader import SpoutReader
from esault.flow.worker.sub_unit import SubUnit
from esault.messages.checkpoint import Checkpoint, Completed
from esault.messages.control import BeginReading, Build, CaughtUp, Drain, ReleaseSlices
from esault.messages.status import MicroBatch, Status
from esault.payload.column import is_array
from esault.topology.plan import UnitPlan
from esault.topology.spout import EndOfStream, Spout

if TYPE_CHECKING:
    from esault.flow.worker.source_splits import SourceSplits

__all__ = ["SpoutSubUnit"]


class SpoutSubUnit(SubUnit):
    """A sub-unit of a spout: it reads from the user's spout; each read is a root."""

    def __init__(
        self, build: Build, plan: UnitPlan, environment: Environment, splits: type[SourceSplits] | None
    ) -> None:
        super().__init__(build, plan, environment)
        self.handlers |= {Drain: [self._on_drain], ReleaseSlices: [self._on_release], BeginReading: [self._on_begin]}
        self.reading = SpoutReader(plan, self.context, self.emitter, self.outputs.splits)
        #: what rows are named by: a source that can seek gives a successor the same rows, so they keep their names
        self.source: int | str = build.source if self.reading.seekable and build.source else build.incarnation
        #: rows that must have been read before a drain ends the reading
        self._drain_at = 0
        #: a drain waits until the spout has given what it had taken from outside
        self._emptying = False
        self._windows = self.reading.windows
        self._micro_batch: MicroBatch | None = None
        #: others are read first; the source has given all that it has
        self.waits, self.exhausted = bool(plan.after), False
        #: the run ends with a checkpoint that is on: nothing more is read
        self.halted = False
        #: its slices have been released
        self._released = False
        self.pace = ReadPace()
        self.catching_up = CatchingUp(self.reading, self.roots, self._say_caught_up) if plan.awaited else None
        #: the run goes on from a checkpoint behind the end of this source, and has not been given more yet
        self._ended_before = self.lifecycle.elements_finished
        self.told: Any = None
        self.exactly = build.settings.delivery == "eo"
        #: where the cuts of checkpoints went that are not known to be complete
        self.cuts: dict[int, Any] = {}
        #: when the window was found closed or a receiver full, and for how long it has been so before
        self._closed_at: float | None = None
        #: the last read gave nothing, for the source waits until what it gave is durable
        self._held_back = False
        #: rows of the last root
        self._last_rows = 0
        self._backpressured = 0.0
        self.rate_limit = RateLimit(lambda: self.reading.rows)
        #: of a source that is read in splits
        self.splits = None if splits is None else splits(self)
        if build.position is not None:
            position, rows, *times = self.codec.unpack(build.position)
            self.roots.committed = self.told = (position, rows)
            if times:
                self.outputs.begin_at(times[0])
            self.reading.seek(position, rows)

    @property
    def spout(self) -> Spout[Any, Any]:
        """The user's spout, or what stands for it."""
        return self.reading.spout

    def _work(self, now: float) -> bool:
        roots = self.roots
        if self.tracked and roots.overdue and roots.replay_one(now):
            return True
        if self.halted:
            return False
        if self.exhausted or self._drained:
            if self.lifecycle.phase is Phase.RUNNING and not roots.open_count:
                self.ending.input_ended()
            return False
        if self.waits or now < self.pace.at:
            return False
        if self.tracked and not roots.credit:
            self._blocked(now)
            return False
        if self._closed_at is not None:
            self._backpressured += now - self._closed_at
            self._closed_at = None
            if self.outputs.splits is not None:
                self.outputs.splits.go_on(now)
        limit = roots.size.rows
        if self.outputs.sinks and (most := self.outputs.sinks.most_rows(self._last_rows)):
            limit = min(limit, most)
        if self.rate_limit.cap is not None:
            limit = self.rate_limit.allowed(now, limit)
            if not limit:
                return False
        try:
            read = self.reading.read(limit)
        except EndOfStream:
            self.exhausted = True
            return True
        if read is None:
            if self._emptying:
                self.exhausted = True
                return True
            self.pace.nothing(now, self.reading.next_due())
            self._held_back = self.watermarks is not None and self.reading.held_back()
            return False
        keys, values = read
        self._last_rows = len(keys)
        if type(keys) is not tuple and (is_array(keys) or is_array(values)):
            roots.size.arrays(self.settings.root_array_rows)
        ids = None
        if self.plan.wants_id:
            # What overtakes others keeps the name that it has by its place of arrival.
            first = self.reading.rows if self._windows is None else self._windows.first()
            named = self.reading.row_ids(len(keys))
            ids = [f"{self.source}:{i}" for i in (range(first, first + len(keys)) if named is None else named)]
        if self._ended_before:
            self._tell_grown()
        self.reading.rows += len(keys)
        position = self.reading.place()
        due = self.reading.call(self.reading.spout.due, "due")
        done = self.clock()
        pending = roots.pending
        roots.open([("", keys, values, ids)], now if due is None else due, position, done)
        after = self.clock()
        if roots.pending == pending:
            roots.size.at_once(after - now, len(keys))
        self.pace.some(now, len(keys), limit, self.reading.next_due())
        self.metrics.busy += after - now
        if self.metrics.leaf:
            self.metrics.durations.end_to_end.record(after - (now if due is None else due), len(keys))
        return True

    def _blocked(self, now: float) -> None:
        if self._closed_at is None and now >= self.pace.at:  # else it rests anyway
            self._closed_at = now
            if self.outputs.splits is not None:
                self.outputs.splits.hold(now)

    def _tell_grown(self) -> None:
        """Warn that a checkpoint holds the end of this source, and it gives more all the same."""
        self._ended_before = False
        self.context.logger.warning(
            "it had ended before the checkpoint that the run goes on from, and gives more tuples now: they are processed, but what had "
            "finished behind it is not finished again, and they are late in windows; begin anew with --restart to have all in one"
        )

    def _collect(self) -> None:
        """Collect windows, also while none of their tuples can be taken; a drain ends them."""
        assert self._windows is not None
        if self.waits or self.halted or not self.lifecycle.phase.works or self.lifecycle.phase is Phase.FINISHED:
            return
        if self.draining and self.reading.rows >= self._drain_at:
            self._windows.drain()
        self.reading.call(self._windows.collect, "read")

    def _tell_window(self) -> None:
        """Report at once what has become of released slices."""
        if self._micro_batch != (now := self._window_now()):
            self._micro_batch = now
            self.outbox.append(self.status())

    def _window_now(self) -> MicroBatch | None:
        if self._windows is None:
            return None
        window, slices = self._windows.closed() or (-1, ())
        return MicroBatch(window, slices, self._windows.emitting() or (self.tracked and self.roots.pending > 0))

    def _on_release(self, message: ReleaseSlices) -> None:
        if self._windows is not None:
            self._released = True
            self._windows.release(message.window, message.slices)
            self.pace.at = 0.0

    def _turn(self) -> bool:
        if self._windows is not None:
            self._collect()
        worked = super()._turn()
        if self._released:
            self._tell_window()
        if self.catching_up is not None and self.lifecycle.phase is Phase.RUNNING:
            self.catching_up.look()
        committed = self.told if self.exactly else self.roots.committed
        if committed is not self.told:
            self.told = committed
            self.reading.commit(None if committed is None else committed[0])
        return worked

    def _say_caught_up(self) -> None:
        self.outbox.append(CaughtUp(self.incarnation, 0 if self.splits is None else self.splits.assigned))

    def _on_begin(self, message: BeginReading) -> None:
        self.waits = False

    def _on_drain(self, message: Drain) -> None:
        self.draining, self.waits = True, False
        self._drain_at = message.read if self.reading.seekable else 0
        if not self.exhausted and self.lifecycle.phase.works:
            try:
                self._emptying = self.reading.halt()
            except UserError as error:
                self.fail(str(error), error)
            self.pace.at = 0.0

    @property
    def _drained(self) -> bool:
        if self.splits is not None:
            return self.draining and self.splits.drained
        # What collects windows ends by itself, when what it has collected has gone out.
        return self.draining and self.reading.rows >= self._drain_at and self._windows is None and not self._emptying

    def _on_checkpoint(self, message: Checkpoint) -> None:
        if message.last and not self.halted:
            self.halted = True
            try:
                self.reading.put_aside()
            except UserError as error:
                self.fail(str(error), error)
        super()._on_checkpoint(message)

    def _snap(self, number: int, sure: bool) -> None:
        # What was read last stands before the cut: its frames went out before.
        self.reading.settle()
        cut = self.reading.place() if self.reading.seekable else None
        if cut is None:
            self.checkpoints.snapped(number)
            return
        self.cuts[number] = cut[0]
        times = self.outputs.times()
        self.checkpoints.snapped(number, position=self.codec.pack_value((*cut, times) if times else cut))

    def _on_completed(self, message: Completed) -> None:
        super()._on_completed(message)
        for number in sorted(n for n in self.cuts if n <= message.number):
            position = self.cuts.pop(number)
            if number == message.number and self.lifecycle.phase is not Phase.FAILED:
                try:
                    self.reading.commit(position)
                except UserError as error:
                    self.fail(str(error), error)

    def wake_at(self) -> float:
        at = super().wake_at()
        done = self.halted or self.exhausted or self._drained or self.waits
        if self.splits is not None:
            at = min(at, self.splits.wake_at())
        # Blocked, it is woken when there is room.
        if self.lifecycle.phase.works and not done and self.roots.credit and not self.outputs.blocked:
            at = min(at, self.rate_limit.wake_at(self.pace.at))
        return at

    def _tell_watermark(self, now: float) -> None:
        assert self.watermarks is not None
        nothing = self.pace.resting or now < self.pace.at  # a source with a schedule is not asked before its time
        quiet = nothing and self._closed_at is None and not self._held_back
        # What a source has given may come again until it is done.
        self.watermarks.tell(now, quiet, self.exhausted and not self.roots.open_count, self.roots.held)

    def _close_objects(self) -> None:
        try:
            self.reading.ask()  # how it stands in the end
        except UserError as error:
            self.fail(str(error), error)
        self.reading.close()

    def fail(self, text: str, error: BaseException | None = None) -> None:
        super().fail(text, error)
        self.reading.give_up()

    def _next_report(self, now: float) -> float:
        # At round times, which are those at which windows of policies end: what is read between two reports and divided among two windows
        # by time would look steadier than it is, and how far it does would change with the phase.
        return self.report_times.round_after(now)

    def status(self) -> Status:
        progress, lag, skipped = self.reading.ask()
        status = super().status()
        position = None  # before it all is durable
        if self.reading.seekable and self.roots.committed is not None and self.splits is None:
            position = self.codec.pack_value(self.roots.committed)
        backpressured = self._backpressured
        if self._closed_at is not None and not self.exhausted:
            backpressured += self.clock() - self._closed_at
        rows = replace(status.rows, backpressured=backpressured, skipped=skipped)
        return replace(
            status,
            rows=rows,
            position=position,
            read=self.reading.rows,
            progress=progress,
            lag=None if self.waits else lag,
            micro_batch=self._window_now(),
            splits=() if self.splits is None or self.exactly else self.splits.safe(),
        )
