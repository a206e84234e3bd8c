"""The splits of a source: which sub-unit reads each, and where those that none reads go on.

One sub-unit says which splits there are. Each is assigned to the sub-unit that has the fewest. Where the numbers come to
differ, as after a change, a split is revoked from one sub-unit and, once that has said where it stands, assigned to another: no split is
read by two. What a sub-unit that died had read goes to others behind the last place that it had told.

It is one module of over 300 lines: each message changes the one account of who reads what.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from esault.control.units.signals import Begun, Died, OwnersChanged
from esault.control.units.sub_unit_record import SubUnitRecord
from esault.control.units.unit_state import Component, Handler, UnitState
from esault.messages.checkpoint import Snapped
from esault.messages.splits import (
    AssignedSplit,
    AssignSplits,
    DiscoverSplits,
    ExpectSplits,
    NoMoreSplits,
    RevokeSplits,
    SplitPlace,
    SplitsEnded,
    SplitsFound,
    SplitsRevoked,
)
from esault.messages.status import Status
from esault.topology.split_source import SplitSource

__all__ = ["SplitAssignment"]


class SplitAssignment(Component):
    """The assignment of the splits of one unit.

    A checkpoint holds, for each split, what its reader said at its cut; for one that had no reader then, or was handed over
    before the cut of its reader, where it went on; else what the checkpoint before said.
    """

    def __init__(self, state: UnitState, source: SplitSource[Any, Any]) -> None:
        self._state = state
        self._most = math.inf if source.splits_at_once is None else source.splits_at_once
        #: places come from checkpoints alone
        self.exactly = False
        #: splits that none reads, in the order in which they are to be assigned
        self._waiting: dict[str, AssignedSplit] = {}
        #: who reads each, and from where on another would
        self._owner: dict[str, int] = {}
        self._known: dict[str, AssignedSplit] = {}
        #: splits that were read to their end
        self._ended: set[str] = set()
        self._ended_here = 0
        #: id -> who is to read it when its owner has given it
        self._moving: dict[str, int] = {}
        #: number -> who gives, who is to get, of the hand-overs that are on
        self._handing: dict[int, tuple[int, int]] = {}
        self._handovers = count(1)
        #: who says which splits there are; whether it has said so; and that there will be no others
        self._discoverer: int | None = None
        self._listed: set[str] | None = None
        self._last = False
        self._over = False
        #: sub-units that know what they read first
        self._told: set[int] = set()
        #: how far event time had come in splits that ended before the checkpoint that the run goes on from
        self._past: tuple[float, ...] = ()
        #: what the newest checkpoint holds
        self.durable: dict[str, SplitPlace] = {}
        #: places, for the checkpoint that is on, of splits that no reader may say; and splits that were assigned since it was begun
        self._cut: dict[str, SplitPlace] = {}
        self._fresh: set[str] = set()
        #: where splits ended, that no checkpoint says so of yet
        self._ended_at: dict[str, int] = {}

    def handlers(self) -> Mapping[type, Handler]:
        return {
            SplitsFound: self._on_found,
            SplitsRevoked: self._on_revoked,
            SplitsEnded: self._on_ended,
            Status: self._on_status,
            Died: self._on_died,
            Begun: self._on_begun,
            OwnersChanged: self._on_owners_changed,
        }

    def begin_from(self, splits: Mapping[str, SplitPlace]) -> None:
        """Begin with the places of a checkpoint."""
        self.durable = dict(splits)
        for id, place in splits.items():
            if place.ended:
                self._ended.add(id)
                self._past = tuple(map(max, place.times, self._past or place.times)) or self._past
            else:
                self._waiting[id] = AssignedSplit(id, place.position)

    @property
    def owners(self) -> Mapping[str, int]:
        """The sub-unit that reads each split."""
        return self._owner

    @property
    def counts(self) -> tuple[int, int, bool]:
        """Return how many splits have not ended, how many have since the run began, and whether no others will come."""
        return len(self._owner) + len(self._waiting), self._ended_here, self._last

    @property
    def all_ended(self) -> bool:
        """Return whether all splits that were found have been read to their end, and what they gave is processed."""
        return self._listed is not None and not self._owner and not self._waiting

    @property
    def awaits_reader(self) -> bool:
        """Return whether a split has no reader that had not caught up: none says then that it has."""
        return not all(split.caught_up for split in self._waiting.values())

    # which there are ---------------------------------------------------------------------------

    def _on_found(self, message: SplitsFound, now: float) -> None:
        if message.incarnation != self._discoverer:
            return
        later = self._listed is not None
        added = later or bool(self.durable)
        self._listed, self._last = set(message.ids), message.last
        for id in message.ids:
            if id not in self._ended and id not in self._owner and id not in self._waiting:
                self._waiting[id] = AssignedSplit(id, added=added, caught_up=later)
        if not self.exactly:
            self._ended &= self._listed
        self._balance()

    def _check_discoverer(self) -> None:
        staying = [record.incarnation for record in self._staying()]
        if self._discoverer not in staying and staying and not self._state.draining:
            self._discoverer = staying[0]
            known = self._listed is not None or self.durable or self._ended or self._waiting or self._owner
            self._state.tell(self._discoverer, DiscoverSplits(first=not known))

    # who reads which ---------------------------------------------------------------------------

    def _staying(self) -> list[SubUnitRecord]:
        return [record for record in self._state.subs.values() if not record.leaving and not record.joining]

    def _balance(self) -> None:
        staying = self._staying()
        # One that died is being replaced: its splits wait for that one.
        if not staying or any(record.started_at is None for record in staying) or self._state.draining:
            return
        self._check_discoverer()
        if self._listed is None:
            return
        loads = {record.incarnation: 0 for record in staying}
        for id, owner in self._owner.items():
            reader = self._moving.get(id, owner)
            if reader in loads:
                loads[reader] += 1
        self._assign_waiting(loads)
        if not any(record.joining for record in self._state.subs.values()):  # else some that stay may be about to leave
            self._move(loads)
        if self._last and not self._owner and not self._waiting and not self._over:
            self._over = True
            for incarnation in self._state.subs:
                self._state.tell(incarnation, NoMoreSplits())

    def _assign_waiting(self, loads: dict[int, int]) -> None:
        dealt: dict[int, list[AssignedSplit]] = {i: [] for i in loads if i not in self._told}
        for id in list(self._waiting):
            reader = min(loads, key=loads.__getitem__)
            if loads[reader] >= self._most:
                break
            loads[reader] += 1
            dealt.setdefault(reader, []).append(self._waiting.pop(id))
        for reader, splits in dealt.items():
            self._assign(reader, splits)

    def _assign(self, reader: int, splits: Iterable[AssignedSplit], handover: int = 0) -> None:
        splits = tuple(splits)
        past = () if reader in self._told else self._past
        self._told.add(reader)
        for split in splits:
            self._owner[split.id], self._known[split.id] = reader, split
        if self.exactly:
            self._fresh.update(split.id for split in splits)
        record = self._state.subs[reader]
        record.assigned += 1
        record.caught_up = record.caught_up and all(split.caught_up for split in splits)
        self._state.tell(reader, AssignSplits(splits, handover, past))

    def _move(self, loads: dict[int, int]) -> None:
        """Have splits given by those that leave, and by those that have more than others."""
        moves: dict[tuple[int, int], list[str]] = {}
        by_owner: dict[int, list[str]] = {}
        for id, owner in self._owner.items():
            if id not in self._moving:
                by_owner.setdefault(owner, []).append(id)
        for owner, ids in by_owner.items():
            while ids and (owner not in loads or (loads[owner] - min(loads.values()) > 1 and not self._waiting)):
                id, to = ids.pop(), min(loads, key=loads.__getitem__)
                loads[to] += 1
                if owner in loads:
                    loads[owner] -= 1
                self._moving[id] = to
                moves.setdefault((owner, to), []).append(id)
        for (owner, to), given in moves.items():
            handover = next(self._handovers)
            self._handing[handover] = (owner, to)
            self._state.tell(to, ExpectSplits(handover))
            self._state.tell(owner, RevokeSplits(tuple(given), to, handover))

    def _on_revoked(self, message: SplitsRevoked, now: float) -> None:
        _, to = self._handing.pop(message.handover, (0, 0))
        there = to in self._state.subs
        coming = []
        for split in message.splits:
            if self._owner.get(split.id) != message.incarnation:
                continue
            del self._owner[split.id]
            if split.id not in self._fresh and split.position is not None:
                self._cut[split.id] = SplitPlace(split.position)
            self._moving.pop(split.id, None)
            if there:
                coming.append(split)
            else:
                self._waiting[split.id] = split
        if there:  # also where all have ended meanwhile
            self._assign(to, coming, message.handover)
        self._balance()

    def _on_ended(self, message: SplitsEnded, now: float) -> None:
        for id in message.ids:
            if self._owner.get(id) != message.incarnation:
                continue
            del self._owner[id], self._known[id]
            self._moving.pop(id, None)
            self._ended.add(id)
            self._ended_here += 1
            if self.exactly:
                self._ended_at[id] = message.incarnation
        self._balance()

    # deaths and starts -------------------------------------------------------------------------

    def _on_status(self, message: Status, now: float) -> None:
        for split in message.splits:
            if self._owner.get(split.id) == message.incarnation:
                self._known[split.id] = split

    def _on_died(self, message: Died, now: float) -> None:
        dead = message.record.incarnation
        lost = {id: self._known[id] for id, owner in self._owner.items() if owner == dead}
        for id in lost:
            del self._owner[id]
            self._moving.pop(id, None)
        self._waiting = {**lost, **self._waiting}
        for handover, (owner, to) in list(self._handing.items()):
            if owner == dead:
                del self._handing[handover]
                if to in self._state.subs:
                    self._assign(to, (), handover)

    def _on_begun(self, message: Begun, now: float) -> None:
        if not self._state.draining:
            self._balance()
        elif not message.record.joining:
            # What a sub-unit that died had read is read again.
            again = [split for split in self._waiting.values() if split.until]
            self._waiting = {}
            self._assign(message.record.incarnation, again)
        if self._over:
            self._state.tell(message.record.incarnation, NoMoreSplits())

    def _on_owners_changed(self, message: OwnersChanged, now: float) -> None:
        self._balance()

    # checkpoints -------------------------------------------------------------------------------

    @property
    def moving(self) -> bool:
        """Return whether a split is on its way: who is to get it must not leave, since receivers wait to hear of time from that one."""
        return bool(self._handing)

    @property
    def wants_checkpoint(self) -> bool:
        """Return whether a sub-unit that leaves waits for one: the ends of splits are known to it alone."""
        return any(record.leaving and self.holds_end(record.incarnation) for record in self._state.subs.values())

    def holds_end(self, incarnation: int) -> bool:
        """Return whether this sub-unit has read a split to its end, and no checkpoint says so yet."""
        return incarnation in self._ended_at.values()

    def checkpoint_begun(self) -> None:
        """Note where splits go on that no reader will say: one is begun."""
        self._fresh = set()
        self._cut = {id: SplitPlace(s.position) for id, s in self._waiting.items() if s.position is not None}

    def checkpointed(self, parts: Iterable[Snapped]) -> dict[str, SplitPlace]:
        """Return where all splits go on in a checkpoint, of which these are the parts of the sub-units."""
        places = {**self.durable, **self._cut}
        for part in parts:
            places.update(part.splits)
        listed = self._listed
        if listed is not None:  # what has ended and is not there any more is forgotten
            places = {id: place for id, place in places.items() if id in listed or not place.ended}
        return places

    def checkpoint_kept(self, places: Mapping[str, SplitPlace]) -> None:
        """Note what a checkpoint that is durable holds."""
        self.durable = dict(places)
        self._ended_at = {id: at for id, at in self._ended_at.items() if id not in places or not places[id].ended}
        if self._listed is not None:
            self._ended &= self._listed | self._ended_at.keys()
