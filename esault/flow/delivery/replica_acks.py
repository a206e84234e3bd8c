"""Accounts of roots whose rows go to the replicas of a unit: an account for each replica, beside the root's own account.

Rows that are sent to a replica, and what it makes of them until the merger has it, are accounted for under the root's name with the
replica's number in it. A root is done when its own account is settled and, for each unit with replicas that it reached, the accounts
of all replicas that were there throughout are, of which there must be one. So a replica that dies takes nothing with it that the
others have not, and nothing need be replayed; only where no replica was there throughout the root is replayed.

A sender that divides rows among replicas says so no later than it acks what it made them of, in one message and before it: so
when the root's own account is settled, all of its accounts of replicas are known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from esault.flow.channel.frame import MARK
from esault.flow.channel.lineage import Lineage
from esault.flow.channel.wire import Wire
from esault.flow.delivery.acks import Acks
from esault.flow.delivery.ledger import DONE, PROCESSED, Root
from esault.flow.delivery.roots import OpenRoot, Payload, Roots
from esault.messages.control import Build
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.topology.plan import MOST_REPLICAS

__all__ = ["LOW", "ReplicaAcks", "ReplicaRoots", "acks_and_roots", "for_replica"]

#: the number of the replica stands above the attempt in the third number of a root's name
_REPLICA = 1 << 24
#: a mark from the owner of roots to mergers: all its roots before this number are done
LOW = 8


def for_replica(root: Root, replica: int) -> Root:
    """The name under which what goes to this replica is accounted for."""
    return (root[0], root[1], root[2] + replica * _REPLICA)


class ReplicaAcks(Acks):
    """Sends what was divided among replicas before the acks of what it was made of."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._forks: dict[Root, list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._forks) or super().__bool__()

    def fork(self, name: Root, p: int, d: int) -> None:
        """Batches with these ids were opened for a replica."""
        sums = self._forks.setdefault(name, [0, 0])
        sums[0] ^= p
        sums[1] ^= d

    def take_own(self) -> Iterator[tuple[Root, list[int]]]:
        """Yield what was divided in the name of roots whose ledger is here."""
        own = [name for name in self._forks if name[0] == self._incarnation]
        return ((name, self._forks.pop(name)) for name in own)

    def send(self) -> None:
        if self._forks and self._routed:
            forks, self._forks = self._forks, {}
            for name, (p, d) in self._sums.items():
                sums = forks.setdefault(name, [0, 0])
                sums[0] ^= p
                sums[1] ^= d
            self._sums = forks
        super().send()


class _Fork:
    """The accounts of one attempt of a root beyond its own."""

    __slots__ = ("accounts", "flags", "seen", "serial")

    def __init__(self, serial: int, now: float) -> None:
        #: attempts are numbered as they are sent
        self.serial = serial
        #: what the ledger has said of the root's own account
        self.flags = 0
        #: replica -> p and d
        self.accounts: dict[int, list[int]] = {}
        #: when an ack came for a replica last
        self.seen = now


