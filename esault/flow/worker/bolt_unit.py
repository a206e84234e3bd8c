"""The sub-unit of a bolt: batches from the inbox through the user's objects."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from esault.errors import CheckpointError
from esault.flow.channel.frame import Frame
from esault.flow.channel.lineage import Lineage
from esault.flow.checkpoint.snapshot import StateStore
from esault.flow.checkpoint.state_writer import StateWriter
from esault.flow.handover.divide import Entry, cut, in_rows
from esault.flow.handover.handover import Handover
from esault.flow.operators.factory import operator
from esault.flow.operators.operator import Operator
from esault.flow.worker.bounded_inbox import BoundedInbox
from esault.flow.worker.environment import Environment
from esault.flow.worker.key_load import KeyLoadSampler
from esault.flow.worker.sub_unit import OWN_ROOT_ROWS, SubUnit
from esault.messages.change import Cancel, HandOverRanges, HandOverTo, HoldRanges, LostOldOwner
from esault.messages.checkpoint import Abandon, NotSnapped, Piece, Restore, Snapped
from esault.messages.control import Build
from esault.messages.probe import Counters
from esault.messages.status import Rows, Status
from esault.payload.schema import Evolution
from esault.routing.many_keys import names_of
from esault.routing.ring import Name, canonical, position
from esault.topology.grouping import ByKey, PartialKey
from esault.topology.plan import UnitPlan

__all__ = ["BoltSubUnit"]

#: seconds that user code may take in one turn, if its rows can be divided so
LONGEST_TURN = 0.02
#: rows that must fit into that for user code to count as quick: those of a full frame
SLOW_ROWS = 512
#: rows of the first turn
FIRST_ROWS = 32


class BoltSubUnit(SubUnit):
    """Processes batches, ticks, sweeps, and finishes its elements at the end."""

    def __init__(self, build: Build, plan: UnitPlan, environment: Environment) -> None:
        super().__init__(build, plan, environment)
        clock, state_store = self.clock, environment.state_store
        now = clock()
        self._new_operator: Callable[[], Operator] = lambda: self._make(environment)
        self.operator = self._new_operator()
        # A unit with one object moves it with all rows; else the rows of keyed inputs move with their keys.
        everything = plan.objects == "unit"
        keyed = frozenset(
            i for i, each in enumerate(plan.inputs) if everything or isinstance(each.grouping, (ByKey, PartialKey))
        )
        self.changes = Handover(
            build.incarnation,
            keyed,
            self.operator,
            self.acks,
            self._tracked,
            self._random,
            build.settings.hold_rows,
            clock,
            self.outbox.append,
        )
        if plan.buffer is not None:
            acks = self.acks if self._tracked else None
            self.bound = BoundedInbox(plan.buffer, self._unprocessed, self._random, acks)
        self._tick_at = now + plan.tick_every if plan.tick_every else None
        self._ticking: Iterator[None] | None = None
        self._sampled = frozenset(i for i, each in enumerate(plan.inputs) if isinstance(each.grouping, ByKey))
        #: rows that are processed in one turn at most; 0: any number. The first ones show how long a row takes.
        self._most_rows = FIRST_ROWS
        self._several = len(plan.inputs) > 1
        #: what a batch bolt or one object changes in its state nobody sees: all of it is written each time
        self._seen_changes = plan.objects.endswith("key") and not plan.batch
        self.writer = StateWriter(self.operator, clock, self._seen_changes, self._snapped, self._not_snapped)
        #: number and handles of the checkpoint that was begun last
        self._cut_last: tuple[int, dict[int, dict[str, Any]]] = (0, {})
        #: state goes through bytes after some batches; how many there were
        self._reload = build.settings.reload_state
        self._turns = 0
        self.key_load = KeyLoadSampler()
        #: objects that this unit has no sub-unit for any more: finished at once
        self._surplus: list[Operator] = []
        if build.restore is not None and state_store is not None:
            self._restore(build.restore, state_store)

    def _make(self, environment: Environment) -> Operator:
        letters = environment.letters(self.plan.on_error.path)
        return operator(self.plan, self.context, self.emitter, self.codec, letters, self.clock())

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
        if sweep is not None and now >= sweep and not self._over:
            self.writer.all()  # whom it touches nobody sees
            if self.operator.sweep(now):
                self._emit_own(now)
        if self.writer.snapshot is not None:
            self._advance_snapshot()
        more = self.changes.active and self._advance_change()
        if self.watermarks is not None and self._advance_time(now):
            return True
        return self._next(now, more)

    def _next(self, now: float, more: bool) -> bool:
        """Process the next batch; whether there is, or was before (`more`), something to do at once."""
        if not self.inbox:
            if not self.ended and not self.changes.active and self._all_ended():
                self.say_ended()
            return more or self.writer.snapshot is not None
        if self.cap is not None:
            most = self._allowed(self.cap, now, self._most_rows or max(1, len(self.inbox[0].batch.keys)))
            if not most:
                return more or self.writer.snapshot is not None
            self._most_rows = most
        entry = self.inbox.popleft()
        if self._most_rows and len(entry.batch.keys) > self._most_rows:
            entry = self._slice(entry)
        else:
            self.taken += 1
        sent, batch, taken = entry
        if (type(batch.keys) is not tuple or type(batch.values) is not tuple) and not self.operator.takes_arrays:
            batch = in_rows(batch)
        count = len(batch.keys)
        self.backlog -= count
        if self.key_load.room and batch.input in self._sampled:
            self.key_load.take(batch.keys)
        lineage = Lineage(batch.root, batch.due)
        ids = batch.ids
        if ids is not None and self._several:
            # A row may come here by two ways, such as through either side of a diamond: what it brings forth is two rows.
            ids = tuple([f"{id}/{batch.input}" for id in ids])
        writer = self.writer
        if writer.snapshot is not None or writer.dirty is not None:
            writer.process(names_of(batch.keys) if self._seen_changes else ())
        self.operator.run(batch.input, batch.keys, batch.values, ids)
        if self._reload:
            self._turns += 1
            if not self._turns & (self._turns - 1):  # the first, second, fourth, eighth ...
                self.operator.reload(batch.keys)
        emitter = self.emitter
        if emitter.arrays:
            self._emit_payload(lineage, emitter.take(self.plan.wants_id))
        for stream, out in emitter.outs.items():
            keys = out.keys
            if keys:
                self.tuples_out += len(keys)
                if self.observer is not None:
                    self.observer(self.plan.name, stream, keys, out.values)
                ids = out.ids.copy() if batch.ids is not None else None
                self.outputs.push(stream, lineage, keys.copy(), out.values.copy(), ids, now)
                keys.clear()
                out.values.clear()
                out.ids.clear()
        if self._tracked:
            self.acks.add(batch.root, lineage.p if taken else batch.id ^ lineage.p, batch.id ^ lineage.d)
        self.tuples_in += count
        done = self.clock()
        self.busy += done - now
        # Slow user code must not keep control, probes and changes waiting for a whole batch of it.
        each = (done - now) / count if count else 0.0
        self._most_rows = max(1, int(LONGEST_TURN / each)) if each * SLOW_ROWS > LONGEST_TURN else 0
        self.latency.record(done - sent, count)
        if self._leaf:
            self.end_to_end.record(done - batch.due, count)
        return True

    def _slice(self, entry: Entry) -> Entry:
        """The first rows of a batch; the rest stays first in the inbox."""
        first, rest = cut(entry, self._most_rows, self._random, self.acks if self._tracked else None)
        self.inbox.appendleft(rest)
        return first

    def _all_ended(self) -> bool:
        return (bool(self.senders) or self.leaving) and self.senders.ended

    def _advance_tick(self, now: float) -> bool:
        """Tick the objects, in portions; whether there is more to tick at once."""
        if self._ticking is None:
            assert self._tick_at is not None
            if now < self._tick_at:
                return False
            self._begin_tick(now)
        if self._tracked and not self.roots.credit:
            return False
        assert self._ticking is not None
        while self.emitter.rows() < OWN_ROOT_ROWS:
            try:
                next(self._ticking)
            except StopIteration:
                self._ticking = None
                break
        self._emit_own(now)
        return self._ticking is not None

    def _advance_time(self, now: float) -> bool:
        """Take the watermark on; whether there is more to do at once before rows are."""
        assert self.watermarks is not None
        if self.watermarks.advance(self.taken, self._unfinished, self.changes.active):
            self.watermarks.passed = self.watermarks.merging.current
        return False

    def _begin_tick(self, now: float) -> None:
        assert self._tick_at is not None and self.plan.tick_every is not None
        # Ticks that could not be called in time are not made up for.
        self._tick_at = max(self._tick_at + self.plan.tick_every, now)
        self.writer.all()  # whom it touches nobody sees
        self._ticking = self.operator.ticking(now)

    def _emit_own(self, now: float) -> None:
        payload = self.emitter.take(self.plan.wants_id)
        if payload:
            self.roots.open(payload, now, None, now)

    def wake_at(self) -> float:
        at = super().wake_at()
        if self._tick_at is not None and not self._over and not self._tick_held:
            at = min(at, self._tick_at)
        bulk = self.changes.wake_at
        if bulk is not None:
            at = min(at, bulk)
        if self.cap is not None and self.inbox and self.started and not self.outputs.blocked:
            at = min(at, self.cap.wake_at)
        sweep = self.operator.next_sweep
        return at if sweep is None or self._over else min(at, sweep)

    @property
    def _tick_held(self) -> bool:
        """Whether the next round of ticks waits for something else than its time."""
        return False

    @property
    def _over(self) -> bool:
        """Whether the elements are being, or have been, finished: nothing else is called any more."""
        if self._finishing is None and not self._finished_elements:
            return False
        self._ticking = None  # nor is the rest of a round
        return True

    # changes ---------------------------------------------------------------------------------------

    def handle(self, message: Any) -> None:
        method = self._CHANGES.get(type(message))
        if method is None:
            super().handle(message)
        else:
            method(self, message)

    def _advance_change(self) -> bool:
        """A slice of the changes' work; whether there is more to do at once."""
        more = self.changes.advance(self.inbox)
        if not self.changes.active:
            self.key_load.forget()  # its ranges are others: what is known of them so far is a part, or too much
        return more

    def _on_give(self, message: HandOverRanges) -> None:
        self.writer.all()
        if self.watermarks is not None:
            self.watermarks.gave(message.version, tuple(message.news), self.clock())
        self.changes.give(message, self.inbox)

    def _on_get(self, message: HoldRanges) -> None:
        self.writer.all()
        if self.watermarks is not None:
            self.watermarks.hold(message.version, self.clock())
        self.changes.get(message)

    def _on_give_to(self, message: HandOverTo) -> None:
        if self.watermarks is not None:
            self.watermarks.gave(message.version, (message.new,), self.clock())
        self.changes.give_to(message)

    _CHANGES: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        HoldRanges: _on_get,
        HandOverRanges: _on_give,
        HandOverTo: _on_give_to,
        LostOldOwner: lambda self, message: self.changes.lost_old_owner(message),
        Cancel: lambda self, message: self.changes.cancel(message),
    }

    @property
    def may_read(self) -> bool:
        # While a change is on everything is read: a barrier or the state may stand behind the data.
        # So it is where the inbox is bounded: whoever sends must not wait for what would be dropped.
        return self.changes.active or self.bound is not None or super().may_read

    @property
    def waiting(self) -> int:
        return self.backlog - self.changes.away

    def _unprocessed(self) -> int:
        """Tuples that were read and are still here: in the inbox, or where a change has them."""
        return self.waiting + (self.changes.pending if self.changes.active else 0)

    def _take_in(self, entry: Entry) -> None:
        if self.changes.active:
            self.changes.offer(entry, self.inbox)
        else:
            self.inbox.append(entry)

    def _barrier(self, sender: int, version: int) -> None:
        self.changes.barrier(sender, version)

    def _read_probe(self, frame: Frame) -> None:
        self.key_load.refill()
        super()._read_probe(frame)

    def status(self) -> Status:
        marks = self.watermarks
        known = marks.known if marks is not None and self.plan.watermarks else None
        return replace(super().status(), key_load=self.key_load.summary(), watermark=known)

    def _sender_done(self, sender: int) -> None:
        self.changes.ended(sender)

    def _sender_gone(self, sender: int) -> None:
        self.changes.gone(sender)

    def _read_change(self, frame: Frame) -> None:
        self.changes.read(frame)

    @property
    def _in_change(self) -> bool:
        return self.changes.active

    @property
    def _elements_moved(self) -> bool:
        return self.plan.objects != "sub-unit"

    def _finish_steps(self) -> Iterator[None]:
        self.writer.all()
        return self.operator.finishing()

    # checkpoints -----------------------------------------------------------------------------------

    def _restore(self, restore: Restore, state_store: StateStore) -> None:
        """Take over the keys of this sub-unit's ranges, whoever wrote them."""
        one_each = self.plan.objects == "sub-unit"
        part, parts = self.context.part, self.context.parts
        evolutions: list[Evolution] = []
        for number, chain in enumerate(restore.chains):
            if one_each and number % parts != part:
                continue
            taker = self.operator
            if number >= parts and one_each:
                # It is part of what has been processed: what it would have put out at its end goes out now.
                if restore.finished:
                    continue
                trusted = self.emitter.on_trusted  # which is the main one's
                taker = self._new_operator()
                self.emitter.on_trusted = trusted
                self._surplus.append(taker)
            states: dict[Name, tuple[Any, bytes | None]] = {}
            for piece in chain:
                read = state_store.read(piece)
                evolution = Evolution(state_store.schema(piece))
                if evolution.needed(taker.own_class()):
                    evolutions.append(evolution)
                    read = self._evolved(taker, evolution, read, None if one_each else restore)
                states.update((canonical(key), (key, state)) for key, state in read)
            for key, state in states.values():
                if state is not None and (one_each or self._owns(key, restore)):
                    taker.get(key, state)
        if evolutions:
            self._say_dropped(evolutions)

    def _evolved(
        self, taker: Operator, evolution: Evolution, states: Iterable[tuple[Any, bytes | None]], restore: Restore | None
    ) -> Iterator[tuple[Any, bytes | None]]:
        """States as this version of the code has them; those of others' keys are not looked at."""
        for key, state in states:
            if state is None or (restore is not None and not self._owns(key, restore)):
                yield key, state
            elif key is None and self.plan.window is not None:
                yield key, state  # up to when windows were closed
            else:
                yield key, taker.evolved(state, evolution)

    def _say_dropped(self, evolutions: Sequence[Evolution]) -> None:
        whole = evolutions[0]
        for each in evolutions[1:]:
            whole.dropped.update(each.dropped)
        own = self.operator.own_class()
        for line in whole.told(self.plan.name, own.__qualname__ if own is not None else "keyed"):
            print(line, file=sys.stderr)

    def _owns(self, key: Any, restore: Restore) -> bool:
        if self.plan.objects == "unit":
            return True
        place = position(key)
        return any(low <= place <= high for low, high in restore.ranges)

    @property
    def _quiet(self) -> bool:
        # A round of ticks or of the end is part of the cut as a whole: what it put out stands before it, as what it changed does.
        whole = self._ticking is None and self._finishing is None
        return whole and not self.inbox and not self.changes.active and not self._surplus

    def _snap(self, number: int, handles: dict[int, dict[str, Any]]) -> None:
        if self.state_store is None:
            super()._snap(number, handles)
            return
        self.writer.begin(number, self.incarnation, self.state_store, self._completed == self._cut_last[0])
        self._cut_last = (number, handles)
        self._advance_snapshot()

    def _advance_snapshot(self) -> None:
        self.writer.advance()

    def _not_snapped(self, number: int, error: CheckpointError) -> None:
        self.outbox.append(NotSnapped(self.incarnation, number, str(error)))

    def _snapped(self, number: int, piece: Piece) -> None:
        _, handles = self._cut_last
        self.outbox.append(
            Snapped(
                self.incarnation, number, piece, handles=handles, finished=self._finished_elements, ended=self.finished
            )
        )

    def _on_abandon(self, message: Abandon) -> None:
        super()._on_abandon(message)
        self.writer.abandon(message.number)

    def counters(self) -> Counters:
        counters, bound = super().counters(), self.bound
        if bound is None:
            return counters
        arrivals, share = counters.arrivals + bound.dropped, counters.backlog / bound.most
        return counters._replace(arrivals=arrivals, dropped=bound.dropped, occupancy=share)

    def _close_objects(self) -> None:
        self.operator.close()

    def counts(self) -> Rows:
        counts = super().counts()
        dropped = self.bound.dropped if self.bound is not None else 0
        return replace(
            counts,
            arrivals=counts.arrivals + dropped,
            dropped=dropped,
            errors=counts.errors + self.operator.errors,
            dead_letters=counts.dead_letters + self.operator.dead_letters,
            elements=self.operator.states,
        )
