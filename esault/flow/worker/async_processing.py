"""Processing of bolts with `async def process`: many tuples wait side by side, and the data loop for none of them.

It is one module of over 300 lines: a call is begun, recalled, cancelled and sent on by one account of open batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cached_property
from itertools import groupby
from typing import Any

from esault.errors import EsaultError
from esault.flow.channel.lineage import Lineage
from esault.flow.delivery.roots import Payload
from esault.flow.handover.divide import Entry, in_rows
from esault.flow.operators.async_operator import AsyncOperator
from esault.flow.operators.call_emitter import CallEmitter
from esault.flow.operators.calls import Call, Calls
from esault.flow.operators.operator import Operator
from esault.flow.worker.bolt_unit import BoltSubUnit
from esault.flow.worker.environment import Environment
from esault.flow.worker.phase import Event, Phase
from esault.flow.worker.rate_cap import RateLimit
from esault.flow.worker.sub_unit import OWN_ROOT_ROWS
from esault.messages.change import HandOverRanges
from esault.messages.control import Stop

__all__ = ["AsyncProcessing"]

#: seconds that calls may run before control, changes and sockets are looked at
LONGEST_STEP = 0.005
#: calls that begin before they are looked at
MOST_STARTS = 64
#: tuples that wait behind others of their key up to which more are taken from the inbox, so that other keys overtake
LOOK_AHEAD = 1024
#: seconds that `close` may take when the sub-unit stops
CLOSE_SECONDS = 2.0


class _OpenBatch:
    """A batch of which some tuples are not done, with what came of the others."""

    __slots__ = ("entry", "left", "lineage", "number")

    def __init__(self, entry: Entry, number: int) -> None:
        self.entry = entry
        self.lineage = Lineage(entry.batch.root, entry.batch.due)
        self.left = len(entry.batch.keys)
        #: that of its first call
        self.number = number


class AsyncProcessing:
    """Processing by calls side by side: a turn begins some, steps the event loop, and sends on what ended calls emitted, by batch.

    The step runs what is ready and never waits: the data loop's poll does, for frames, control, timers and answers.
    """

    def __init__(self, bolt: BoltSubUnit, environment: Environment) -> None:
        plan = bolt.plan
        assert plan.concurrency is not None and isinstance(bolt.emitter, CallEmitter)
        if environment.event_loop is None:
            raise EsaultError(f"unit {plan.name!r} is async, and there is no event loop for it here")
        self._bolt, self._emitter = bolt, bolt.emitter
        self._loop = bolt.loop = environment.event_loop(environment.clock)
        self.calls = bolt.calls = bolt.ending.open_calls = Calls(plan.concurrency)
        bolt.ending.take_steps = self._take_steps
        self._batches: deque[_OpenBatch] = deque()
        #: tuples whose calls have begun, and up to when `busy` was counted
        self._begun = 0
        self._busy_at = environment.clock()
        #: calls that have begun and whose results were not taken, and when they began, added up
        self._under_way, self._begun_at = 0, 0.0
        #: when what closes is not waited for any more; None: it does not stop
        self._stop_by: float | None = None
        #: a call may begin where the one before it has ended, within a step of the loop
        self._follows = False
        #: nothing is ready: what is open has to be waited for
        self._waits = False
        bolt.reader.open_batches = self._batches
        bolt.metrics.open_busy = self._open_busy
        bolt.rate_limit = RateLimit(lambda: self._begun)
        self._turn, bolt.take_turn = bolt.take_turn, self.turn
        bolt.handlers[HandOverRanges].insert(0, lambda message: self._recall())
        self._stop, bolt.handlers[Stop] = bolt.handlers[Stop][0], [self._on_stop]

    def prepare(self, operator: Operator) -> None:
        """Have its calls counted, and run in the loop."""
        assert isinstance(operator, AsyncOperator)
        operator.attach(self.calls, self._loop)
        operator.on_end = self._follow

    @cached_property
    def operator(self) -> AsyncOperator:
        """Return that of the sub-unit."""
        assert isinstance(self._bolt.operator, AsyncOperator)
        return self._bolt.operator

    # the loop ----------------------------------------------------------------------------------

    def turn(self) -> bool:
        """Step the loop, and take a turn as any bolt does; one that stops only waits for what closes."""
        if self._stop_by is not None:
            more = self._loop.step(LONGEST_STEP)
            if not self.operator.closing:
                self.operator.close_shared()  # behind the objects, which may use it to the last
            if not self.operator.closing or self._bolt.clock() >= self._stop_by:
                self._stop_by = None
                self._stop(Stop())
            return more
        # Also while nothing can be sent: timers and answers of calls that are open must not wait for that.
        more = self._step()
        self._waits = False
        # A checkpoint that may hold what waits waits for the calls that are open, and for no more.
        if self.calls.rows and self._pausing:
            self._recall()
        worked = self._turn()
        return more or (worked and not (self._waits and self._at_rest))

    @property
    def _at_rest(self) -> bool:
        """Return whether results that were taken leave nothing to be done at once by what looks at them in a turn."""
        looked_at = (
            self._bolt.watermarks is not None
            or self._bolt.reader.alignment.number is not None
            or self._bolt.changes.active
        )
        return not (looked_at or self._bolt.acks) and self._bolt.lifecycle.phase is Phase.RUNNING

    def _step(self) -> bool:
        """Run what is ready, and calls behind it while nothing stands against that; whether there may be more at once."""
        self._count_busy(self._bolt.clock())
        self._follows = self._free
        more = self._loop.step(LONGEST_STEP)
        self._follows = False
        return more

    @property
    def _free(self) -> bool:
        """Return whether nothing stands against it that a call begins behind one of its key that has ended."""
        bolt = self._bolt
        return (
            bolt.rate_limit.cap is None
            and not self._pausing
            and bolt.lifecycle.phase.works
            and not bolt.outputs.blocked
        )

    def next(self, now: float, more: bool) -> bool:
        """Take results and begin calls."""
        worked, ready, until = False, False, now + LONGEST_STEP
        while True:
            worked = self._take_results(now) or worked
            if now > until or self._bolt.outputs.blocked:
                ready = True
                break
            if not self._begin(now):
                break
            worked = True
            ready = self._step()
            now = self._bolt.clock()
        if not worked and not self._bolt.reader.inbox and not self.calls:
            self._bolt.check_ended()
        more = more or ready or self._bolt.writer.snapshot is not None
        self._waits = not more and self.calls.open > 0
        return worked or more

    def _begin(self, now: float) -> int:
        """Begin the calls that may begin, and return how many there were."""
        calls, began, free = self.calls, 0, self._free
        self._count_busy(now)
        while began < MOST_STARTS:
            if not calls.ready and not (calls.may_begin and not self._pausing and self._take_batch()):
                break
            if self._bolt.rate_limit.cap is not None and not self._bolt.rate_limit.allowed(now, 1):
                break
            call = calls.next()
            if call is None:
                break
            self._start(call, free)
            began += 1
        return began

    def _start(self, call: Call, free: bool) -> None:
        """Begin a call. Where it is over at once and the way is `free`, those of its key that wait begin behind it."""
        following: Call | None = call
        while following is not None:
            self._note(following)
            if not following.owner.at_once(following):
                self._loop.start(following.owner.call(following))
                return
            following = self.calls.follow(following) if free else None

    def _note(self, call: Call) -> None:
        """Count a call that begins."""
        if call.hook == "process":
            if self._bolt.writer.snapshot is not None or self._bolt.writer.dirty is not None:
                self._bolt.writer.process((call.name,))
            self._bolt.reader.backlog -= 1
            self._begun += 1
        call.began = self._busy_at
        self._under_way += 1
        self._begun_at += call.began

    def _follow(self, call: Call) -> None:
        """Begin what waits for this call alone: a turn for each of many calls of one key costs more than they do."""
        if self._follows:
            following = self.calls.follow(call)
            if following is not None:
                self._start(following, True)

    def _take_batch(self) -> bool:
        """Take a batch from the inbox; False if there is none, or too many tuples wait for their calls."""
        inbox = self._bolt.reader.inbox
        if not inbox or self.calls.rows >= LOOK_AHEAD:
            return False
        entry = inbox.popleft()
        entry = entry._replace(batch=in_rows(entry.batch))
        batch = entry.batch
        if self._bolt.key_load.room and batch.input in self._bolt.sampled:
            self._bolt.key_load.sample(batch.keys)
        held = _OpenBatch(entry, self.calls.added + 1)
        self._batches.append(held)
        for i, (key, value) in enumerate(zip(batch.keys, batch.values)):
            id = None if batch.ids is None else batch.ids[i]
            self.calls.add(self.operator.tuple_call(held, batch.input, key, value, id))
        return True

    def _count_busy(self, now: float) -> None:
        """Count busy time by the share of calls that are taken up: a call that waits for an answer cannot do other work."""
        self._bolt.metrics.busy += (now - self._busy_at) * self.calls.open / self.calls.most
        self._busy_at = now

    def _open_busy(self) -> float:
        """Return the part of `busy` that went into calls which are open."""
        return max(0.0, self._under_way * self._busy_at - self._begun_at) / self.calls.most

    # what came of it ---------------------------------------------------------------------------

    def _take_results(self, now: float) -> bool:
        """Send on what ended calls emitted, and ack batches that are done; return whether any call had ended."""
        if self.operator.failure is not None:
            self.operator.settle()
        ended = self.operator.ended
        if not ended:
            return False
        self.operator.ended = []
        self.operator.settle()
        self._count_busy(now)
        # A call of a key begins when the one before is over: by the order in which their batches came, each key's rows are in order.
        order = sorted(ended, key=lambda call: call.number if call.batch is None else call.batch.number)
        for batch, calls in groupby(order, lambda call: call.batch):
            if batch is None:
                self._emit_of_hooks(list(calls), now)
            else:
                self._emit_of_tuples(batch, list(calls), now)
        for call in ended:
            self._under_way -= 1
            self._begun_at -= call.began
            self.calls.over(call)
        if not self._under_way:
            self._begun_at = 0.0  # what rounding has left
        self._count_taken()
        return True

    def _count_taken(self) -> None:
        while self._batches and not self._batches[0].left:
            self._batches.popleft()
            self._bolt.reader.taken += 1

    def _columns(self, calls: list[Call]) -> dict[str, tuple[list[Any], list[Any], list[str]]]:
        """Return keys, values and ids by stream."""
        return self._emitter.columns(calls, self._parent if self._bolt.plan.wants_id else None)

    def _parent(self, call: Call) -> str:
        """Return the beginning of the ids of a call's rows."""
        if call.batch is None or call.id is None:
            return f"{self._bolt.context.sub_unit}:{call.hook[0]}c{call.number}"
        return f"{call.id}/{call.batch.entry.batch.input}" if len(self._bolt.plan.inputs) > 1 else call.id

    def _emit_of_hooks(self, calls: list[Call], now: float) -> None:
        with_ids = self._bolt.plan.wants_id
        payload: Payload = [
            (stream, keys, values, ids if with_ids else None)
            for stream, (keys, values, ids) in self._columns(calls).items()
        ]
        if payload:
            self._bolt.roots.open(payload, now, None, now)

    def _emit_of_tuples(self, held: _OpenBatch, calls: list[Call], now: float) -> None:
        batch, lineage = held.entry.batch, held.lineage
        for stream, (keys, values, ids) in self._columns(calls).items():
            self._bolt.metrics.tuples_out += len(keys)
            if self._bolt.observer is not None:
                self._bolt.observer(self._bolt.plan.name, stream, keys, values)
            self._bolt.outputs.push(stream, lineage, keys, values, ids if batch.ids is not None else None, now)
        count, metrics = len(calls), self._bolt.metrics
        metrics.tuples_in += count
        metrics.durations.latency.record(now - held.entry.sent, count)
        if metrics.leaf:
            metrics.durations.end_to_end.record(now - batch.due, count)
        held.left -= count
        if not held.left:
            self._ack(held)

    def _ack(self, held: _OpenBatch) -> None:
        if self._bolt.tracked:
            batch, lineage = held.entry.batch, held.lineage
            p = lineage.p if held.entry.taken else batch.id ^ lineage.p
            self._bolt.acks.add(batch.root, p, batch.id ^ lineage.d)

    # what the base asks ------------------------------------------------------------------------

    @property
    def _pausing(self) -> bool:
        """True while no call of a tuple may begin, since a cut is to be made. What is being finished is not cut before its end."""
        finishing = self._bolt.lifecycle.phase is Phase.FINISHING
        return self._bolt.reader.unaligned and self._bolt.reader.cut_is_complete and not finishing

    def wake_at(self) -> float:
        """Return when a timer of the loop is due, the rate limit lets more through, or nothing is waited for any more."""
        at = self._loop.wake_at
        if (
            self._bolt.rate_limit.cap is not None
            and self.calls.ready
            and self._bolt.lifecycle.phase.works
            and not self._bolt.outputs.blocked
        ):
            at = min(at, self._bolt.rate_limit.cap.wake_at)
        return at if self._stop_by is None else min(at, self._stop_by)

    # ticks and the end -------------------------------------------------------------------------

    @property
    def holds_ticks(self) -> bool:
        """A round begins when the one before is over, and none where a checkpoint waits for quiet."""
        return self._bolt.ticking is None and (self.calls.hooks > 0 or self._bolt.reader.alignment.number is not None)

    def _take_steps(self, steps: Iterator[None]) -> tuple[bool, bool]:
        worked = over = False
        while not over and self._emitter.rows() < OWN_ROOT_ROWS and self.calls.hooks < self.calls.most:
            over = next(steps, steps) is steps
            worked = worked or not over
        self._bolt.emit_own(self._bolt.clock())
        return worked, over

    # changes -----------------------------------------------------------------------------------

    def _recall(self) -> None:
        """Put tuples whose calls have not begun first in the inbox again: those that move are carried with the rest."""
        entries = []
        for held, group in groupby(self.calls.recall(), lambda call: call.batch):
            calls = list(group)
            entry, left = held.entry, len(calls)
            if left == len(entry.batch.keys):
                self._batches.remove(held)
            else:
                id = self._bolt.random() if self._bolt.tracked else 0
                held.lineage.p ^= id
                held.lineage.d ^= id
                held.left -= left
                entry = Entry(
                    entry.sent,
                    entry.batch._replace(
                        id=id,
                        keys=tuple([call.key for call in calls]),
                        values=tuple([call.value for call in calls]),
                        ids=None if entry.batch.ids is None else tuple([call.id for call in calls]),
                    ),
                )
                if not held.left:
                    self._ack(held)
            entries.append(entry)
        self._bolt.reader.inbox.extendleft(reversed(entries))
        self._count_taken()

    # stopping ----------------------------------------------------------------------------------

    def _on_stop(self, message: Stop) -> None:
        phase = self._bolt.lifecycle.phase
        if message.now or not phase.alive:
            self._stop_by = None
            self.cancel()
            self._stop(message)
        elif phase is not Phase.STOPPING:
            self._bolt.lifecycle.on(Event.CLOSE)
            self._stop_by = self._bolt.clock() + CLOSE_SECONDS
            self.operator.close()

    def close_objects(self) -> None:
        """Do nothing: they were closed when the sub-unit was told to stop."""

    def cancel(self) -> None:
        """Give up calls that wait."""
        self.operator.cancelling = True
        self._loop.close()
