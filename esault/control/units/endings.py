"""The end of a unit, and of single sub-units of it: ended, finished, stopped.

A unit finishes when all of its sub-units have read the END of all their senders. One whose ranges a change has taken
away ends alone: it finishes, leaves its targets once they have read its END, and stops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from esault.control.units.lives import Lives
from esault.control.units.sender_registry import SenderRegistry
from esault.control.units.signals import Finishing, MayEnd, MayFinish, SubUnitGone
from esault.control.units.sub_unit_record import SubUnitRecord
from esault.control.units.unit_state import Component, Handler, UnitState
from esault.control.units.unit_throttle import UnitThrottle
from esault.messages.change import Leaving, Left
from esault.messages.control import CaughtUp, Ended, Finish, Finished, Release, Stop, Stopped

__all__ = ["Endings"]


class Endings(Component):
    """The end of the unit, and of those of its sub-units that leave."""

    def __init__(
        self,
        state: UnitState,
        senders: SenderRegistry,
        lives: Lives,
        throttle: UnitThrottle,
        changing: Callable[[], bool] = lambda: False,
        holds_end: Callable[[int], bool] = lambda incarnation: False,
    ) -> None:
        """`changing` tells whether a change is on, or a replica is being restored; `holds_end`, whether a sub-unit alone knows that a split ended."""
        self._state = state
        self._senders = senders
        self._lives = lives
        self._throttle = throttle
        self._changing = changing
        self._holds_end = holds_end
        #: sinks commit with checkpoints
        self.exactly = False

    def handlers(self) -> Mapping[type, Handler]:
        return {
            CaughtUp: self._on_caught_up,
            Ended: self._on_ended,
            Finished: self._on_finished,
            Stopped: self._on_stopped,
            Left: self._on_left,
            MayEnd: self._on_may_end,
            MayFinish: self._on_may_finish,
        }

    # the unit --------------------------------------------------------------------------------------

    def _on_caught_up(self, message: CaughtUp, now: float) -> None:
        record = self._state.subs.get(message.incarnation)
        if record is not None and message.assigned == record.assigned:  # else it has got splits since
            record.caught_up = True

    def _on_ended(self, message: Ended, now: float) -> None:
        record = self._state.subs.get(message.incarnation)
        if record is None:
            return
        record.ended = True
        if record.leaving and not self._state.finishing:
            self._state.tell(record.incarnation, Finish(leaving=True))
        else:
            self._on_may_end(MayEnd(), now)

    def _on_may_end(self, message: MayEnd, now: float) -> None:
        """Finish the unit once all have ended and no sender is being registered or told of a table."""
        state, senders = self._state, self._senders
        if state.finishing or senders.registering or senders.switching or self._changing() or senders.expecting:
            return
        if not state.subs or not all(r.ended for r in state.subs.values()):
            return
        state.finishing = True
        for record in state.subs.values():
            state.tell(record.incarnation, Finish())
        state.say(Finishing(), now)

    def _on_finished(self, message: Finished, now: float) -> None:
        record = self._state.subs.get(message.incarnation)
        if record is None:
            return
        record.finished = True
        if not record.leaving:
            self._on_may_finish(MayFinish(), now)
            return
        record.leaving_from = set(self._state.targets)
        for target in self._state.targets:
            self._state.tell_unit(target, Leaving(message.incarnation))
        self._check_left(record)

    def _on_may_finish(self, message: MayFinish, now: float) -> None:
        if self._state.finishing and all(r.finished for r in self._state.subs.values()):
            self._state.event("finished")

    def stop(self, at_once: bool) -> None:
        """Have all sub-units leave."""
        for record in self._state.subs.values():
            if record.built is not None and not record.stopped:
                self._state.tell(record.incarnation, Stop(at_once))

    @property
    def all_stopped(self) -> bool:
        """Return whether every living sub-unit has said its last word."""
        return all(r.stopped or r.built is None for r in self._state.subs.values())

    def _on_stopped(self, message: Stopped, now: float) -> None:
        state = self._state
        record = state.subs.get(message.incarnation)
        if record is None or not record.leaving or state.finishing:
            state.measurements.update(message.status)
            if record is not None:
                record.stopped = True
            return
        del state.subs[message.incarnation]
        state.measurements.left(message.status)
        state.tell_keeper(Release(message.incarnation))
        state.event("rescaled")
        self._throttle.share(now)
        state.say(SubUnitGone(message.incarnation), now)
        state.say(MayEnd(), now)

    # those that leave ------------------------------------------------------------------------------

    @property
    def leaving(self) -> bool:
        """Return whether a sub-unit is leaving."""
        return any(r.leaving for r in self._state.subs.values())

    def _check_left(self, record: SubUnitRecord) -> None:
        if not (record.leaving and record.finished and not record.leaving_from):
            return
        record.awaits_checkpoint = self._waits(record)
        if record.awaits_checkpoint:
            self._state.event("rescaled")  # what is to be said of the others is said now
        elif not record.told_to_stop:
            self._state.tell(record.incarnation, Stop())
            record.told_to_stop = True

    def _waits(self, record: SubUnitRecord) -> bool:
        """Return whether the next checkpoint will commit rows that its sinks hold, or know of the end of a split that it has read."""
        holds = self._holds_end(record.incarnation) or (not record.committed and bool(self._state.plan.sinks))
        return self.exactly and holds

    @property
    def wants_checkpoint(self) -> bool:
        """Return whether a leaving sub-unit waits for a checkpoint."""
        subs = self._state.subs.values()
        return any(r.leaving and r.finished and not r.leaving_from and self._waits(r) for r in subs)

    def checkpointed(self, finished: Collection[int]) -> None:
        """Note that a checkpoint is complete, to which these sub-units did their part after they had finished."""
        for record in list(self._state.subs.values()):
            if record.leaving:
                record.committed = record.committed or record.incarnation in finished
                self._check_left(record)

    def _on_left(self, message: Left, now: float) -> None:
        record = self._state.subs.get(message.incarnation)
        if record is not None:
            record.leaving_from.discard(message.target)
            self._check_left(record)

    def died_leaving(self, record: SubUnitRecord, now: float) -> None:
        """Forget a dead sub-unit that was leaving: its ranges are others'; what it had not handed over is replayed."""
        self._state.subs.pop(record.incarnation)
        self._state.measurements.died(record.incarnation)
        self._lives.forget(record.incarnation, now)
        self._senders.settle()
