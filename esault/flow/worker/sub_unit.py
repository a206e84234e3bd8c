"""A sub-unit: one part of a unit, in one process; its loop without its sockets (docs/explanation/design.md).

The shell around it has `read` take frames and `handle` control messages, calls `turn` while that does work, and delivers
what stands in `outbox` to the sub-unit's unit. Nothing here blocks, sleeps or asks for the time but through `clock`.

It is one module of over 300 lines because it is where all parts meet: they are made here, each control message goes to one
of them, and a turn calls them in order.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from esault.errors import EsaultError
from esault.flow.channel.lineage import Lineage
from esault.flow.delivery.replica_acks import acks_and_roots
from esault.flow.delivery.roots import Payload
from esault.flow.operators.batch_emitter import emitter
from esault.flow.operators.calls import Calls
from esault.flow.operators.event_loop import EventLoop
from esault.flow.operators.user_error import failure_text, is_transient, pack_cause
from esault.flow.send.outputs import Outputs
from esault.flow.worker.checkpoints import Checkpoints
from esault.flow.worker.context import context_of
from esault.flow.worker.ending import Ending
from esault.flow.worker.environment import Environment
from esault.flow.worker.frame_reader import FrameReader
from esault.flow.worker.metrics import Metrics
from esault.flow.worker.phase import Event, Lifecycle, Phase
from esault.flow.worker.probes import Probes
from esault.flow.worker.rate_cap import RateLimit
from esault.flow.worker.report_times import ReportTimes
from esault.flow.worker.sending_again import SendingAgain
from esault.flow.worker.upkeep import Upkeep
from esault.flow.worker.watermarks import watermarks
from esault.messages.change import Leave
from esault.messages.checkpoint import Abandon, Checkpoint, Completed
from esault.messages.control import (
    AckRouting,
    AckRoutingSet,
    Add,
    Added,
    Build,
    Connect,
    Failed,
    Finish,
    Gone,
    Grace,
    SendAgain,
    Start,
    Stop,
    Switched,
    Table,
    Throttle,
)
from esault.messages.delivery import Delivery
from esault.messages.probe import Counters
from esault.messages.status import Status, SubUnitCounts
from esault.payload.codec import Codec
from esault.topology.plan import UnitPlan
from esault.topology.user_metrics import UserMetrics

__all__ = ["SubUnit"]

#: seconds that what is in flight may take before the checkpoint that pauses the run holds it
LAST_ALIGNED = 10.0
#: rows of finish() or tick() in one root of the sub-unit's own
OWN_ROOT_ROWS = 512


class SubUnit:
    """The loop that all kinds of sub-units have in common, and the parts that it drives."""

    #: it reads no more and ends; only spouts are told so
    draining = False

    def __init__(self, build: Build, plan: UnitPlan, environment: Environment) -> None:
        self.incarnation = build.incarnation
        self.plan = plan
        #: control message -> what takes it, in order; a part may stand before, behind or in place of another
        self.handlers: dict[type, list[Callable[[Any], None]]] = {
            Add: [self._on_add],
            Gone: [self._on_gone],
            Connect: [self._on_connect],
            Table: [self._on_table],
            AckRouting: [self._on_ack_routing],
            Start: [self._on_start],
            Grace: [self._on_grace],
            Finish: [self._on_finish],
            Leave: [self._on_leave],
            Stop: [self._on_stop],
            Checkpoint: [self._on_checkpoint],
            Abandon: [self._on_abandon],
            Completed: [self._on_completed],
            Throttle: [self._on_throttle],
            SendAgain: [self._on_send_again],
        }
        #: steps of the loop that a part may stand around
        self.take_turn, self.work, self.cut = self._turn, self._work, self._cut
        self.settings = build.settings
        clock = self.clock = environment.clock
        wire = environment.wire
        self.tracked = build.settings.delivery is not Delivery.NONE
        random64 = random.Random(environment.seed).getrandbits
        self.random: Callable[[], int] = lambda: random64(64) or 1  # 0 stands for "not acked"
        self.codec = Codec()
        self.context = context_of(build, plan, environment)
        #: messages to the unit, in order
        self.outbox: deque[Any] = deque()
        say = self.outbox.append
        self.acks, self.roots = acks_and_roots(plan.tracks_replicas, build, self.codec, wire, self.emit_payload, clock)
        self.emitter = emitter(plan, build.settings, self.codec)
        self.outputs = Outputs(
            build=build,
            plan=plan,
            context=self.context,
            wire=wire,
            codec=self.codec,
            acks=self.acks,
            dead_letters_at=environment.dead_letters,
            random64=self.random,
            clock=clock,
            background=environment.background,
            wake=environment.wake,
            pause=environment.pause,
        )
        if self.outputs.unprocessed is not None:
            self.roots.on_processed = self.outputs.unprocessed.processed
        self.watermarks = watermarks(plan, self.outputs)
        if self.watermarks is not None and build.settings.delivery is Delivery.AT_LEAST_ONCE:
            # Nothing passes what may be sent again. With checkpoints all go back together, event time too.
            self.roots.times = self.watermarks.times
        self.probes = Probes(build.incarnation, build.epoch, build.probes, wire, self.codec, self.counters)
        self.reader = FrameReader(build, self.codec, self.roots, self.probes, self.watermarks, clock, say)
        #: takes a frame from either socket
        self.read = self.reader.read
        self.lifecycle = Lifecycle(build.restore is not None and build.restore.finished)
        self.checkpoints = Checkpoints(
            build.incarnation, self.lifecycle, self.reader, self.outputs, self._snap, say, environment.wake
        )
        self.ending = Ending(
            incarnation=build.incarnation,
            unit=plan.name,
            lifecycle=self.lifecycle,
            reader=self.reader,
            roots=self.roots,
            acks=self.acks,
            outputs=self.outputs,
            watermarks=self.watermarks,
            take_steps=self._take_steps,
            tracked=self.tracked,
            clock=clock,
            say=say,
        )
        #: calls of user code that wait, of bolts whose `process` is async, and what they wait in
        self.calls: Calls | None = None
        self.loop: EventLoop | None = None
        self.rate_limit = RateLimit(lambda: self.metrics.tuples_in)
        #: told (unit, stream, keys, values) of all that is emitted; for tests
        self.observer: Callable[[str, str, Any, Any], None] | None = None
        #: a change has taken the ranges: no sender will come any more
        self.leaving = False
        user = UserMetrics.here = self.context.metrics
        self.metrics = Metrics(
            build.incarnation, not (plan.edges or plan.bolts), self.reader, self.roots, self.outputs, clock, user
        )
        self.sending_again = SendingAgain(
            build.incarnation,
            self.roots,
            self.outputs,
            self.codec,
            plan.wants_id,
            clock,
            say,
            lambda: self.context.checkpoint,
        )
        now = clock()
        self.report_times = ReportTimes(build)
        report_at = self.report_times.after(now)
        self.upkeep = Upkeep(self.acks, self.roots, self.tracked, now, report_at, self._report, self._stalled)

    # what others look at -----------------------------------------------------------------------

    @property
    def started(self) -> bool:
        """True from the start until it stops or fails."""
        return self.lifecycle.phase.works

    @property
    def ended(self) -> bool:
        """True from the end of its input until it stops or fails."""
        phase = self.lifecycle.phase
        return phase.works and phase is not Phase.RUNNING

    @property
    def stopped(self) -> bool:
        """True when it has said its last word."""
        return self.lifecycle.phase is Phase.STOPPED

    @property
    def may_read(self) -> bool:
        """True where the shell should read the data socket; the express socket is always read."""
        return self.reader.may_read

    # control -----------------------------------------------------------------------------------

    def handle(self, message: Any) -> None:
        """Take a control message. Raises EsaultError for one that no sub-unit knows."""
        handlers = self.handlers.get(type(message))
        if handlers is None:
            raise EsaultError(f"sub-unit {self.incarnation} of {self.plan.name!r} got an unknown message: {message!r}")
        for handler in handlers:
            handler(message)

    def _on_add(self, message: Add) -> None:
        for sender, number in message.senders:
            self.reader.add(sender, number)
        self.lifecycle.on(Event.SENDER_ADDED)
        self.outbox.append(Added(self.incarnation, tuple(sender for sender, _ in message.senders)))

    def _on_gone(self, message: Gone) -> None:
        self.reader.gone(message.incarnation, message.last, message.succeeded)

    def _on_connect(self, message: Connect) -> None:
        for table in message.tables:
            self._on_table(table)

    def _on_table(self, message: Table) -> None:
        version = self.outputs.install(message, self.lifecycle.phase is Phase.FINISHED)
        self.outbox.append(Switched(self.incarnation, message.target, version))

    def _on_ack_routing(self, message: AckRouting) -> None:
        self.acks.set_ackers(message.owners, message.ackers)
        filling = message.filling.get(self.plan.name, 0)
        self.roots.widen(message.widest / self.context.parts, filling / self.context.parts)
        self.outputs.living(message.owners)
        if self.watermarks is not None:
            self.watermarks.living(message.owners)
        self.roots.set_replicas(message.down, message.mergers, self.clock())
        self.outbox.append(AckRoutingSet(self.incarnation, message.version))

    def _on_start(self, message: Start) -> None:
        self.lifecycle.on(Event.START)
        self.metrics.start()
        self.upkeep.report_at(self.report_times.begin(self.clock()))

    def _on_grace(self, message: Grace) -> None:
        if message.acker is not None:
            self.roots.acker_lost(message.acker)
        else:
            self.roots.grace(self.clock())

    def _on_finish(self, message: Finish) -> None:
        before = self.lifecycle.phase
        if self.lifecycle.on(Event.FINISH) is Phase.FINISHING and before is not Phase.FINISHING:
            nothing = self.lifecycle.elements_finished or (message.leaving and self._elements_moved)
            self.ending.begin(iter(()) if nothing else self._finish_steps())

    def _on_leave(self, message: Leave) -> None:
        self.leaving = True
        if self.watermarks is not None:
            self.watermarks.leave()

    def _on_stop(self, message: Stop) -> None:
        self._stop(message.now)

    def _on_checkpoint(self, message: Checkpoint) -> None:
        # The last one pauses the run: what is in flight is processed, but for what takes long.
        least = self.settings.aligned_checkpoint_timeout
        longer = max(least, min(LAST_ALIGNED, self.settings.checkpoint_timeout / 2))
        self.reader.begin_checkpoint(message.number, longer if message.last else None)

    def _on_abandon(self, message: Abandon) -> None:
        # What its sinks prepared goes with the next one.
        self.reader.abandon(message.number)

    def _on_completed(self, message: Completed) -> None:
        try:
            self.checkpoints.complete(message.number)
        except Exception as error:
            self.fail(failure_text(self.plan.name, error), error)

    def _on_throttle(self, message: Throttle) -> None:
        self.rate_limit.change(message.rate, message.seconds, self.clock())

    def _on_send_again(self, message: SendAgain) -> None:
        running = self.lifecycle.phase is Phase.RUNNING and not self.leaving
        self.sending_again.begin(message, "" if running else "the unit that it goes out from has ended, or is ending")

    # emitting ----------------------------------------------------------------------------------

    def emit_payload(self, lineage: Lineage, payload: Payload) -> None:
        now = self.clock()
        for stream, keys, values, ids in payload:
            self.metrics.tuples_out += len(keys)
            if self.observer is not None:
                self.observer(self.plan.name, stream, keys, values)
            self.outputs.push_columns(stream, lineage, keys, values, ids, now)

    def emit_own(self, now: float) -> None:
        """Emit what stands in the emitter as a root of the sub-unit's own."""
        payload = self.emitter.pop_emitted(self.plan.wants_id)
        if payload:
            self.roots.open(payload, now, None, now)

    # the loop ----------------------------------------------------------------------------------

    def turn(self) -> bool:
        """Process a batch if nothing is blocked, then flush, ack and commit what is due.

        Returns whether there is more to do at once.
        """
        if not self.lifecycle.phase.alive:
            return False
        try:
            return self.take_turn()
        except Exception as error:
            self.fail(failure_text(self.plan.name, error), error)
            return False

    def _turn(self) -> bool:
        now = self.clock()
        clear = self.outputs.retry()
        self.acks.retry()
        if self.checkpoints.writing:
            self.checkpoints.settle()
        worked = False
        if self.reader.alignment.number is not None:
            self._align(now)
        if not clear:
            self._blocked(now)
        elif self.lifecycle.phase.works:
            worked = self.work(now) or self.ending.advance()
            if self.probes.waiting:
                self.probes.through(self.reader.taken, not self.reader.unfinished)
        now = self.clock()
        idle = not self.reader.inbox
        self.outputs.flush(now, idle)
        self.outputs.sinks.commit(now, self.draining or self.lifecycle.phase.closing, idle and not worked)
        if self.acks and (idle or not worked):
            self.acks.send()
        if worked and self.emitter.watching:
            self.emitter.check_unchanged()
            self.outputs.check_bolts()
        if self.watermarks is not None and self.lifecycle.phase is not Phase.FINISHED:
            self._tell_watermark(now)
        if now >= self.upkeep.due_at:
            self.upkeep.run(now)
        if self.sending_again.open:
            self.sending_again.look()
        return worked

    def _work(self, now: float) -> bool:
        """Process one batch, or read one root."""
        raise NotImplementedError

    def _blocked(self, now: float) -> None:
        """Take note that a receiver takes no more for now: nothing is processed meanwhile."""

    def _tell_watermark(self, now: float) -> None:
        assert self.watermarks is not None
        self.watermarks.tell(now, not self.reader.unfinished, False, self.roots.held)

    def _report(self, now: float) -> float:
        self.outbox.append(self.status())
        return self._next_report(now)

    def _stalled(self) -> None:
        self.reader.broken(self.incarnation, f"no ack came for {self.settings.replay_after:g} s")

    def _next_report(self, now: float) -> float:
        return self.report_times.after(now)

    @property
    def next_at(self) -> float:
        """The time at which a turn has something to do even if nothing comes in; never, where it has failed and waits for its end."""
        return self.wake_at() if self.lifecycle.phase.alive else math.inf

    def wake_at(self) -> float:
        """Return when a turn has something to do even if nothing comes in, seconds since the epoch."""
        at = min((self.upkeep.wake_at, *self.outputs.due_at(not self.reader.inbox)))
        if not self.reader.unaligned and self._may_wait:
            at = min(at, self.reader.aligned_by)
        if self.watermarks is not None and self.lifecycle.phase is not Phase.FINISHED:
            at = min(at, self.watermarks.wake_at)
        return at

    # checkpoints -------------------------------------------------------------------------------

    @property
    def _quiet(self) -> bool:
        """True when all that was taken in has been processed."""
        return True

    def _align(self, now: float) -> None:
        """Cut as soon as may be: behind all that stands before the marks, or, where that takes too long, with it in the checkpoint."""
        reader = self.reader
        if now >= reader.aligned_by and not reader.unaligned and self._may_wait:
            reader.unaligned = True
        if reader.cut_is_complete and (self._quiet or (reader.unaligned and self.settled)):
            self.cut(now)

    @property
    def _may_wait(self) -> bool:
        """True where a checkpoint may hold what waits in the inbox."""
        return False

    @property
    def settled(self) -> bool:
        """True when nothing is under way but what waits in the inbox."""
        return True

    def _cut(self, now: float) -> None:
        """Do this sub-unit's part: all before the marks has been processed, and nothing behind them."""
        self.context.at_checkpoint(self.reader.alignment.number)
        self.checkpoints.cut(now)

    def _snap(self, number: int, sure: bool) -> None:
        """Keep the state of this moment; Snapped follows when it is durable.

        `sure`: the checkpoint before is known to be complete.
        """
        self.checkpoints.snapped(number)

    # the end -----------------------------------------------------------------------------------

    @property
    def _elements_moved(self) -> bool:
        """True where the state of one that leaves goes to others."""
        return False

    def _finish_steps(self) -> Iterator[None]:
        """Return the calls of `finish`, as steps."""
        return iter(())

    def _take_steps(self, steps: Iterator[None]) -> tuple[bool, bool]:
        """Take some steps of user code, and send what they emit as a root of the sub-unit's own.

        Returns whether any could be taken, and whether all are.
        """
        over = False
        while not over and self.emitter.rows() < OWN_ROOT_ROWS:
            over = next(steps, steps) is steps
        self.emit_own(self.clock())
        return True, over

    def _stop(self, at_once: bool) -> None:
        self.ending.stop(at_once, self._close_all, self.fail, self.status)

    def _close_all(self) -> None:
        self._close_objects()
        self.outputs.close_bolts()

    def _close_objects(self) -> None:
        """Call `close` on the user's objects."""

    def cancel(self) -> None:
        """Give up calls of user code that wait."""

    def close(self) -> None:
        """Give up all links; one that leaves while the others go on sees its last frames delivered."""
        self.cancel()
        self.probes.close()
        self.outputs.close()
        self.acks.close(deliver=self.leaving)

    def fail(self, text: str, error: BaseException | None = None) -> None:
        self.lifecycle.on(Event.FAIL)
        cause = b"" if error is None else pack_cause(error)
        self.outbox.append(Failed(self.incarnation, self.plan.name, text, cause, transient=is_transient(error)))
        self.cancel()

    # reporting ---------------------------------------------------------------------------------

    def counts(self) -> SubUnitCounts:
        """Return all counts so far."""
        return self.metrics.counts()

    def counters(self) -> Counters:
        """Return what a probe takes along."""
        return self.metrics.counters()

    def status(self) -> Status:
        """Return what the unit is told now and then."""
        return self.metrics.status(self.counts())
