"""One copy of a unit with replicas: a unit of its own, which is brought up to date by another copy where it lost a sub-unit.

```
whole -> (a sub-unit dies) -> down: its rows are dropped at the senders, roots do not wait for its lane
      -> a successor is made and known -> it holds rows, the givers wait for marks   ("readying")
      -> the table names it, marks go to the givers with it, state comes             ("moving")
      -> whole: roots wait for its lane again
```

Until it is whole nobody depends on it: whatever goes wrong meanwhile, the successor is ended and the next one made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from esault.control.replication.grouped_unit import GroupedUnit
from esault.control.units.elastic_unit import ElasticUnit
from esault.control.units.unit import SubUnitRecord
from esault.messages.change import HoldRanges, RangesHeld, StateInstalled
from esault.messages.change_record import ChangeRecord
from esault.messages.control import Broken, Kill, Register, Table, Unregister
from esault.messages.replicas import Copy, CopyOver, CopyReady
from esault.messages.status import Status
from esault.routing.table import OutputTable

__all__ = ["ReplicaUnit"]


@dataclass
class _CopyOn:
    """A sub-unit that is being brought up to date."""

    number: int
    new: int
    old_owner: ReplicaUnit
    #: sub-units of the giver
    old_owners: set[int]
    #: who has not answered
    waiting: set[int] = field(default_factory=set)
    moving: bool = False
    installed: StateInstalled | None = None
    at: float = 0.0
    #: when the table was published
    published_at: float = 0.0

    def record(self, unit: ReplicaUnit, now: float) -> ChangeRecord:
        """What the report says of it."""
        assert self.installed is not None
        keys, size, held = self.installed.moved_keys, self.installed.moved_bytes, self.installed.held
        why = f"brought up to date by {self.old_owner.name}"
        return ChangeRecord(
            self.at,
            unit.name,
            "copy",
            unit.width,
            unit.width,
            why,
            "replicas",
            keys,
            size,
            held,
            now - self.at,
            prepared=self.published_at - self.at,
        )


class ReplicaUnit(GroupedUnit):
    """One copy. All copies of a unit are in `group`, this one included."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group: list[ReplicaUnit] = [self]
        #: a sub-unit died and its place is not filled yet, or some of its state is missing
        self.down = False
        self.copying: _CopyOn | None = None
        #: sub-units that were ended because what they had was not whole
        self._given_up: set[int] = set()
        #: sub-units that a death in mid-change left without some of their state
        self._spoiled: set[int] = set()
        self._numbers = 0

    @property
    def whole(self) -> bool:
        return not self.down and self.copying is None

    @property
    def others(self) -> list[ReplicaUnit]:
        """The other copies."""
        return [unit for unit in self.group if unit is not self]

    # deaths ------------------------------------------------------------------------------------------

    def _table_for(self, sender: int) -> Table:
        table = super()._table_for(sender)
        peers = {owner: peer if owner in self.subs else ("", "", 0) for owner, peer in table.peers.items()}
        copying = self.copying
        marks = {copying.old_owner.name: copying.number} if copying is not None and copying.moving else {}
        return replace(table, peers=peers, marks=marks)

    def died(self, incarnation: int, reason: str, now: float) -> None:
        record = self.subs.get(incarnation)
        if record is None or record.stopped:
            return
        change = self.change
        owned = self.table is not None and incarnation in self.table.owners()
        if change is not None and change.phase == "moving":
            self._spoiled |= change.new_owners | ({incarnation} if owned else set())
            owned = owned or incarnation in change.giving
        if owned and not self.down:
            self.down = True
            self.events.append(("seats", ""))
        if any(self._holders(record)):
            self.measurements.died(incarnation, state_too=False)  # another copy has its state
        copying = self.copying
        if copying is not None and copying.new == incarnation:
            self._give_up_copy(kill=False)
        for unit in self.others:
            if unit.copying is not None and incarnation in unit.copying.old_owners:
                unit._give_up_copy()
        super().died(incarnation, reason, now)
        self._given_up.discard(incarnation)
        self._spoiled.discard(incarnation)
        if owned and self.table is not None and self._wiring and incarnation in self.table.owners():
            # Senders would wait for it, and with them the other copies.
            self.table.version += 1
            self._publish(after_death=False)
        self._poke()

    def _dies_too_often(self, record: SubUnitRecord, reason: str, now: float) -> bool:
        return record.incarnation not in self._given_up and super()._dies_too_often(record, reason, now)

    def ended_here(self, incarnation: int) -> bool:
        """Whether a sub-unit was ended because another one is made in its place."""
        return incarnation in self._given_up

    # bringing up to date -----------------------------------------------------------------------------

    def _holders(self, record: SubUnitRecord) -> Iterator[ReplicaUnit]:
        """Copies that have the state of this sub-unit's ranges."""
        if not self.keyed or self.table is None:
            return
        owners = self.table.owners()
        place = record.incarnation if record.incarnation in owners else record.replaces or record.incarnation
        for unit in self.others:
            if unit.table is None:
                continue
            theirs = {owner for _, _, owner in _overlap(self.table, place, unit.table)}
            if all(o in unit.subs and unit.subs[o].started_at is not None and o not in unit._spoiled for o in theirs):
                yield unit

    def _giver(self, record: SubUnitRecord) -> tuple[ReplicaUnit | None, bool]:
        """A copy that can give the state of this sub-unit's ranges; whether it can now."""
        late: ReplicaUnit | None = None
        for unit in self._holders(record):
            if unit.finishing:
                continue
            if any(u.copying is not None for u in self.group) or unit.unready or self.unready:
                late = unit
            else:
                return unit, True
        return late, False

    @property
    def unready(self) -> bool:
        """Whether its own changes, or new senders, must be waited for."""
        return self.change is not None or bool(self._adding) or bool(self._expected)

    def _take_over(self, record: SubUnitRecord, now: float) -> None:
        if record.incarnation in self._given_up or (
            self.copying is not None and self.copying.new == record.incarnation
        ):
            return
        if self.change is not None:
            self._spoiled.add(record.incarnation)
            super()._take_over(record, now)
            return
        old_owner, can = self._giver(record)
        if old_owner is not None:
            if can:
                self._begin_copy(record, old_owner, now)
            return  # else it is looked at again
        if not self.keyed and any(self._alive(unit) for unit in self.others):
            # There is no state, and the other copies have its rows.
            assert self.table is not None and record.replaces is not None
            self._start(record, now)
            self.table.replace(record.replaces, record.incarnation)
            self.events.append(("seats", ""))
            self._publish(after_death=False)
        else:
            super()._take_over(record, now)
        self.events.append(("check", ""))

    @staticmethod
    def _alive(unit: ReplicaUnit) -> bool:
        return not unit.down

    def _begin_copy(self, record: SubUnitRecord, old_owner: ReplicaUnit, now: float) -> None:
        assert self.table is not None and old_owner.table is not None and record.replaces is not None
        number = 1 + max(unit._numbers for unit in self.group)
        self._numbers = number
        overlap = _overlap(self.table, record.replaces, old_owner.table)
        old_owners = {owner for _, _, owner in overlap}
        new = record.incarnation
        self.copying = _CopyOn(number, new, old_owner, old_owners, {new, *old_owners}, at=now)
        olds = {owner: self._express(old_owner, owner) for owner in old_owners}
        self._tell(new, HoldRanges(number, tuple(overlap), olds, len(old_owners) == 1))
        for owner in old_owners:
            moves = tuple((low, high, new) for low, high, old in overlap if old == owner)
            old_owner._tell(owner, Copy(number, moves, {new: self._express(self, new)}))

    @staticmethod
    def _express(unit: ReplicaUnit, incarnation: int) -> str:
        return unit._endpoints[incarnation][1]

    def _on_ready(self, message: RangesHeld, now: float) -> None:
        copying = self.copying
        if copying is not None and copying.new == message.incarnation:
            self._answered(message.incarnation, message.version, now)
        else:
            super()._on_ready(message, now)

    def _on_copy_ready(self, message: CopyReady, now: float) -> None:
        for unit in self.others:
            unit._answered(message.incarnation, message.number, now)

    def _answered(self, incarnation: int, number: int, now: float) -> None:
        copying = self.copying
        if copying is None or copying.number != number or copying.moving:
            return
        copying.waiting.discard(incarnation)
        if copying.waiting:
            return
        record = self.subs[copying.new]
        assert self.table is not None and record.replaces is not None
        copying.moving, copying.published_at = True, now
        self._start(record, now)
        self.table.replace(record.replaces, record.incarnation)
        self.events.append(("seats", ""))
        self._publish(after_death=False)

    def _on_installed(self, message: StateInstalled, now: float) -> None:
        copying = self.copying
        if copying is not None and copying.new == message.incarnation and copying.number == message.version:
            copying.installed = message
            self.events.append(("check", ""))
        else:
            super()._on_installed(message, now)

    def _give_up_copy(self, kill: bool = True) -> None:
        """Something is not as it was when it began: the next successor begins anew."""
        copying = self.copying
        assert copying is not None
        self.copying = None
        for record in copying.old_owner.subs.values():  # marks go to all of them
            if record.built is not None:
                copying.old_owner._tell(record.incarnation, CopyOver(copying.number))
        if kill:
            self._end(copying.new)

    def _end(self, incarnation: int) -> None:
        self._given_up.add(incarnation)
        self.outbox.append(("keeper", Kill(incarnation)))

    def _disturbed(self) -> None:
        """A sender comes or goes: who has seen which mark is not certain any more."""
        for unit in self.group:
            if unit.copying is not None and self in (unit, unit.copying.old_owner):
                unit._give_up_copy()

    def _on_register(self, message: Register, now: float) -> None:
        self._disturbed()
        super()._on_register(message, now)
        self._poke()

    def _on_unregister(self, message: Unregister, now: float) -> None:
        self._disturbed()
        super()._on_unregister(message, now)
        self._poke()

    def _on_broken(self, message: Broken, now: float) -> None:
        self._disturbed()
        super()._on_broken(message, now)

    # whole again -------------------------------------------------------------------------------------

    def _poke(self) -> None:
        """What a copy waits for may have come about."""
        for unit in self.group:
            unit.events.append(("check", ""))

    def _check_ended(self) -> None:
        before = self.finishing
        super()._check_ended()
        if self.finishing and not before:
            self._poke()  # it gives nothing any more

    def _on_status(self, message: Status, now: float) -> None:
        super()._on_status(message, now)
        if self.down:
            self.events.append(("check", ""))

    def _check_added(self, sender: int) -> None:
        super()._check_added(sender)
        if self.down:
            self._poke()

    def _check_settled(self) -> None:
        super()._check_settled()
        if self.down:
            self.events.append(("check", ""))

    def _check_done(self, now: float) -> None:
        before = self.change
        super()._check_done(now)
        if before is not None and self.change is None:
            self._poke()

    def check(self, now: float) -> None:
        super().check(now)
        copying = self.copying
        if copying is not None and copying.installed is not None and not self._switching:
            self.copying = None
            self.changes.append(copying.record(self, now))
            self._poke()
            for unit in self.group:
                unit._check_ended()
        if self.down and self.change is None:
            self._renew_spoiled()
            for record in list(self.subs.values()):
                self._check_replacement(record, now)
            self._check_whole()

    def _renew_spoiled(self) -> None:
        """Those that took part in a change in which somebody died are replaced by others that get all from another copy."""
        for incarnation in list(self._spoiled):
            record = self.subs.get(incarnation)
            assert self.table is not None
            if record is None or incarnation not in self.table.owners() or self._giver(record)[0] is None:
                self._spoiled.discard(incarnation)  # there is nobody who has more
            elif incarnation not in self._given_up:
                self._end(incarnation)

    def _check_whole(self) -> None:
        if self.table is None or self.copying is not None or self._spoiled or self._switching or self._adding:
            return
        owners = self.table.owners()
        if all(o in self.subs and self.subs[o].started_at is not None and o not in self._given_up for o in owners):
            self.down = False
            self.events.append(("seats", ""))
            self._poke()
            self._check_ended()

    @property
    def changing(self) -> bool:
        gives = any(unit.copying is not None and unit.copying.old_owner is self for unit in self.group)
        return super().changing or self.copying is not None or gives

    _HANDLERS: ClassVar[dict[type, str]] = {**ElasticUnit._HANDLERS, CopyReady: "_on_copy_ready"}


def _overlap(table: OutputTable, owner: int, other: OutputTable) -> list[tuple[int, int, int]]:
    """The owner's ranges as the other table divides them: (first, last place, owner there)."""
    return [
        (max(low, first), min(high, last), theirs)
        for low, high in table.ranges(owner)
        for first, last, theirs in other.intervals()
        if max(low, first) <= min(high, last)
    ]
