"""The merger behind the replicas of a unit: it passes on the first one of each row.

What it takes it takes over: it emits the rows as roots of its own, keeps them until they are done, and only then acks as
durable what they came from, and each later one of the same row. So an ack of a replica's rows, first or not, says that
the row is safe, and a replica may be given up at any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

from esault.flow.channel.frame import Batch, Root
from esault.flow.delivery.replica_acks import LOW
from esault.flow.delivery.roots import Payload
from esault.flow.worker.environment import Environment
from esault.flow.worker.phase import Phase
from esault.flow.worker.sub_unit import SubUnit
from esault.messages.control import AckRouting, Add, Build
from esault.topology.plan import UnitPlan

__all__ = ["Deduplicator", "MergerSubUnit"]


#: seconds for which the ids of a dead owner's roots are kept: some of their rows may be on their way
KEPT = 30.0


class MergerSubUnit(SubUnit):
    """A sub-unit for all replicas of a unit: it stands where their rows meet."""

    def __init__(self, build: Build, plan: UnitPlan, environment: Environment) -> None:
        super().__init__(build, plan, environment)
        self.deduplicator = Deduplicator()
        #: sub-units of the replicas, the dead ones included
        self._replicas: set[int] = set()
        #: stream by input
        self._names = [i.stream.partition(".")[2] if i.stream != i.source else "" for i in plan.inputs]
        #: roots of its own so far
        self._opened = 0
        #: acks that wait for roots of its own: (how many must be done, root, id)
        self._owed: deque[tuple[int, Root, int]] = deque()
        self._owners: frozenset[int] = frozenset()
        #: when owners that are gone are forgotten
        self._forget_at: float | None = None
        self.reader.on_mark = self._on_mark

    def _turn(self) -> bool:
        self._pay()
        return super()._turn()

    def _pay(self) -> None:
        """Ack as durable the batches whose roots here are done."""
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
            self.deduplicator.living(self._owners)
        reader, metrics = self.reader, self.metrics
        if not reader.inbox:
            if self.lifecycle.phase is Phase.RUNNING and reader.senders and reader.senders.ended:
                self.ending.input_ended()
            return False
        if not self.roots.credit:
            return False
        sent, batch, taken = reader.inbox.popleft()
        reader.taken += 1
        count = len(batch.keys)
        reader.backlog -= count
        payload = self._first(batch)
        if payload:
            self._opened += 1
            self.roots.open(payload, batch.due, self._opened, now)
        if not taken:
            self.acks.add(batch.root, batch.id, 0)
        self._owed.append((self._opened, batch.root, batch.id))
        metrics.tuples_in += count
        done = self.clock()
        metrics.busy += done - now
        metrics.durations.latency.record(done - sent, count)
        if metrics.leaf:
            metrics.durations.end_to_end.record(done - batch.due, count)
        return True

    def _first(self, batch: Batch) -> Payload:
        """Return the rows of a batch that come for the first time."""
        keys, values, ids = batch.keys, batch.values, batch.ids
        if ids is None:  # no replica sends such; passed on at least
            return [(self._names[batch.input], keys, values, None)]
        # A replica owns the roots of what it puts out at its end.
        first = self.deduplicator.admit(batch.root, ids, own=batch.root[0] in self._replicas)
        if not first:
            return []
        if len(first) < len(ids):
            keys = [keys[i] for i in first]
            values = [values[i] for i in first]
            ids = [ids[i] for i in first]
        return [(self._names[batch.input], keys, values, ids if self.plan.wants_id else None)]

    def _on_mark(self, root: Root, flags: int) -> None:
        if flags & LOW:
            self.deduplicator.done(root[0], root[1])

    def _on_ack_routing(self, message: AckRouting) -> None:
        super()._on_ack_routing(message)
        self._owners = frozenset(message.owners)
        self._forget_at = self.clock() + KEPT

    def _on_add(self, message: Add) -> None:
        self._replicas.update(sender for sender, _ in message.senders)
        super()._on_add(message)

    def wake_at(self) -> float:
        at = super().wake_at()
        return at if self._forget_at is None else min(at, self._forget_at)


class Deduplicator:
    """A memory of ids by the root that they descend from, until that is done: then all that is to come of it was taken.

    A root that is replayed is the same root: its rows have the ids they had. What replicas put out at their end descends
    from no root of a spout's; these ids are kept, one for each row.
    """

    def __init__(self) -> None:
        #: (owner, number) of a root -> ids of its rows that were taken
        self._taken: dict[tuple[int, int], set[str]] = {}
        #: owner -> all its roots before this number are done
        self._low: dict[int, int] = {}
        #: ids of what replicas put out in their own name
        self._ends: set[str] = set()

    def admit(self, root: Root, ids: Sequence[str], own: bool = False) -> Sequence[int]:
        """Return the places of the rows that come for the first time, and take their ids; `own`: a replica's, at its end."""
        if own:
            taken = self._ends
        else:
            name = root[:2]
            if name[1] < self._low.get(name[0], 0):
                return ()
            found = self._taken.get(name)
            taken = self._taken[name] = set() if found is None else found
        count = len(taken)
        if taken.isdisjoint(ids):
            taken.update(ids)
            if len(taken) == count + len(ids):
                return range(len(ids))
            taken.difference_update(ids)
        first = []
        for i, id in enumerate(ids):
            if id not in taken:
                taken.add(id)
                first.append(i)
        return first

    def done(self, owner: int, low: int) -> None:
        """Forget the roots of this owner before this number, which are done: nothing of them is awaited any more."""
        before = self._low.get(owner, 0)
        if low <= before:
            return
        self._low[owner] = low
        taken = self._taken
        if low - before <= len(taken):
            for number in range(before, low):
                taken.pop((owner, number), None)
        else:
            for name in [name for name in taken if name[0] == owner and name[1] < low]:
                del taken[name]

    def living(self, owners: Collection[int]) -> None:
        """Forget all owners of roots but these: what others had open is replayed, if at all, under other names."""
        for name in [name for name in self._taken if name[0] not in owners]:
            del self._taken[name]
        for owner in [owner for owner in self._low if owner not in owners]:
            del self._low[owner]

    def __len__(self) -> int:
        """Return the number of ids that are remembered."""
        return sum(map(len, self._taken.values())) + len(self._ends)
