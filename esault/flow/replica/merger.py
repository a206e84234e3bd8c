"""The gate behind the copies of a unit: passes the first copy of each row on.

What it takes it takes over: it emits the rows as roots of its own, keeps them until they are done, and only then acks as
durable what they came from, and each further copy of it. So an ack of a copy's rows, first or not, says that the row
is safe, and a copy may be given up at any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from esault.flow.channel.frame import MARK, Batch, Frame, Root
from esault.flow.delivery.replica_acks import LOW
from esault.flow.delivery.roots import Payload
from esault.flow.replica.deduplicator import Deduplicator
from esault.flow.worker.environment import Environment
from esault.flow.worker.sub_unit import SubUnit
from esault.messages.control import AckRouting, Add, Build
from esault.topology.plan import UnitPlan

__all__ = ["MergerSubUnit"]

#: seconds for which the ids of a dead owner's roots are kept: some of their rows may be on their way
KEPT = 30.0


class MergerSubUnit(SubUnit):
    """One for all copies of a unit: it stands where their rows meet."""

    def __init__(self, build: Build, plan: UnitPlan, environment: Environment) -> None:
        super().__init__(build, plan, environment)
        self.copies = Deduplicator()
        #: sub-units of the copies, the dead ones included
        self._copies: set[int] = set()
        #: stream by input
        self._names = [i.stream.partition(".")[2] if i.stream != i.source else "" for i in plan.inputs]
        #: roots of its own so far
        self._opened = 0
        #: acks that wait for roots of its own: (how many must be done, root, id)
        self._owed: deque[tuple[int, Root, int]] = deque()
        self._owners: frozenset[int] = frozenset()
        #: when owners that are gone are forgotten
        self._forget_at: float | None = None

    def _turn(self) -> bool:
        self._pay()
        return super()._turn()

    def _pay(self) -> None:
        """Ack as durable what has become so."""
        owed = self._owed
        done = self.roots.committed or 0
        while owed and owed[0][0] <= done:
            _, root, id = owed.popleft()
            self.acks.add(root, 0, id)

    def _work(self, now: float) -> bool:
        if self.roots.overdue and self.roots.replay_one(now):
            return True
        if self._forget_at is not None and now >= self._forget_at:
            self._forget_at = None
            self.copies.living(self._owners)
        if not self.inbox:
            if not self.ended and bool(self.senders) and self.senders.ended:
                self.say_ended()
            return False
        if not self.roots.credit:
            return False
        sent, batch, taken = self.inbox.popleft()
        self.taken += 1
        count = len(batch.keys)
        self.backlog -= count
        payload = self._first(batch)
        if payload:
            self._opened += 1
            self.roots.open(payload, batch.due, self._opened, now)
        if not taken:
            self.acks.add(batch.root, batch.id, 0)
        self._owed.append((self._opened, batch.root, batch.id))
        self.tuples_in += count
        done = self.clock()
        self.busy += done - now
        self.latency.record(done - sent, count)
        if self._leaf:
            self.end_to_end.record(done - batch.due, count)
        return True

    def _first(self, batch: Batch) -> Payload:
        """What of a batch comes for the first time."""
        keys, values, ids = batch.keys, batch.values, batch.ids
        if ids is None:  # no copy sends such; passed on at least
            return [(self._names[batch.input], keys, values, None)]
        # What a copy puts out at its end it owns itself.
        first = self.copies.admit(batch.root, ids, own=batch.root[0] in self._copies)
        if not first:
            return []
        if len(first) < len(ids):
            keys = [keys[i] for i in first]
            values = [values[i] for i in first]
            ids = [ids[i] for i in first]
        return [(self._names[batch.input], keys, values, ids if self.plan.wants_id else None)]

    def _read_express(self, frame: Frame) -> None:
        if frame.kind == MARK:
            for root, flags in frame.body:
                if flags & LOW:
                    self.copies.done(root[0], root[1])
        super()._read_express(frame)

    def _on_ack_routing(self, message: AckRouting) -> None:
        super()._on_ack_routing(message)
        self._owners = frozenset(message.owners)
        self._forget_at = self.clock() + KEPT

    def _on_add(self, message: Add) -> None:
        self._copies.update(sender for sender, _ in message.senders)
        super()._on_add(message)

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        **SubUnit._HANDLERS,
        AckRouting: _on_ack_routing,
        Add: _on_add,
    }

    def wake_at(self) -> float:
        at = super().wake_at()
        return at if self._forget_at is None else min(at, self._forget_at)

    def _finish_steps(self) -> Iterator[None]:
        return iter(())
