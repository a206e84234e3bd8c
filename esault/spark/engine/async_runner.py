"""A unit with `async def process` on Spark: calls of a batch wait side by side, and all are over before the batch is.

Spark calls a task batch by batch, and takes what it has put out when the batch ends; so no call may stay open between two. Within a
batch the calls are those of the actor engine: as many at once as `concurrency` says, one at a time per key, in the order of its rows.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from esault.event_loop import SteppedLoop
from esault.flow.operators.async_operator import AsyncOperator
from esault.flow.operators.call_emitter import CallEmitter
from esault.flow.operators.calls import Call, Calls
from esault.flow.operators.operator import Operator
from esault.flow.worker.async_processing import CLOSE_SECONDS, LONGEST_STEP, LOOK_AHEAD
from esault.payload.column import plain
from esault.spark.engine.runner import Runner

__all__ = ["AsyncRunner"]


class _Held:
    """Tuples that came together, of which some are not done."""

    __slots__ = ("due", "number", "sent", "with_ids")

    def __init__(self, due: float, sent: float, with_ids: bool, number: int) -> None:
        self.due = due
        self.sent = sent
        self.with_ids = with_ids
        #: that of its first call
        self.number = number


class AsyncRunner(Runner):
    """See the module. `settle` is called before anything may follow the rows of a batch."""

    emitter: CallEmitter
    operator: AsyncOperator

    def _begin(self) -> None:
        """The event loop stays as long as the objects do: what they open in it is good for the next batch too."""
        assert self.plan.concurrency is not None
        self._calls = Calls(self.plan.concurrency)
        self._loop = SteppedLoop(time.monotonic)
        self._poll = select.poll()
        self._poll.register(self._loop.fileno(), select.POLLIN)
        #: when what hooks emit is due
        self._due = 0.0
        #: calls that have ended and are not sent on
        self._ended: list[Call] = []
        self.operator.attach(self._calls, self._loop)
        self._over()  # `open` of the one object, where it waits

    def finish(self, surplus: Operator, due: float) -> None:
        """Finish another operator of the unit, and send what it puts out. Raises WorkerError."""
        assert isinstance(surplus, AsyncOperator)
        surplus.attach(self._calls, self._loop)
        own, self.operator = self.operator, surplus
        try:
            self.each(lambda operator: operator.finishing(), due)
            self._counted = (0, 0, 0)
            self.close_objects()
        finally:
            self.operator = own
            self._counted = own.errors, own.dead_letters, own.late

    # rows ------------------------------------------------------------------------------------------

    def run(self, input: int, due: float, sent: float, keys: Any, values: Any, ids: Sequence[str] | None) -> None:
        """Have tuples processed, by `settle` at the latest. Raises WorkerError."""
        keys, values, ids = plain(keys), plain(values), self._named(input, ids)
        held = _Held(due, sent, ids is not None, self._calls.added + 1)
        for i, key in enumerate(keys):
            self._calls.add(self.operator.tuple_call(held, input, key, values[i], None if ids is None else ids[i]))
        self._over(LOOK_AHEAD)

    def holds(self, edge: int) -> bool:
        return True

    def settle(self) -> None:
        self._over()
        self._send_ended()
        if self._guarded:
            self._check_stateless()
        super().settle()

    def each(self, hook: Callable[[Operator], Any], due: float) -> None:
        self._over()
        self._send_ended()
        self._due = due
        steps = iter(self.call(lambda: hook(self.operator)) or ())
        while self.call(lambda: next(steps, self)) is not self:
            self._over(LOOK_AHEAD)
        self._over()
        self._send_ended()
        self.send(due)
        self._errors()

    def _over(self, waiting: int = 0) -> None:
        """Until no more than so many calls wait; with none, until none is open either. Raises WorkerError."""
        calls = self._calls
        try:
            while calls.waiting > waiting or (calls and not waiting):
                self._turn()
        except BaseException:
            self.let_go()
            raise

    def _turn(self) -> None:
        """Begin what may, run what is ready, send on what came of it; wait where there was nothing to do."""
        calls, loop, operator = self._calls, self._loop, self.operator
        began, at = False, time.monotonic()
        while (call := calls.next()) is not None:
            while call is not None and operator.at_once(call):
                call = calls.follow(call)
            if call is not None:
                loop.start(operator.call(call))
            began = True
        # As on actors: busy as far as its calls are taken up, since one that waits for an answer can do no more with them.
        taken_up = calls.open / calls.most
        more = loop.step(LONGEST_STEP)
        self.count.busy += (time.monotonic() - at) * taken_up
        if not (self._take() or began or more):
            at = time.monotonic()
            wait = loop.wake_at - at
            self._poll.poll(None if wait == float("inf") else max(0.0, wait * 1000))
            self.count.busy += (time.monotonic() - at) * taken_up

    def _take(self) -> bool:
        """Take note of calls that have ended; whether there were any."""
        operator = self.operator
        if operator.failure is not None:
            self.call(operator.settle)
        ended, operator.ended = operator.ended, []
        if not ended:
            return False
        self.call(operator.settle)  # what was kept of them is durable
        self._ended += ended
        for call in ended:
            self._calls.over(call)
        self._errors()
        return True

    def _send_ended(self) -> None:
        """Send on what calls emitted, in the order of their tuples: which of them ended first is another each time."""
        ended, self._ended = self._ended, []
        order = sorted(ended, key=lambda call: (call.number if call.batch is None else call.batch.number, call.number))
        for held, calls in groupby(order, lambda call: call.batch):
            self._send_on(held, list(calls))

    def _send_on(self, held: _Held | None, calls: list[Call]) -> None:
        due = self._due if held is None else held.due
        with_ids = self.plan.wants_id and (held is None or held.with_ids)
        for stream, (keys, values, ids) in self.emitter.columns(calls, self._parent if with_ids else None).items():
            self.push(stream, due, keys, values, ids if with_ids else None)
        if held is not None:
            self._count(len(calls), held.sent, held.due)

    def _parent(self, call: Call) -> str:
        """Return the prefix of the ids of a call's rows."""
        if call.id is not None:
            return call.id
        self.operator.ordinal += 1  # goes on where another worker does
        return f"{self.context.sub_unit}:{call.hook[0]}{self.operator.ordinal - 1}"

    # the end ---------------------------------------------------------------------------------------

    def close(self) -> None:
        """`close` of the objects, for so long at most."""
        self.close_objects()
        self.let_go()

    def close_objects(self) -> None:
        """The same, and the event loop stays."""
        until = time.monotonic() + CLOSE_SECONDS
        self.operator.close()
        while self.operator.closing and time.monotonic() < until:
            if not self._loop.step(LONGEST_STEP):
                wait = min(until, self._loop.wake_at) - time.monotonic()
                self._poll.poll(max(0.0, wait * 1000))

    def let_go(self) -> None:
        """Cancel what is open, which is no error."""
        self.operator.cancelling = True
        self._loop.close()
