"""The sub-unit of a bolt, and the parts in which kinds of bolts differ.

It is one module of over 300 lines: all that may happen to an object between two batches (ticks, sweeps, changes, cuts) is
ordered here, in `_work`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from esault.counters import counted
from esault.flow.checkpoint.snapshot import StateStore
from esault.flow.checkpoint.state_writer import SNAPSHOT_TURN, StateWriter
from esault.flow.handover.handover import Handover
from esault.flow.operators.factory import operator
from esault.flow.operators.operator import Operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.worker.bounded_inbox import BoundedInbox
from esault.flow.worker.environment import Environment
from esault.flow.worker.in_flight import InFlight, may_wait, write
from esault.flow.worker.key_load import KeyLoadSampler
from esault.flow.worker.phase import Phase
from esault.flow.worker.restore import StateRestore
from esault.flow.worker.state_peek import peeked
from esault.flow.worker.sub_unit import OWN_ROOT_ROWS, SubUnit
from esault.messages.change import Cancel, HandOverRanges, HandOverTo, HoldRanges, Leave, LostOldOwner
from esault.messages.checkpoint import Abandon, Restore
from esault.messages.control import Build, Finish, PeekState, Spill, Start
from esault.messages.status import Status, SubUnitCounts
from esault.topology.plan import UnitPlan

if TYPE_CHECKING:
    from esault.flow.worker.async_processing import AsyncProcessing
    from esault.flow.worker.batch_processing import BatchProcessing
    from esault.flow.worker.clock_timers import ClockTimers
    from esault.flow.worker.window_closing import WindowClosing

__all__ = ["BoltParts", "BoltSubUnit"]

#: seconds that a turn spends on looking for idle objects
SWEEP_TURN = 0.0003


class BoltParts(NamedTuple):
    """Makers of the parts in which kinds of bolts differ; each is given its sub-unit."""

    #: how tuples go through user code: a batch in each turn, or many calls side by side
    processing: Callable[[BoltSubUnit], BatchProcessing | AsyncProcessing]
    #: of windows and timers of event time: what the watermark closes
    closing: Callable[[BoltSubUnit], WindowClosing] | None = None
    #: what the clock has called between two batches
    timers: Callable[[BoltSubUnit], ClockTimers] | None = None
    #: of replicas; made last, since it stands around all this
    replica: Callable[[BoltSubUnit], object] | None = None


class BoltSubUnit(SubUnit):
    """A sub-unit of a bolt: it processes batches, ticks, sweeps, and finishes its elements at the end."""

    def __init__(self, build: Build, plan: UnitPlan, environment: Environment, parts: BoltParts) -> None:
        super().__init__(build, plan, environment)
        self.handlers |= {
            PeekState: [self._on_peek_state],
            Spill: [self._on_spill],
            HoldRanges: [self._on_hold_ranges],
            HandOverRanges: [self._on_hand_over_ranges],
            HandOverTo: [self._on_hand_over_to],
            LostOldOwner: [self._on_lost_old_owner],
            Cancel: [self._on_cancel],
        }
        self.processing = parts.processing(self)
        clock, state_store = self.clock, environment.state_store
        now = clock()
        self.environment = environment
        self.operator = self._make(environment)
        # A unit with one object moves it with all rows; else the rows of keyed inputs move with their keys. Where any sub-unit
        # will do, rows move alone.
        everything = plan.objects == "unit" or plan.shares_waiting
        keyed = frozenset(i for i, each in enumerate(plan.inputs) if everything or each.grouping.promises.keyed)
        self.to_all = plan.broadcast_inputs
        self.changes = self.reader.handover = Handover(
            incarnation=build.incarnation,
            inputs=keyed,
            to_all=self.to_all,
            store=self.operator.state,
            acks=self.acks,
            tracked=self.tracked,
            random64=self.random,
            hold_rows=build.settings.hold_rows,
            clock=clock,
            say=self.outbox.append,
            fence=self.outputs.fence,
            shares=plan.shares_waiting,
        )
        self.reader.read_change = self.changes.read
        self.reader.fences.put = self.outputs.fence
        if plan.buffer is not None:
            acks = self.acks if self.tracked else None
            self.reader.bound = BoundedInbox(plan.buffer, self.reader.unprocessed, self.random, acks)
        self._tick_at = now + plan.tick_every if plan.tick_every else None
        self.ticking: Iterator[None] | None = None
        #: the rest of a look for idle objects
        self._sweeping: Iterator[None] | None = None
        self.sampled = frozenset(i for i, each in enumerate(plan.inputs) if each.grouping.promises.whole_keys)
        #: the keys that a batch bolt or one object changes are not known: all of its state is written each time
        self.seen_changes = plan.objects.endswith("key") and not plan.batch
        self._state_store = state_store
        self.writer = StateWriter(
            self.operator.state, clock, self.seen_changes, self.checkpoints.snapped, self.checkpoints.not_snapped
        )
        #: not all keys may be in memory; those that are too many are being put away, since memory runs short
        self.bounded, self._spilling = plan.keys_in_memory is not None, False
        #: seconds that a turn spends on writing state
        self.snapshot_turn = SNAPSHOT_TURN
        self.key_load = self.reader.key_load = KeyLoadSampler()
        #: objects that this unit has no sub-unit for any more: finished at once
        self._surplus: list[Operator] = []
        #: rows in flight that it goes on with; their root is not known to a ledger yet
        self._in_flight: InFlight | None = None
        if build.restore is not None and state_store is not None:
            restore = StateRestore(plan, self.context, build.restore, state_store)
            self._surplus = restore.into(self.operator, self._new_surplus)
            evolved = restore.evolved(self.operator, self.incarnation)
            if evolved is not None:
                self.outbox.append(evolved)
            left = self.operator.state.left_timers
            if left:
                self.context.logger.warning(
                    f"unit {plan.name!r}: {counted(left, 'key')} had timers, which are left out: the bolt has no on_timer any more"
                )
            self._in_flight = self._resume_in_flight(build.restore, state_store)
        self.closing = None if parts.closing is None else parts.closing(self)
        self.timers = None if parts.timers is None else parts.timers(self)
        self.replica = None if parts.replica is None else parts.replica(self)
        if build.joins:  # keys come when it is built, and would wait
            self.operator.share_early()

    def _resume_in_flight(self, restore: Restore, state_store: StateStore) -> InFlight | None:
        """Put the rows in flight of a checkpoint first in the inbox."""
        if not restore.in_flight:
            return None
        context, root = self.context, self.roots.reserve()
        found = InFlight(
            self.plan,
            context.part,
            context.parts,
            restore,
            state_store,
            self.codec,
            root,
            self.random,
            self.clock(),
        )
        self.reader.inbox.extend(found.entries)
        self.reader.backlog += found.rows
        return found

    def _on_start(self, message: Start) -> None:
        super()._on_start(message)
        self.operator.share_early()
        found, self._in_flight = self._in_flight, None
        if found is not None and found.entries and self.tracked:
            self.roots.adopt(found.entries[0].batch.root, found.ids, found.rows, self.clock())

    def _make(self, environment: Environment) -> Operator:
        dead_letters = environment.dead_letters(self.plan.on_error.path)
        made = operator(
            OperatorParameters(
                self.plan,
                self.context,
                self.emitter,
                self.codec,
                dead_letters,
                self.clock(),
                environment.pause,
                environment.states_on_disk,
            )
        )
        self.processing.prepare(made)
        return made

    def _new_surplus(self) -> Operator:
        trusted = self.emitter.on_trusted  # which is the main one's
        surplus = self._make(self.environment)
        self.emitter.on_trusted = trusted
        return surplus

    def _work(self, now: float) -> bool:
        if self.tracked and self.roots.overdue and self.roots.replay_one(now):
            return True
        if self._tick_at is not None and not self.lifecycle.over and self._advance_tick(now):
            return True
        if self._surplus and (self.roots.credit or not self.tracked):
            surplus = self._surplus.pop()
            deque(surplus.finishing(), 0)
            surplus.close()
            self.emit_own(now)
            return True
        sweep = self.operator.next_sweep
        if sweep is not None and not self.lifecycle.over and (self._sweeping is not None or now >= sweep):
            self._advance_sweep(now)
        if self.writer.snapshot is not None:
            self._advance_snapshot()
        more = (self.changes.active and self._advance_change()) or self._sweeping is not None
        if self.watermarks is not None and self._advance_time(now):
            return True
        if self.timers is not None and self.timers.fire(now):
            return True
        return self.processing.next(now, more)

    def keep_bound(self, now: float, came: int) -> bool:
        """Put keys on disk that are too many in memory; whether there are more."""
        memory = self.operator.memory
        if memory is None or memory.most is None:
            return False
        more = memory.keep(now, came)
        if not more and self._spilling:
            self._spilling = False
            self.environment.free_memory()
        return more

    def _on_spill(self, message: Spill) -> None:
        if self.operator.memory is not None:
            self.operator.memory.halve()
            self.bounded = self._spilling = True

    def check_ended(self) -> None:
        """Tell the unit, once, when nothing will come any more. There is nothing to process now."""
        if self.lifecycle.phase is Phase.RUNNING and not self.changes.active:
            senders = self.reader.senders
            if (senders or self.leaving) and senders.ended:
                self.ending.input_ended()

    def _advance_tick(self, now: float) -> bool:
        """Tick the objects, in portions, and return whether there is more to tick at once."""
        if self.ticking is None:
            assert self._tick_at is not None
            if now < self._tick_at or self._holds_ticks:
                return False
            self._begin_tick(now)
        if self.tracked and not self.roots.credit:
            return False
        assert self.ticking is not None
        worked, over = self.ending.take_steps(self.ticking)
        if over:
            self.ticking = None
        return worked and not over

    @property
    def _holds_ticks(self) -> bool:
        """Return whether no round may begin: where the unit has one object that may not be at work here, among others."""
        elsewhere = self.plan.objects == "unit" and (self.changes.active or self.leaving)
        return elsewhere or self.processing.holds_ticks

    def _advance_sweep(self, now: float) -> None:
        """Put away or expire idle objects for a moment: there may be millions, and tuples wait."""
        steps = self._sweeping = self._sweeping or self.operator.sweeping(now, self.writer.process)
        until = now + SWEEP_TURN
        while self.emitter.rows() < OWN_ROOT_ROWS:
            if next(steps, steps) is steps:
                self._sweeping = None
                break
            if self.clock() >= until:
                break
        self.emit_own(self.clock())

    def _advance_time(self, now: float) -> bool:
        """Take the watermark on, and return whether there is more to do at once before rows are."""
        assert self.watermarks is not None
        if self.closing is not None:
            return self.closing.advance(now)
        if self.watermarks.advance(self.reader.taken, self.reader.unfinished, self.changes.moving):
            self.watermarks.passed = self.watermarks.merging.current
        return False

    def _begin_tick(self, now: float) -> None:
        assert self._tick_at is not None and self.plan.tick_every is not None
        # Ticks that could not be called in time are not made up for.
        self._tick_at = max(self._tick_at + self.plan.tick_every, now)
        self.writer.all()  # the keys that it touches are not known
        self.ticking = self.operator.ticking(now)

    def wake_at(self) -> float:
        at = min(super().wake_at(), self.processing.wake_at())
        if self.resting:
            return at
        if self._tick_at is not None and not self.lifecycle.over and not self._holds_ticks:
            at = min(at, self._tick_at)
        bulk = self.changes.wake_at
        if bulk is not None:
            at = min(at, bulk)
        if self.timers is not None:
            at = min(at, self.timers.wake_at())
        sweep = self.operator.next_sweep
        return at if sweep is None or self.lifecycle.over else min(at, sweep)

    @property
    def resting(self) -> bool:
        """True while nothing is processed or called, whatever is due: it is woken when there is room, or when it starts."""
        return not self.lifecycle.phase.works or self.outputs.blocked

    # changes ---------------------------------------------------------------------------------------

    def _advance_change(self) -> bool:
        """Do a slice of the changes' work, and return whether there is more to do at once."""
        more = self.changes.advance(self.reader.inbox)
        if not self.changes.active:
            self.key_load.forget()  # its ranges are others: what is known of them so far is a part, or too much
        return more

    def _on_finish(self, message: Finish) -> None:
        super()._on_finish(message)
        if self.lifecycle.over:
            self.ticking = self._sweeping = None  # nor is the rest of a round called

    def _on_leave(self, message: Leave) -> None:
        super()._on_leave(message)
        self.operator.state.leaving = True

    def _on_hand_over_ranges(self, message: HandOverRanges) -> None:
        self.writer.all()
        if self.watermarks is not None:
            self.watermarks.gave(message.version, tuple(message.news), self.clock())
        self.changes.hand_over(message, self.reader.inbox)

    def _on_hold_ranges(self, message: HoldRanges) -> None:
        self.writer.all()
        if self.watermarks is not None and message.holds:
            self.watermarks.hold(message.version, self.clock())
        self.changes.hold_ranges(message)

    def _on_hand_over_to(self, message: HandOverTo) -> None:
        if self.watermarks is not None:
            self.watermarks.gave(message.version, (message.new,), self.clock())
        self.changes.replace_new_owner(message)

    def _on_lost_old_owner(self, message: LostOldOwner) -> None:
        self.changes.lose_old_owner(message)

    def _on_cancel(self, message: Cancel) -> None:
        self.changes.cancel(message)

    def _on_peek_state(self, message: PeekState) -> None:
        self.outbox.append(peeked(self.incarnation, self.operator, message))

    def status(self) -> Status:
        marks = self.watermarks
        known = marks.known if marks is not None and self.plan.watermarks else None
        return replace(super().status(), key_load=self.key_load.summary(), watermark=known)

    @property
    def _elements_moved(self) -> bool:
        return self.plan.objects != "sub-unit"

    def _finish_steps(self) -> Iterator[None]:
        self.writer.all()
        return self.operator.finishing()

    def cancel(self) -> None:
        self.processing.cancel()

    # checkpoints -----------------------------------------------------------------------------------

    @property
    def _quiet(self) -> bool:
        return not self.reader.inbox and self.settled

    @property
    def settled(self) -> bool:
        # A round of ticks or of the end is part of the cut as a whole: what it put out stands before it, as what it changed does.
        # So is what is closed at one watermark. Calls that are open may change anything.
        whole = self.ticking is None and self.lifecycle.phase is not Phase.FINISHING
        closed = self.closing is None or not self.closing.at_work
        return whole and closed and not self.changes.active and not self._surplus and not self.ending.open_calls

    @property
    def _may_wait(self) -> bool:
        return self._state_store is not None and may_wait(self.plan)

    def _snap(self, number: int, sure: bool) -> None:
        if self.closing is not None and self.writer.dirty is not None:
            self.writer.dirty.add(None)  # where the watermark stands
        if self._state_store is None:
            super()._snap(number, sure)
            return
        if self.reader.inbox:
            inbox, schema = self.reader.inbox, self.operator.state.schema()
            found = write(inbox, self.plan, self.codec, self._state_store, number, self.incarnation, schema)
            self.checkpoints.with_in_flight(found)
        self.writer.begin(number, self.incarnation, self._state_store, sure)
        self._advance_snapshot()

    def _advance_snapshot(self) -> None:
        self.writer.advance(self.snapshot_turn)

    def _on_abandon(self, message: Abandon) -> None:
        super()._on_abandon(message)
        self.writer.abandon(message.number)

    def _close_objects(self) -> None:
        self.processing.close_objects()

    def counts(self) -> SubUnitCounts:
        counts, operator = super().counts(), self.operator
        return replace(
            counts,
            errors=counts.errors + operator.errors,
            dead_letters=counts.dead_letters + operator.dead_letters,
            late=operator.late,
            elements=operator.states,
            keys_on_disk=operator.memory.away if operator.memory is not None else 0,
        )