class ReplicaRoots(Roots):
    """Roots that are done when the accounts of their replicas are, and whose owner tells mergers what is done."""

    def __init__(
        self, incarnation: int, settings: Settings, acks: ReplicaAcks, emit: Callable[[Lineage, Payload], None]
    ) -> None:
        def emit_and_fork(lineage: Lineage, payload: Payload) -> None:
            emit(lineage, payload)
            for name, (p, d) in acks.take_own():
                self._divided(name, p, d)

        super().__init__(incarnation, settings, acks, emit_and_fork)
        self._forks: dict[int, _Fork] = {}
        self._serial = 0
        #: replicas that are not whole
        self._down: frozenset[int] = frozenset()
        #: replica -> the last attempt that was sent when it was not whole
        self._up_after: dict[int, int] = {}
        #: attempts up to this one may have no replica that was there throughout
        self._doubtful = 0
        self._mergers: tuple[int, ...] = ()
        self._routed = False
        self._told = -1
        self._stalls_at = 0.0

    @property
    def credit(self) -> bool:
        # Which replicas are whole must be known first: what is opened before would be taken to have reached those that were not.
        return self._routed and super().credit

    def _send(self, root: OpenRoot, now: float) -> None:
        self._serial += 1
        self._forks[root.number] = _Fork(self._serial, now)
        super()._send(root, now)

    # accounts ----------------------------------------------------------------------------------

    def _divided(self, name: Root, p: int, d: int) -> _Fork | None:
        """XOR into a replica's account; None where this is of no attempt that is open."""
        replica, attempt = divmod(name[2], _REPLICA)
        root, fork = self._open.get(name[1]), self._forks.get(name[1])
        if root is None or fork is None or root.attempt != attempt or name[0] != self._incarnation:
            return None
        sums = fork.accounts.setdefault(replica, [0, 0])
        sums[0] ^= p
        sums[1] ^= d
        return fork

    def ack(self, name: Root, p: int, d: int, now: float) -> None:
        if name[2] < _REPLICA:
            super().ack(name, p, d, now)
            return
        fork = self._divided(name, p, d)
        if fork is not None:
            fork.seen = now
            self._settle(self._open[name[1]], fork, now)

    def _apply(self, root: OpenRoot, flags: int, now: float) -> None:
        fork = self._forks[root.number]
        fork.flags |= flags
        self._settle(root, fork, now)

    def _settle(self, root: OpenRoot, fork: _Fork, now: float) -> None:
        flags = fork.flags
        if not flags:
            return
        for whole in self._whole(fork):
            # The window opens when the first replica has processed the root, its position advances when all have.
            if all(p for p, _ in whole):
                flags &= ~(PROCESSED | DONE)
            if not whole or any(d for _, d in whole):
                flags &= ~DONE
        if flags:
            super()._apply(root, flags, now)
            if root.done:
                del self._forks[root.number]

    def _whole(self, fork: _Fork) -> Iterator[list[list[int]]]:
        """For each unit with replicas that the root reached, the accounts of the replicas that were there throughout."""
        groups: dict[int, list[list[int]]] = {}
        for replica, sums in fork.accounts.items():
            whole = groups.setdefault((replica - 1) // MOST_REPLICAS, [])
            if replica not in self._down and fork.serial > self._up_after.get(replica, 0):
                whole.append(sums)
        return iter(groups.values())

    # replicas --------------------------------------------------------------------------------------

    def set_replicas(self, down: Collection[int], mergers: tuple[int, ...], now: float) -> None:
        """Set the replicas that are not whole, and the mergers that are told what is done."""
        self._routed = True
        if mergers != self._mergers:
            self._mergers, self._told = mergers, -1
        before, self._down = self._down, frozenset(down)
        if before == self._down:
            return
        for replica in before - self._down:
            self._up_after[replica] = self._serial
        self._doubtful = self._serial
        for root in list(self._open.values()):
            if not root.queued:
                self._settle(root, self._forks[root.number], now)

    def _find_lost(self) -> None:
        """Replay attempts for which no replica was there throughout, once one is there."""
        doubtful = False
        for root in list(self._open.values()):
            fork = self._forks[root.number]
            if root.queued or fork.serial > self._doubtful:
                continue
            doubtful = True
            for replica in fork.accounts:
                group = (replica - 1) // MOST_REPLICAS
                same = [other for other in fork.accounts if (other - 1) // MOST_REPLICAS == group]
                if any(other not in self._down for other in same) and all(
                    other in self._down or fork.serial <= self._up_after.get(other, 0) for other in same
                ):
                    self._replay(root)
                    break
        if not doubtful and not self._down:
            self._doubtful = 0

    def watch(self, now: float) -> None:
        super().watch(now)
        if self._down:
            self._doubtful = self._serial
        if self._doubtful:
            self._find_lost()
        if now >= self._stalls_at:
            after = self._settings.replay_after
            self._stalls_at = now + after / 10
            for root in list(self._open.values()):
                fork = self._forks[root.number]
                # While its own account is open the ledger sees to it.
                if fork.flags & DONE and fork.seen <= now - after:
                    fork.seen = now
                    self._replay(root)
        self._tell_mergers()

    def _tell_mergers(self) -> None:
        low = self._order[0].number if self._order else self._next
        if low == self._told or not self._mergers:
            return
        self._told = low
        for merger in self._mergers:
            post = self._acks.post(merger)
            if post is not None:
                post.put(MARK, (((self._incarnation, low, 0), LOW),))

    def check(self) -> None:
        super().check()
        assert set(self._forks) == set(self._open)


def acks_and_roots(
    replicas: bool,
    build: Build,
    codec: Codec,
    wire: Wire,
    emit: Callable[[Lineage, Payload], None],
    clock: Callable[[], float],
) -> tuple[Acks, Roots]:
    """Those of a sub-unit; with `replicas` where its topology has units with replicas."""

    def own(root: Root, p: int, d: int) -> None:
        roots.ack(root, p, d, clock())

    roots: Roots
    if not replicas:
        acks = Acks(build.incarnation, build.epoch, codec, wire, own)
        roots = Roots(build.incarnation, build.settings, acks, emit)
        return acks, roots
    replica_acks = ReplicaAcks(build.incarnation, build.epoch, codec, wire, own)
    roots = ReplicaRoots(build.incarnation, build.settings, replica_acks, emit)
    return replica_acks, roots
