"""A sub-unit: one part of a unit, in one process; the loop of PROTOCOL section 2 without its sockets.

The shell around it reads sockets and calls `read`, passes control messages to `handle`, calls `turn` while that does work, and
delivers what stands in `outbox` to the sub-unit's unit. Nothing here blocks, sleeps or asks for the time but through `clock`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from esault.errors import CheckpointError, EsaultError
from esault.flow.channel.lineage import Lineage
from esault.flow.channel.senders import Senders
from esault.flow.checkpoint.alignment import Alignment
from esault.flow.delivery.replica_acks import acks_and_roots
from esault.flow.delivery.roots import Payload
from esault.flow.handover.divide import Entry
from esault.flow.operators.batch_emitter import emitter
from esault.flow.operators.user_error import failure_text
from esault.flow.send.outputs import Outputs
from esault.flow.worker.bounded_inbox import BoundedInbox
from esault.flow.worker.environment import Environment
from esault.flow.worker.frame_reader import FrameReader
from esault.flow.worker.probes import Probes
from esault.flow.worker.rate_cap import RateCap, changed
from esault.flow.worker.watermarks import watermarks
from esault.histogram import Histogram
from esault.messages.change import Leave
from esault.messages.checkpoint import Abandon, Checkpoint, Completed, NotSnapped, Snapped
from esault.messages.control import (
    AckRouting,
    AckRoutingSet,
    Add,
    Added,
    Build,
    Connect,
    Drain,
    Ended,
    Failed,
    Finish,
    Finished,
    Gone,
    Grace,
    Start,
    Stop,
    Stopped,
    Switched,
    Table,
    Throttle,
)
from esault.messages.probe import Counters, Usage
from esault.messages.status import Rows, Status
from esault.payload.codec import Codec
from esault.topology.context import Context
from esault.topology.plan import UnitPlan

__all__ = ["SubUnit"]

#: seconds between two looks for overdue roots
WATCH_EVERY = 0.05
#: rows of finish() or tick() in one root of the sub-unit's own
OWN_ROOT_ROWS = 512


class SubUnit(FrameReader):
    """What spouts and bolts have in common: channels, routes, acks, roots, sinks, the end."""

    def __init__(self, build: Build, plan: UnitPlan, environment: Environment) -> None:
        self.incarnation = build.incarnation
        self.plan = plan
        self.settings = build.settings
        self.epoch = build.epoch
        clock = self.clock = environment.clock
        wire = environment.wire
        self._tracked = build.settings.delivery != "none"
        self._exactly = build.settings.delivery == "eo"
        self._random64 = random.Random(environment.seed).getrandbits
        self.codec = Codec()
        self.context = Context(
            unit=plan.name,
            sub_unit=build.incarnation,
            host=build.host,
            part=build.part,
            parts=build.parts,
            run=build.run,
            now=clock,
            run_dir=environment.run_dir,
        )
        #: messages to the unit, in order
        self.outbox: deque[Any] = deque()
        self.acks, self.roots = acks_and_roots(plan.lanes, build, self.codec, wire, self._emit_payload, clock)
        self.emitter = emitter(plan, build.settings, self.codec)
        self.outputs = Outputs(
            build, plan, self.context, wire, self.codec, self.acks, environment.letters, self._random, clock
        )
        self._leaf = not plan.edges
        self.probes = Probes(build.incarnation, build.epoch, build.probes, wire, self.codec, self.counters)
        #: says what the process takes from its host, where the shell can tell
        self.usage: Callable[[], Usage] | None = None
        self.senders = Senders(build.epoch, self.codec, self._on_gap)
        self.watermarks = watermarks(plan, self.outputs)
        self.state_store = environment.state_store
        self.alignment = Alignment()
        #: what sinks have prepared, by the number of the checkpoint it belongs to
        self._prepared: dict[int, dict[str, Any]] = {}
        #: the newest checkpoint that is known to be complete
        self._completed = 0
        #: what was read and not processed
        self.inbox: deque[Entry] = deque()
        #: bytes of a row as it comes in, on the average of late
        self._row_bytes = 64.0
        self.backlog = 0
        #: how fast it may work; None: as fast as it can
        self.cap: RateCap | None = None
        #: how much may wait here; None: as much as comes
        self.bound: BoundedInbox | None = None
        #: told (unit, stream, keys, values) of all that is emitted; for tests
        self.observer: Callable[[str, str, Any, Any], None] | None = None
        self.started = False
        #: a source has given all that it has
        self._at_end = False
        #: the run ends with a checkpoint that is on: nothing more is read
        self.halted = False
        self.draining = False
        #: a change has taken the ranges: no sender will come any more
        self.leaving = False
        self.ended = False
        self._finishing: Iterator[None] | None = None
        self._finish_done = False
        #: elements were finished before the checkpoint that this began with
        self._was_finished = build.restore is not None and build.restore.finished
        self.finished = False
        self.stopped = False
        self.failed = False
        now = clock()
        self._status_at = now + build.settings.status_every
        self._watch_at = now + WATCH_EVERY
        self.latency = Histogram()
        self.end_to_end = Histogram()
        self.arrivals = 0
        self.tuples_in = 0
        self.tuples_out = 0
        #: batches taken from the inbox
        self.taken = 0
        self.busy = 0.0

    # building ----------------------------------------------------------------------------------

    def _random(self) -> int:
        return self._random64(64) or 1  # 0 stands for "not acked"

    # control -----------------------------------------------------------------------------------

    def handle(self, message: Any) -> None:
        """Take a control message. Raises EsaultError for one that no sub-unit knows."""
        method = self._HANDLERS.get(type(message))
        if method is None:
            raise EsaultError(f"sub-unit {self.incarnation} of {self.plan.name!r} got an unknown message: {message!r}")
        method(self, message)

    def _on_add(self, message: Add) -> None:
        for sender, number in message.senders:
            self.senders.add(sender, number)
            if self.watermarks is not None:
                self.watermarks.merging.add(sender, number)
                self.watermarks.merging.gone(self._ticket, sender, but=number)
        if self._finishing is None and not self._finish_done:
            self.ended = False  # there is more to come
        self.outbox.append(Added(self.incarnation, tuple(sender for sender, _ in message.senders)))

    def _on_gone(self, message: Gone) -> None:
        self.senders.gone(message.incarnation, message.last)
        if self.watermarks is not None:
            self.watermarks.merging.gone(self._ticket, message.incarnation)
        self._sender_gone(message.incarnation)

    def _on_connect(self, message: Connect) -> None:
        for table in message.tables:
            self._on_table(table)

    def _on_table(self, message: Table) -> None:
        version = self.outputs.install(message, self.finished)
        self.outbox.append(Switched(self.incarnation, message.target, version))

    def _on_ack_routing(self, message: AckRouting) -> None:
        self.acks.set_ackers(message.owners, message.ackers)
        filling = message.filling.get(self.plan.name, 0)
        self.roots.widen(message.widest / self.context.parts, filling / self.context.parts)
        self.outputs.living(message.owners)
        self.roots.set_replicas(message.down, message.mergers, self.clock())
        self.outbox.append(AckRoutingSet(self.incarnation, message.version))

    def _on_start(self, message: Start) -> None:
        self.started = True

    def _on_grace(self, message: Grace) -> None:
        if message.acker is not None:
            self.roots.acker_lost(message.acker)
        else:
            self.roots.grace(self.clock())

    def _on_drain(self, message: Drain) -> None:
        self.draining = True

    def _on_finish(self, message: Finish) -> None:
        if self._finishing is None and not self._finish_done:
            nothing = self._was_finished or (message.leaving and self._elements_moved)
            self._finishing = iter(()) if nothing else self._finish_steps()

    def _on_leave(self, message: Leave) -> None:
        self.leaving = True
        if self.watermarks is not None:
            self.watermarks.leave()

    def _on_stop(self, message: Stop) -> None:
        self._stop(message.now)

    def _on_checkpoint(self, message: Checkpoint) -> None:
        self._begin_cut(message.number)
        self.halted = self.halted or message.last

    def _on_abandon(self, message: Abandon) -> None:
        # What its sinks prepared goes with the next one.
        if self.alignment.abandon(message.number):
            self._go_on()

    def _begin_cut(self, number: int) -> None:
        """A checkpoint reached this sub-unit: one before it that is on was given up, which is not known here yet."""
        before = self.alignment.number
        if before is not None and number > before and self.alignment.abandon(before):
            self._go_on()
        self.alignment.begin(number)

    def _on_completed(self, message: Completed) -> None:
        self._completed = max(self._completed, message.number)
        try:
            for number in sorted(n for n in self._prepared if n <= message.number):
                self.outputs.complete(number, self._prepared.pop(number))
        except Exception as error:
            self._fail(failure_text(self.plan.name, error))

    def _on_throttle(self, message: Throttle) -> None:
        now = self.clock()
        self.cap = changed(self.cap, message.rate, message.seconds, now, self._worked_off)

    @property
    def _worked_off(self) -> int:
        """Tuples that a throttle counts, so far."""
        return self.tuples_in

    def _allowed(self, cap: RateCap, now: float, most: int) -> int:
        """Tuples that the throttle lets pass now, of `most`; its time may be over."""
        if now >= cap.until:
            self.cap = None
            return most
        return min(most, cap.allowed(now, self._worked_off))

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        Add: _on_add,
        Gone: _on_gone,
        Connect: _on_connect,
        Table: _on_table,
        AckRouting: _on_ack_routing,
        Start: _on_start,
        Grace: _on_grace,
        Drain: _on_drain,
        Finish: _on_finish,
        Leave: _on_leave,
        Stop: _on_stop,
        Checkpoint: _on_checkpoint,
        Abandon: _on_abandon,
        Completed: _on_completed,
        Throttle: _on_throttle,
    }

    # emitting ----------------------------------------------------------------------------------

    def _emit_payload(self, lineage: Lineage, payload: Payload) -> None:
        now = self.clock()
        for stream, keys, values, ids in payload:
            self.tuples_out += len(keys)
            if self.observer is not None:
                self.observer(self.plan.name, stream, keys, values)
            self.outputs.push_columns(stream, lineage, keys, values, ids, now)

    # the loop ----------------------------------------------------------------------------------

    def turn(self) -> bool:
        """One turn: process a batch if nothing is blocked; flush, ack, commit what is due. Whether another may follow at once."""
        if self.stopped or self.failed:
            return False
        try:
            return self._turn()
        except Exception as error:
            self._fail(failure_text(self.plan.name, error))
            return False

    def _turn(self) -> bool:
        now = self.clock()
        clear = self.outputs.offer()
        self.acks.push()
        worked = False
        if self.alignment.number is not None and self._quiet and self.alignment.complete(self.senders):
            self._cut(now)
        if self.started and clear:
            worked = self._work(now) or self._advance_finish()
            if self.probes:
                self.probes.through(self.taken, not self._unfinished)
        now = self.clock()
        idle = not self.inbox
        self.outputs.flush(now, idle)
        self.outputs.commit(now, self._closing)
        if self.acks and (idle or not worked):
            self.acks.send()
        if self.emitter.watching:
            self.emitter.check_unchanged()
        if self.watermarks is not None and not self.finished:
            # What a source has given may come again until it is done.
            over = self._at_end and not self.roots.open_count
            self.watermarks.tell(now, self._nothing_to_read, over)
        if now >= self._watch_at:
            self._watch_at = now + WATCH_EVERY
            self.acks.send()
            if self._tracked:
                self.roots.watch(now)
                if self.roots.stalled:
                    self.roots.stalled = False
                    self._on_gap(self.incarnation, f"no ack came for {self.settings.replay_after:g} s")
        if now >= self._status_at:
            self._status_at = self._next_status(now)
            self.outbox.append(self.status())
        return worked

    def _next_status(self, now: float) -> float:
        return now + self.settings.status_every

    @property
    def _closing(self) -> bool:
        """Whether sinks commit at once, since what waits for them is the end."""
        return self._finish_done or self.draining

    def _work(self, now: float) -> bool:
        """Process one batch, or read one root."""
        raise NotImplementedError

    def wake_at(self) -> float:
        """When the next turn has something to do even if nothing comes in, seconds since the epoch."""
        at = min((self._status_at, *self.outputs.due_at()))
        if self.watermarks is not None and not self.finished:
            at = min(at, self.watermarks.wake_at)
        # Twenty times a second is half of what an idle sub-unit costs: not where nothing can be overdue.
        return min(at, self._watch_at) if self.acks or self.roots.open_count else at

    @property
    def _nothing_to_read(self) -> bool:
        """Whether nothing waits to be processed."""
        return not self._unfinished

    # checkpoints -------------------------------------------------------------------------------

    @property
    def _quiet(self) -> bool:
        """Whether all that was taken in has been processed."""
        return True

    def _cut(self, now: float) -> None:
        """All before the cut has been processed and nothing behind it: send it on, and keep the state of this moment."""
        number = self.alignment.number
        assert number is not None
        self.outputs.cut(number, now, self.finished)
        self._prepared[number] = self.outputs.prepare(number)
        # Those before it as well: whether they were completed is not known here yet, and to commit twice does no harm.
        try:
            self._snap(number, {n: handles for n, handles in self._prepared.items() if handles})
        except CheckpointError as error:
            self.outbox.append(NotSnapped(self.incarnation, number, str(error)))
        self._go_on()

    @property
    def _finished_elements(self) -> bool:
        return self._finish_done or self._was_finished

    def _go_on(self) -> None:
        for channel, frame, size in self.alignment.release():
            if self.alignment.holds(channel):  # one of them was the mark of the next one
                self.alignment.put_aside(channel, frame, size)
            else:
                self._take_frame(channel, frame, size)

    def _snap(self, number: int, handles: dict[int, dict[str, Any]]) -> None:
        """Keep the state of this moment; Snapped follows when it is durable."""
        self.outbox.append(
            Snapped(self.incarnation, number, handles=handles, finished=self._finished_elements, ended=self.finished)
        )

    # the end -----------------------------------------------------------------------------------

    @property
    def _in_change(self) -> bool:
        """Whether rows or state are on their way to or from here."""
        return False

    @property
    def _elements_moved(self) -> bool:
        """Whether what this sub-unit had went to others when it was told to leave."""
        return False

    def _finish_steps(self) -> Iterator[None]:
        """What `finish` takes, in steps; what elements emit goes out as roots of the sub-unit's own."""
        yield

    def _advance_finish(self) -> bool:
        """Take finishing a step further; True while there is more to do at once."""
        if self._in_change:
            return False
        if self._finishing is not None:
            if self._tracked and not self.roots.credit:
                return False
            while self.emitter.rows() < OWN_ROOT_ROWS:
                try:
                    next(self._finishing)
                except StopIteration:
                    self._finishing = None
                    self._finish_done = True
                    break
            payload = self.emitter.take(self.plan.wants_id)
            if payload:
                now = self.clock()
                self.roots.open(payload, now, None, now)
            return True
        if self._finish_done and not self.finished:
            if self._tracked and self.roots.replay_one(self.clock()):
                return True
            if self.roots.open_count or self.outputs.uncommitted:
                return False
            self.acks.send()
            if not self.acks.push():
                return False  # others' roots wait for these acks: they must go before this sub-unit may
            if self.watermarks is not None:
                self.watermarks.over(self.clock())
            self.outputs.end(self.clock())
            self.finished = True
            self.outbox.append(Finished(self.incarnation))
            return True
        return False

    def _stop(self, at_once: bool) -> None:
        if self.stopped:
            return
        if not at_once and not self.failed:
            try:
                self.outputs.commit(self.clock(), closing=True)
                self.acks.send()
            except Exception as error:
                self._fail(failure_text(self.plan.name, error))
        self._close_objects()
        for text in self.outputs.close_sinks():
            if not self.failed:
                self._fail(text)
        self.stopped = True
        self.outbox.append(Stopped(self.incarnation, self.status()))

    def _close_objects(self) -> None:
        """Call `close` on the user's objects."""

    def close(self) -> None:
        """Give up all links; one that leaves while the others go on sees its last frames delivered."""
        self.probes.close()
        self.outputs.close()
        self.acks.close(deliver=self.leaving)

    def _fail(self, text: str) -> None:
        self.failed = True
        self.outbox.append(Failed(self.incarnation, self.plan.name, text))

    # reporting ---------------------------------------------------------------------------------

    def counts(self) -> Rows:
        """All counts so far."""
        roots = self.roots
        return Rows(
            tuples_in=self.tuples_in,
            tuples_out=self.tuples_out,
            arrivals=self.arrivals,
            errors=self.outputs.errors,
            dead_letters=self.outputs.dead_letters,
            dropped_frames=self.senders.dropped,
            busy=self.busy,
            backlog=self.waiting,
            roots_emitted=roots.emitted,
            roots_acked=roots.acked,
            roots_replayed=roots.replayed,
            roots_open=roots.open_count,
        )

    def counters(self) -> Counters:
        """What a probe takes along."""
        occupancy = self.waiting * self._row_bytes / self.settings.inbox_bytes
        return Counters(
            self.clock(), self.arrivals, self.tuples_in, self.tuples_out, self.busy, self.waiting, float(occupancy)
        )

    def status(self) -> Status:
        """What the unit is told now and then."""
        return Status(
            incarnation=self.incarnation,
            now=self.clock(),
            rows=self.counts(),
            latency=self.latency.snapshot(),
            end_to_end=self.end_to_end.snapshot(),
            sent=self.outputs.sent,
            seen={channel.sender: channel.seen for channel in self.senders},
            usage=self.usage() if self.usage is not None else None,
        )

    def say_ended(self) -> None:
        """Tell the unit, once."""
        if not self.ended:
            self.ended = True
            self.outbox.append(Ended(self.incarnation))
