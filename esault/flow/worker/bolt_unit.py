"""The sub-unit of a bolt: batches from the inbox through the user's objects.

It is one module of over 300 lines: all that may happen to an object between two batches (ticks, sweeps, changes, cuts) is
ordered here, in `_work`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from esault.flow.channel.lineage import Lineage
from esault.flow.checkpoint.snapshot import StateStore
from esault.flow.checkpoint.state_writer import SNAPSHOT_TURN, StateWriter
from esault.flow.handover.divide import Entry, cut, in_rows
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
from esault.messages.control import Build, PeekState, Spill, Start
from esault.messages.status import Status, SubUnitCounts
from esault.routing.many_keys import names_of
from esault.topology.plan import UnitPlan

__all__ = ["BoltSubUnit"]

#: seconds that user code may take in one turn, if its rows can be divided so
LONGEST_TURN = 0.02
#: rows that must fit into that for user code to count as quick: those of a full frame
SLOW_ROWS = 512
#: where user code is slow, writing state takes this share of its time: else a checkpoint would need thousands of its tuples
SNAPSHOT_SHARE = 0.1
#: seconds that a turn spends on looking for idle objects
SWEEP_TURN = 0.0003
#: rows of the first turn: each of them may take seconds
FIRST_ROWS = 4


class BoltSubUnit(SubUnit):
    """A sub-unit of a bolt: it processes batches, ticks, sweeps, and finishes its elements at the end."""

    def __init__(self, build: Build, plan: UnitPlan, environment: Environment) -> None:
        super().__init__(build, plan, environment)
        clock, state_store = self.clock, environment.state_store
        now = clock()
        self._environment = environment
        self.operator = self._make(environment)
        # A unit with one object moves it with all rows; else the rows of keyed inputs move with their keys.
        everything = plan.objects == "unit"
        keyed = frozenset(i for i, each in enumerate(plan.inputs) if everything or each.grouping.promises.keyed)
        self._to_all = plan.broadcast_inputs
        self.changes = self.reader.handover = Handover(
            build.incarnation,
            keyed,
            self._to_all,
            self.operator,
            self.acks,
            self._tracked,
            self._random,
            build.settings.hold_rows,
            clock,
            self.outbox.append,
            self.outputs.fence,
        )
        self.reader.read_change = self.changes.read
        if plan.buffer is not None:
            acks = self.acks if self._tracked else None
            self.reader.bound = BoundedInbox(plan.buffer, self.reader.unprocessed, self._random, acks)
        self._tick_at = now + plan.tick_every if plan.tick_every else None
        self._ticking: Iterator[None] | None = None
        #: the rest of a look for idle objects
        self._sweeping: Iterator[None] | None = None
        self._sampled = frozenset(i for i, each in enumerate(plan.inputs) if each.grouping.promises.whole_keys)
        #: rows that are processed in one turn at most; 0: any number. The first ones show how long a row takes.
        self._most_rows = FIRST_ROWS
        self._several = len(plan.inputs) > 1
        #: the keys that a batch bolt or one object changes are not known: all of its state is written each time
        self._seen_changes = plan.objects.endswith("key") and not plan.batch
        self._state_store = state_store
        self.writer = StateWriter(
            self.operator, clock, self._seen_changes, self.checkpoints.snapped, self.checkpoints.not_snapped
        )
        #: state goes through bytes after some batches; how many there were
        self._reload = bool(build.settings.reload_state)
        self._turns = 0
        #: not all keys may be in memory; those that are too many are being put away, since memory runs short
        self._bounded, self._spilling = plan.keys_in_memory is not None, False
        #: seconds that a turn spends on writing state
        self._snapshot_turn = SNAPSHOT_TURN
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
            self._in_flight = self._resume_in_flight(build.restore, state_store)
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
            self._random,
            self.clock(),
        )
        self.reader.inbox.extend(found.entries)
        self.reader.backlog += found.rows
        return found

    def _on_start(self, message: Start) -> None:
        super()._on_start(message)
        self.operator.share_early()
        found, self._in_flight = self._in_flight, None
        if found is not None and found.entries and self._tracked:
            self.roots.adopt(found.entries[0].batch.root, found.ids, found.rows, self.clock())

    def _make(self, environment: Environment) -> Operator:
        dead_letters = environment.dead_letters(self.plan.on_error.path)
        return operator(
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

    def _new_surplus(self) -> Operator:
        trusted = self.emitter.on_trusted  # which is the main one's
        surplus = self._make(self._environment)
        self.emitter.on_trusted = trusted
        return surplus

    def _work(self, now: float) -> bool:
        if self._tracked and self.roots.overdue and self.roots.replay_one(now):
            return True
        if self._tick_at is not None and not self._over and self._advance_tick(now):
            return True
        if self._surplus and (self.roots.credit or not self._tracked):
            surplus = self._surplus.pop()
            deque(surplus.finishing(), 0)
            surplus.close()
            self._emit_own(now)
            return True
        sweep = self.operator.next_sweep
        if sweep is not None and not self._over and (self._sweeping is not None or now >= sweep):
            self._advance_sweep(now)
        if self.writer.snapshot is not None:
            self._advance_snapshot()
        more = (self.changes.active and self._advance_change()) or self._sweeping is not None
        if self.watermarks is not None and self._advance_time(now):
            return True
        return self._next(now, more)

    def _next(self, now: float, more: bool) -> bool:
        """Process the next batch, and return whether there is, or was before (`more`), something to do at once."""
        reader, metrics = self.reader, self.metrics
        if not reader.inbox:
            self._check_ended()
            return self._keep_bound(now, 0) or more or self.writer.snapshot is not None
        if self.rate_limit.cap is not None:
            most = self.rate_limit.allowed(now, self._most_rows or max(1, len(reader.inbox[0].batch.keys)))
            if not most:
                return more or self.writer.snapshot is not None
            self._most_rows = most
        entry = reader.inbox.popleft()
        if self._most_rows and len(entry.batch.keys) > self._most_rows:
            entry = self._slice(entry)
        else:
            reader.taken += 1
        sent, batch, taken = entry
        if (type(batch.keys) is not tuple or type(batch.values) is not tuple) and not self.operator.takes_arrays:
            batch = in_rows(batch)
        count = len(batch.keys)
        reader.backlog -= count
        if self.key_load.room and batch.input in self._sampled:
            self.key_load.sample(batch.keys)
        lineage = Lineage(batch.root, batch.due)
        ids = batch.ids
        if ids is not None and self._several:
            # A row may come here by two ways, such as through either side of a diamond: what it brings forth is two rows.
            ids = tuple([f"{id}/{batch.input}" for id in ids])
        if self._several:
            self.operator.input = batch.input
        writer = self.writer
        if writer.snapshot is not None or writer.dirty is not None:
            # What rows that go to all sub-units change stands under no key.
            touched = (None,) if batch.input in self._to_all else names_of(batch.keys) if self._seen_changes else ()
            writer.process(touched)
        self.operator.run(batch.input, batch.keys, batch.values, ids)
        if self._bounded:
            self._keep_bound(now, count)
        if self._reload:
            self._turns += 1
            if not self._turns & (self._turns - 1):  # the first, second, fourth, eighth ...
                self.operator.reload(() if batch.input in self._to_all else batch.keys)
        emitter, outputs = self.emitter, self.outputs
        if emitter.arrays:
            self._emit_payload(lineage, emitter.pop_emitted(self.plan.wants_id))
        for stream, out in emitter.outs.items():
            keys = out.keys
            if keys:
                metrics.tuples_out += len(keys)
                if self.observer is not None:
                    self.observer(self.plan.name, stream, keys, out.values)
                ids = out.ids.copy() if batch.ids is not None else None
                outputs.push(stream, lineage, tuple(keys), tuple(out.values), ids, now)
                keys.clear()
                out.values.clear()
                out.ids.clear()
        if self._tracked:
            self.acks.add(batch.root, lineage.p if taken else batch.id ^ lineage.p, batch.id ^ lineage.d)
        metrics.tuples_in += count
        done = self.clock()
        metrics.busy += done - now
        if writer.snapshot is not None:
            self._snapshot_turn = max(SNAPSHOT_TURN, (done - now) * SNAPSHOT_SHARE)
        # Slow user code must not keep control, probes and changes waiting for a whole batch of it.
        each = (done - now) / count if count else 0.0
        most = max(1, int(LONGEST_TURN / each)) if each * SLOW_ROWS > LONGEST_TURN else 0
        if outputs.sinks and (taken_by_sinks := outputs.sinks.most_rows(count)):
            most = min(most or taken_by_sinks, taken_by_sinks)
        self._most_rows = most
        metrics.durations.latency.record(done - sent, count)
        if metrics.leaf:
            metrics.durations.end_to_end.record(done - batch.due, count)
        return True

    def _keep_bound(self, now: float, came: int) -> bool:
        """Put keys on disk that are too many in memory; whether there are more."""
        memory = self.operator.memory
        if memory is None or memory.most is None:
            return False
        more = memory.keep(now, came)
        if not more and self._spilling:
            self._spilling = False
            self._environment.free_memory()
        return more

    def _on_spill(self, message: Spill) -> None:
        if self.operator.memory is not None:
            self.operator.memory.halve()
            self._bounded = self._spilling = True

    def _slice(self, entry: Entry) -> Entry:
        """Return the first rows of a batch; the rest stays first in the inbox."""
        first, rest = cut(entry, self._most_rows, self._random, self.acks if self._tracked else None)
        self.reader.inbox.appendleft(rest)
        return first

    def _check_ended(self) -> None:
        """Tell the unit, once, when nothing will come any more. There is nothing to process now."""
        if self.lifecycle.phase is Phase.RUNNING and not self.changes.active:
            senders = self.reader.senders
            if (senders or self.leaving) and senders.ended:
                self.ending.input_ended()

    def _advance_tick(self, now: float) -> bool:
        """Tick the objects, in portions, and return whether there is more to tick at once."""
        if self._ticking is None:
            assert self._tick_at is not None
            if now < self._tick_at or self._tick_held:
                return False
            self._begin_tick(now)
        if self._tracked and not self.roots.credit:
            return False
        assert self._ticking is not None
        worked, over = self._take_steps(self._ticking)
        if over:
            self._ticking = None
        return worked and not over

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
        self._emit_own(self.clock())

    def _advance_time(self, now: float) -> bool:
        """Take the watermark on, and return whether there is more to do at once before rows are."""
        assert self.watermarks is not None
        if self.watermarks.advance(self.reader.taken, self.reader.unfinished, self.changes.active):
            self.watermarks.passed = self.watermarks.merging.current
        return False

    def _begin_tick(self, now: float) -> None:
        assert self._tick_at is not None and self.plan.tick_every is not None
        # Ticks that could not be called in time are not made up for.
        self._tick_at = max(self._tick_at + self.plan.tick_every, now)
        self.writer.all()  # the keys that it touches are not known
        self._ticking = self.operator.ticking(now)

    def wake_at(self) -> float:
        at = super().wake_at()
        if self._resting:
            return at
        if self._tick_at is not None and not self._over and not self._tick_held:
            at = min(at, self._tick_at)
        bulk = self.changes.wake_at
        if bulk is not None:
            at = min(at, bulk)
        if self.rate_limit.cap is not None and self.reader.inbox:
            at = min(at, self.rate_limit.cap.wake_at)
        sweep = self.operator.next_sweep
        return at if sweep is None or self._over else min(at, sweep)

    @property
    def _resting(self) -> bool:
        """True while nothing is processed or called, whatever is due: it is woken when there is room, or when it starts."""
        return not self.lifecycle.phase.works or self.outputs.blocked

    @property
    def _tick_held(self) -> bool:
        """True while the next round of ticks waits for something else than its time."""
        return False

    @property
    def _over(self) -> bool:
        """True from when elements are being finished: nothing else is called any more."""
        if self.lifecycle.phase is not Phase.FINISHING and not self.lifecycle.elements_finished:
            return False
        self._ticking = self._sweeping = None  # nor is the rest of a round
        return True

    # changes ---------------------------------------------------------------------------------------

    def _advance_change(self) -> bool:
        """Do a slice of the changes' work, and return whether there is more to do at once."""
        more = self.changes.advance(self.reader.inbox)
        if not self.changes.active:
            self.key_load.forget()  # its ranges are others: what is known of them so far is a part, or too much
        return more

    def _on_leave(self, message: Leave) -> None:
        super()._on_leave(message)
        self.operator.leaving = True

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

    _HANDLERS: ClassVar[dict[type, str]] = {
        **SubUnit._HANDLERS,
        PeekState: "_on_peek_state",
        Spill: "_on_spill",
        HoldRanges: "_on_hold_ranges",
        HandOverRanges: "_on_hand_over_ranges",
        HandOverTo: "_on_hand_over_to",
        LostOldOwner: "_on_lost_old_owner",
        Cancel: "_on_cancel",
    }

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

    # checkpoints -----------------------------------------------------------------------------------

    @property
    def _quiet(self) -> bool:
        return not self.reader.inbox and self._settled

    @property
    def _settled(self) -> bool:
        # A round of ticks or of the end is part of the cut as a whole: what it put out stands before it, as what it changed does.
        whole = self._ticking is None and self.lifecycle.phase is not Phase.FINISHING
        return whole and not self.changes.active and not self._surplus

    @property
    def _may_wait(self) -> bool:
        return self._state_store is not None and may_wait(self.plan)

    def _snap(self, number: int, sure: bool) -> None:
        if self._state_store is None:
            super()._snap(number, sure)
            return
        if self.reader.inbox:
            self.checkpoints.in_flight = write(
                self.reader.inbox,
                self.plan,
                self.codec,
                self._state_store,
                number,
                self.incarnation,
                self.operator.schema(),
            )
        self.writer.begin(number, self.incarnation, self._state_store, sure)
        self._advance_snapshot()

    def _advance_snapshot(self) -> None:
        self.writer.advance(self._snapshot_turn)

    def _on_abandon(self, message: Abandon) -> None:
        super()._on_abandon(message)
        self.writer.abandon(message.number)

    def _close_objects(self) -> None:
        self.operator.close()
        self.operator.close_shared()

    def counts(self) -> SubUnitCounts:
        counts, operator = super().counts(), self.operator
        return replace(
            counts,
            errors=counts.errors + operator.errors,
            dead_letters=counts.dead_letters + operator.dead_letters,
            elements=operator.states,
            keys_on_disk=operator.memory.away if operator.memory is not None else 0,
        )
