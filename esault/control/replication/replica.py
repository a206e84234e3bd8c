"""One active replica of a unit: a unit of its own, which is restored by another replica where it lost a sub-unit.

```
WHOLE --a sub-unit dies--> DOWN --a successor is known to all--> HOLDING --all are ready--> COPYING --state is there--> DOWN
DOWN --all sub-units have all of their state--> WHOLE          HOLDING, COPYING --something else comes between--> DOWN
```

- WHOLE: roots wait for its account.
- DOWN: its rows are dropped at the senders, and roots do not wait for its account. This is so until it is WHOLE.
- HOLDING: the successor holds rows, and sub-units of another replica, the source, get ready to send it their state.
- COPYING: the table names the successor, marks go to the source with it, and state comes.

Until it is whole nothing depends on it: if anything goes wrong meanwhile, the successor is ended and the next one made.

It is one module of over 300 lines: losing a sub-unit and being restored is one course of events, drawn above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from esault.control.units.rescale_table import RescaleState
from esault.control.units.signals import (
    ChangeEnded,
    Finishing,
    Introduced,
    MayEnd,
    MayTakeOver,
    SenderConfirmed,
    SendersChanged,
)
from esault.control.units.sub_unit_record import SubUnitRecord
from esault.control.units.unit import Unit
from esault.control.units.unit_state import Component, Handler
from esault.errors import UsageError
from esault.messages.change import HoldRanges, RangesHeld, StateInstalled
from esault.messages.change_record import ChangeRecord
from esault.messages.control import Broken, Kill, Register, Table, Unregister
from esault.messages.replicas import Copy, CopyOver, CopyReady
from esault.messages.status import Status
from esault.routing.table import OutputTable

__all__ = ["Replica", "ReplicaState"]


class ReplicaState(Enum):
    """The progress of a replica, from whole to whole; see the module."""

    WHOLE = "whole"
    DOWN = "down"
    HOLDING = "holding"
    COPYING = "copying"


#: the states that may follow each
NEXT: Mapping[ReplicaState, frozenset[ReplicaState]] = {
    ReplicaState.WHOLE: frozenset({ReplicaState.DOWN}),
    ReplicaState.DOWN: frozenset({ReplicaState.HOLDING, ReplicaState.WHOLE}),
    ReplicaState.HOLDING: frozenset({ReplicaState.COPYING, ReplicaState.DOWN}),
    ReplicaState.COPYING: frozenset({ReplicaState.DOWN}),
}


@dataclass
class _Restoring:
    """A sub-unit that gets the state of another replica; there is one in HOLDING and in COPYING."""

    number: int
    new: int
    source: Replica
    #: sub-units of the source
    old_owners: set[int]
    #: sub-units that have not answered
    waiting: set[int] = field(default_factory=set)
    installed: StateInstalled | None = None
    at: float = 0.0
    #: when the table was published
    published_at: float = 0.0

    def record(self, unit: Unit, now: float, id: int) -> ChangeRecord:
        """Return the record for the report."""
        assert self.installed is not None
        return ChangeRecord(
            at=self.at,
            unit=unit.name,
            kind="copy",
            before=unit.width,
            after=unit.width,
            reason=f"brought up to date by {self.source.unit.name}",
            policy="replicas",
            moved_keys=self.installed.moved_keys,
            moved_bytes=self.installed.moved_bytes,
            held=self.installed.held,
            seconds=now - self.at,
            prepared=self.published_at - self.at,
            id=id,
        )


class Replica(Component):
    """The part that a unit has in its group: all replicas of one unit of the topology."""

    def __init__(self, unit: Unit, group: list[Replica]) -> None:
        """Join the group."""
        self.unit = unit
        self._group = group
        group.append(self)
        self._state = unit.state
        self.progress = ReplicaState.WHOLE
        self.restoring: _Restoring | None = None
        #: sub-units that were ended because what they had was not whole
        self._given_up: set[int] = set()
        #: sub-units that a death in mid-change left without some of their state
        self._spoiled: set[int] = set()
        self._numbers = 0

    def handlers(self) -> Mapping[type, Handler]:
        return {
            Introduced: self._on_introduced,
            RangesHeld: self._on_held,
            CopyReady: self._on_copy_ready,
            StateInstalled: self._on_installed,
            Register: self._on_senders_disturbed,
            Unregister: self._on_senders_disturbed,
            Broken: self._on_senders_disturbed,
            SendersChanged: self._on_news,
            ChangeEnded: self._on_news,
            Finishing: self._on_news,  # it gives nothing any more
            SenderConfirmed: self._on_sender_confirmed,
            Status: self._on_status,
        }

    # looking ---------------------------------------------------------------------------------------

    @property
    def units(self) -> Sequence[Unit]:
        return [replica.unit for replica in self._group]

    @property
    def _others(self) -> list[Replica]:
        return [replica for replica in self._group if replica is not self]

    @property
    def down(self) -> bool:
        return self.progress is not ReplicaState.WHOLE

    def _enter(self, state: ReplicaState) -> None:
        assert state in NEXT[self.progress], f"{self.unit.name}: {self.progress} is not followed by {state}"
        self.progress = state

    @property
    def busy(self) -> bool:
        gives = any(each.restoring is not None and each.restoring.source is self for each in self._group)
        return self.restoring is not None or gives

    @property
    def _unready(self) -> bool:
        """Return whether its own changes, or new senders, must be waited for."""
        return self.unit.change is not None or self.unit.senders.registering or self.unit.senders.expecting

    def check_change(self) -> None:
        if any(replica.down for replica in self._group):
            raise UsageError(
                f"unit {self.unit.plan.original!r} cannot be changed now: one of its replicas is being brought up to "
                "date; try again in a moment"
            )

    def table_for(self, table: Table) -> Table:
        """Return the table without endpoints of dead sub-units, and with the marks that ask another replica for state."""
        subs, restoring = self._state.subs, self.restoring
        peers = {owner: peer if owner in subs else ("", "", 0) for owner, peer in table.peers.items()}
        marks = {}
        if restoring is not None and self.progress is ReplicaState.COPYING:
            marks = {restoring.source.unit.name: restoring.number}
        return replace(table, peers=peers, marks=marks)

    def ended_here(self, incarnation: int) -> bool:
        return incarnation in self._given_up

    # deaths ----------------------------------------------------------------------------------------

    def dying(self, record: SubUnitRecord) -> None:
        state, incarnation = self._state, record.incarnation
        change = self.unit.change
        owned = state.table is not None and incarnation in state.table.owners()
        if change is not None and self.unit.rescaling.state is RescaleState.MOVING:
            self._spoiled |= change.new_owners | ({incarnation} if owned else set())
            owned = owned or incarnation in change.giving
        # What one that leaves had not sent is not waited for either.
        if (owned or record.leaving) and not self.down:
            self._enter(ReplicaState.DOWN)
            state.event("reachable")
        if any(self._holders(record)):
            state.measurements.died(incarnation, state_too=False)  # another replica has its state
        if self.restoring is not None and self.restoring.new == incarnation:
            self._give_up(kill=False)
        for replica in self._others:
            if replica.restoring is not None and incarnation in replica.restoring.old_owners:
                replica._give_up()

    def died(self, incarnation: int) -> None:
        state = self._state
        self._given_up.discard(incarnation)
        self._spoiled.discard(incarnation)
        if state.table is not None and state.wiring and incarnation in state.table.owners():
            # Senders would wait for it, and with them the other replicas.
            state.table.version += 1
            self.unit.senders.publish(after_death=False)
        self._poke()

    # restoring -------------------------------------------------------------------------------------

    def _holders(self, record: SubUnitRecord) -> Iterator[Replica]:
        """Yield the other replicas that have the state of this sub-unit's ranges."""
        table = self._state.table
        if not self._state.keyed or table is None:
            return
        owners = table.owners()
        place = record.incarnation if record.incarnation in owners else record.replaces or record.incarnation
        for replica in self._others:
            theirs = replica._state.table
            if theirs is not None and all(map(replica._has, {owner for _, _, owner in _overlap(table, place, theirs)})):
                yield replica

    def _has(self, incarnation: int) -> bool:
        """Return whether a sub-unit lives and has all of its state."""
        subs = self._state.subs
        return incarnation in subs and subs[incarnation].started_at is not None and incarnation not in self._spoiled

    def _source(self, record: SubUnitRecord) -> tuple[Replica | None, bool]:
        """Return a replica that can give the state of this sub-unit's ranges, and whether it can now; or None and False."""
        late: Replica | None = None
        for replica in self._holders(record):
            if replica._state.finishing:
                continue
            if any(each.restoring is not None for each in self._group) or replica._unready or self._unready:
                late = replica
            else:
                return replica, True
        return late, False

    def _on_introduced(self, message: Introduced, now: float) -> bool:
        """Have a replacement wait for what another replica can give; True: it does not take over the usual way."""
        record = message.record
        if record.incarnation in self._given_up or (
            self.restoring is not None and self.restoring.new == record.incarnation
        ):
            return True
        if self.unit.change is not None:
            self._spoiled.add(record.incarnation)
            return False
        source, can = self._source(record)
        if source is not None:
            if can:
                self._begin(record, source, now)
            return True  # else it is looked at again
        # Without state and with the rows in the other replicas, nothing has to be sent again.
        stateless = not self._state.keyed and any(not replica.down for replica in self._others)
        self.unit.lives.take_over(record, now, after_death=not stateless)
        self._state.event("check")
        return True

    def _begin(self, record: SubUnitRecord, source: Replica, now: float) -> None:
        table, theirs = self._state.table, source._state.table
        assert table is not None and theirs is not None and record.replaces is not None
        number = 1 + max(replica._numbers for replica in self._group)
        self._numbers = number
        overlap = _overlap(table, record.replaces, theirs)
        old_owners = {owner for _, _, owner in overlap}
        new = record.incarnation
        self._enter(ReplicaState.HOLDING)
        self.restoring = _Restoring(number, new, source, old_owners, {new, *old_owners}, at=now)
        olds = {owner: source._express(owner) for owner in old_owners}
        self._state.tell(new, HoldRanges(number, tuple(overlap), olds, len(old_owners) == 1))
        for owner in old_owners:
            moves = tuple((low, high, new) for low, high, old in overlap if old == owner)
            source._state.tell(owner, Copy(number, moves, {new: self._express(new)}))

    def _express(self, incarnation: int) -> str:
        return self._state.endpoints[incarnation][1]

    def _on_held(self, message: RangesHeld, now: float) -> bool:
        restoring = self.restoring
        if restoring is None or restoring.new != message.incarnation:
            return False
        self._answered(message.incarnation, message.version, now)
        return True

    def _on_copy_ready(self, message: CopyReady, now: float) -> None:
        for replica in self._others:
            replica._answered(message.incarnation, message.number, now)

    def _answered(self, incarnation: int, number: int, now: float) -> None:
        restoring = self.restoring
        if restoring is None or restoring.number != number or self.progress is not ReplicaState.HOLDING:
            return
        restoring.waiting.discard(incarnation)
        if restoring.waiting:
            return
        self._enter(ReplicaState.COPYING)
        restoring.published_at = now
        self.unit.lives.take_over(self._state.subs[restoring.new], now, after_death=False)

    def _on_installed(self, message: StateInstalled, now: float) -> bool:
        restoring = self.restoring
        if restoring is None or restoring.new != message.incarnation or restoring.number != message.version:
            return False
        restoring.installed = message
        self._state.event("check")
        return True

    def _give_up(self, kill: bool = True) -> None:
        """Give up restoring, since something is not as it was when it began: the next successor begins anew."""
        restoring, self.restoring = self.restoring, None
        assert restoring is not None
        self._enter(ReplicaState.DOWN)
        source = restoring.source._state
        for record in source.subs.values():  # marks go to all of them
            if record.built is not None:
                source.tell(record.incarnation, CopyOver(restoring.number))
        if kill:
            self._end(restoring.new)

    def _end(self, incarnation: int) -> None:
        self._given_up.add(incarnation)
        self._state.tell_keeper(Kill(incarnation))

    def _on_senders_disturbed(self, message: Register | Unregister | Broken, now: float) -> None:
        """Give up restoring when a sender comes or goes: it is not certain any more which marks were seen."""
        for replica in self._group:
            if replica.restoring is not None and self in (replica, replica.restoring.source):
                replica._give_up()

    # whole again -----------------------------------------------------------------------------------

    def _poke(self) -> None:
        """Have all replicas look whether what they wait for has come about."""
        for unit in self.units:
            unit.state.event("check")

    def _on_news(self, message: SendersChanged | ChangeEnded | Finishing, now: float) -> None:
        self._poke()

    def _on_sender_confirmed(self, message: SenderConfirmed, now: float) -> None:
        if self.down:
            self._poke()

    def _on_status(self, message: Status, now: float) -> None:
        if self.down:
            self._state.event("check")

    def check(self, now: float) -> None:
        restoring = self.restoring
        if restoring is not None and restoring.installed is not None and not self.unit.senders.switching:
            self._enter(ReplicaState.DOWN)
            self.restoring = None
            self._state.changes.append(restoring.record(self.unit, now, self.unit.alone.new_id()))
            self._poke()
            for unit in self.units:
                unit.handle(MayEnd(), now)
        if self.down and self.unit.change is None:
            self._renew_spoiled()
            for record in list(self._state.subs.values()):
                self.unit.handle(MayTakeOver(record), now)
            self._check_whole(now)

    def _renew_spoiled(self) -> None:
        """Replace sub-units that a death in mid-change left without some of their state; new ones get all from another replica."""
        table = self._state.table
        for incarnation in list(self._spoiled):
            record = self._state.subs.get(incarnation)
            assert table is not None
            if record is None or incarnation not in table.owners() or self._source(record)[0] is None:
                self._spoiled.discard(incarnation)  # no other replica has more
            elif incarnation not in self._given_up:
                self._end(incarnation)

    def _check_whole(self, now: float) -> None:
        table, senders = self._state.table, self.unit.senders
        if table is None or self.restoring is not None or self._spoiled or senders.switching or senders.registering:
            return
        if all(self._has(owner) and owner not in self._given_up for owner in table.owners()):
            self._enter(ReplicaState.WHOLE)
            self._state.event("reachable")
            self._poke()
            self.unit.handle(MayEnd(), now)


def _overlap(table: OutputTable, owner: int, other: OutputTable) -> list[tuple[int, int, int]]:
    """The owner's ranges as the other table divides them: (first, last place, owner there)."""
    return [
        (max(low, first), min(high, last), theirs)
        for low, high in table.ranges(owner)
        for first, last, theirs in other.intervals()
        if max(low, first) <= min(high, last)
    ]
