"""The senders of a unit: those that may send to it, the table that each has, and those that are leaving.

A sender registers, our sub-units confirm that they know it, and only then it gets the output table. From then on it gets
each new version and says when it has switched. One that leaves may go when all of ours have read its END
(docs/explanation/rescaling.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from esault.control.units.signals import MayEnd, MayTakeOver, SenderConfirmed, SendersChanged, SubUnitGone
from esault.control.units.sub_unit_record import SubUnitRecord
from esault.control.units.unit_state import Component, Handler, UnitState
from esault.messages.change import EndRead, Leaving, Left
from esault.messages.control import (
    Add,
    Added,
    Broken,
    Gone,
    Register,
    Registered,
    SenderSwitched,
    Table,
    TableFor,
    Unregister,
)

__all__ = ["SenderRegistry"]


class SenderRegistry(Component):
    """The senders of one unit."""

    def __init__(self, state: UnitState, adapt: Callable[[Table], Table] = lambda table: table) -> None:
        """`adapt` changes a table before a sender gets it."""
        self._state = state
        self._adapt = adapt
        #: senders that may send here: incarnation -> (unit, channel number)
        self.known: dict[int, tuple[str, int]] = {}
        #: old owner -> last change in which it gave keys away: its watermark must wait until it knows of that
        self._gave: dict[int, int] = {}
        #: senders that died when their unit was ending, with their channel numbers: newcomers must count them as ended
        self._last: dict[int, int] = {}
        #: sender unit -> successors of its dead that have not registered: until then nothing has ended
        self._expected: dict[str, int] = {}
        self._next_number = 1
        #: Adds that are not confirmed: sender -> our sub-units that have not answered
        self._adding: dict[int, set[int]] = {}
        #: tables that are not confirmed: sender -> version
        self._switching: dict[int, int] = {}
        #: a table was published because of a death or a broken channel, and not all senders have it
        self._unsettled = False
        #: frames between two that live are missing
        self._frames_missing = False
        #: sender -> those of our sub-units that have read its END
        self._ends: dict[int, set[int]] = defaultdict(set)
        #: senders that have sent END and wait for us to have read it
        self._parting: set[int] = set()
        #: senders that have had a table
        self._tabled: set[int] = set()

    def handlers(self) -> Mapping[type, Handler]:
        return {
            Register: self._on_register,
            Added: self._on_added,
            Unregister: self._on_unregister,
            Broken: self._on_broken,
            SenderSwitched: self._on_switched,
            Leaving: self._on_leaving,
            EndRead: self._on_end_read,
            SubUnitGone: self._on_sub_unit_gone,
        }

    # looking ---------------------------------------------------------------------------------------

    @property
    def registering(self) -> bool:
        """Return whether a sender is being made known to ours."""
        return bool(self._adding)

    @property
    def switching(self) -> bool:
        """Return whether a sender has not confirmed its newest table."""
        return bool(self._switching)

    @property
    def expecting(self) -> bool:
        """Return whether the successor of a dead sender has not registered."""
        return bool(self._expected)

    @property
    def unsettled(self) -> bool:
        """Return whether senders are being registered or told of a table."""
        return bool(self._unsettled or self._adding or self._switching or self._expected)

    def knows(self, incarnation: int) -> bool:
        """Return whether this sub-unit of ours has confirmed all senders."""
        return not any(incarnation in waiting for waiting in self._adding.values())

    def expect(self, unit: str, sub_units: int) -> None:
        """Wait with the end for so many sub-units of a unit that sends here from now on; 0: for none of it any more."""
        if sub_units:
            self._expected[unit] = sub_units
        else:
            self._expected.pop(unit, None)

    # coming ----------------------------------------------------------------------------------------

    def _on_register(self, message: Register, now: float) -> None:
        left = self._expected.pop(message.sender, 0) - len(message.incarnations)
        if left > 0:
            self._expected[message.sender] = left
        added = []
        for incarnation in message.incarnations:
            self.known[incarnation] = (message.sender, self._next_number)
            added.append((incarnation, self._next_number))
            self._next_number += 1
        self._add(tuple(added), now)
        self._state.say(SendersChanged(), now)

    def _add(self, added: tuple[tuple[int, int], ...], now: float) -> None:
        built = [r.incarnation for r in self._state.subs.values() if r.built and not r.leaving]
        for incarnation, _ in added:
            self._adding[incarnation] = set(built)
        for incarnation in built:
            self._state.tell(incarnation, Add(added))
        for incarnation, _ in added:
            self._check_added(incarnation, now)

    def _on_added(self, message: Added, now: float) -> None:
        record = self._state.subs.get(message.incarnation)
        if record is not None and not self._state.finishing:
            record.ended = False  # it had ended as far as it knew; now it knows of more senders
        for sender in message.senders:
            if sender in self._adding:
                self._adding[sender].discard(message.incarnation)
                self._check_added(sender, now)
        if record is not None:
            self._state.say(MayTakeOver(record), now)

    def _check_added(self, sender: int, now: float) -> None:
        if self._adding.get(sender) == set():
            if sender not in self._tabled:
                self._tabled.add(sender)
                for record in self._state.subs.values():
                    if record.leaving:  # its first table does not name them: no END will come from it
                        self._state.tell(record.incarnation, Gone(sender))
            del self._adding[sender]
            unit, _ = self.known[sender]
            self._state.tell_unit(unit, Registered(self._state.name, sender, self._table_for(sender)))
        self._state.event("check")  # a change may have waited for it
        self._state.say(SenderConfirmed(), now)

    def introduce(self, record: SubUnitRecord) -> None:
        """Make a newcomer of ours and all senders known to each other."""
        for sender in self.known:
            self._adding.setdefault(sender, set()).add(record.incarnation)
        senders = [*((s, number) for s, (_, number) in self.known.items()), *self._last.items()]
        if senders:
            self._state.tell(record.incarnation, Add(tuple(senders)))
        for sender in self._last:
            self._state.tell(record.incarnation, Gone(sender, last=True))

    # tables ----------------------------------------------------------------------------------------

    def _table_for(self, sender: int) -> Table:
        state = self._state
        assert state.table is not None
        version, pairs = state.table.snapshot()
        number = self.known[sender][1]
        peers = {owner: (*state.endpoints[owner], number) for owner in state.table.owners()}
        left = tuple(r.incarnation for r in state.subs.values() if r.leaving)
        gave = {owner: change for owner, change in self._gave.items() if owner in peers}
        return self._adapt(Table(state.name, version, pairs, peers, left, gave=gave))

    def publish(self, after_death: bool) -> None:
        """Send the table to all senders that are registered."""
        assert self._state.table is not None
        self._unsettled = self._unsettled or after_death
        for sender, (unit, _) in self.known.items():
            if sender not in self._adding:  # else it gets this very table when it is confirmed
                self._switching[sender] = self._state.table.version
                self._state.tell_unit(unit, TableFor(sender, self._table_for(sender)))
        self._check_settled()

    def gave_away(self, owners: Iterable[int], version: int) -> None:
        """Remember the sub-units that give keys away in this change, for the tables to come."""
        self._gave.update(dict.fromkeys(owners, version))

    def _on_switched(self, message: SenderSwitched, now: float) -> None:
        if message.version >= self._switching.get(message.incarnation, message.version + 1):
            del self._switching[message.incarnation]
            self._check_settled()
            self._state.say(MayEnd(), now)

    def settle(self) -> None:
        """Say so once every sender has a table that is right after a death: what is open now may be replayed."""
        self._unsettled = True
        self._check_settled()

    def _check_settled(self) -> None:
        if self._unsettled and not self._switching:
            missing, self._frames_missing = self._frames_missing, False
            self._unsettled = False
            self._state.event("settled", "frames are missing" if missing else "")
        self._state.event("check")

    # going -----------------------------------------------------------------------------------------

    def _on_unregister(self, message: Unregister, now: float) -> None:
        sender = message.incarnation
        entry = self.known.pop(sender, None)
        if entry is not None:
            if message.last:
                self._last[sender] = entry[1]
            else:
                self._expected[entry[0]] = self._expected.get(entry[0], 0) + 1
            self._adding.pop(sender, None)
            self._switching.pop(sender, None)
            for record in self._state.subs.values():
                if record.built is not None:
                    self._state.tell(record.incarnation, Gone(sender, message.last, succeeded=not message.last))
            self._check_settled()
            self._state.say(MayEnd(), now)
        self._tabled.discard(sender)
        self._parting.discard(sender)
        self._ends.pop(sender, None)
        self._state.say(SendersChanged(), now)

    def _on_broken(self, message: Broken, now: float) -> None:
        """Give a sender a new channel to each of ours that stays: frames between it and one of ours are missing."""
        state = self._state
        entry, record = self.known.get(message.sender), state.subs.get(message.incarnation)
        if entry is None or record is None or state.table is None:
            return
        if record.leaving:
            # No sender sends to it any more: what it has missed is replayed, to others.
            state.tell(record.incarnation, Gone(message.sender))
            self._frames_missing = True
            self.settle()
            return
        self.known[message.sender] = (entry[0], self._next_number)
        state.table.version += 1
        self._switching[message.sender] = state.table.version
        self._unsettled = self._frames_missing = True
        self._add(((message.sender, self._next_number),), now)
        self._next_number += 1

    def _on_leaving(self, message: Leaving, now: float) -> None:
        """Let a sender that has sent END go when all of ours have read it."""
        self._parting.add(message.incarnation)
        self._check_parting(message.incarnation)

    def _on_end_read(self, message: EndRead, now: float) -> None:
        if message.sender not in self.known:
            return
        self._ends[message.sender].add(message.incarnation)
        self._check_parting(message.sender)

    def _check_parting(self, sender: int) -> None:
        if sender not in self._parting or sender not in self.known:
            return
        built = {r.incarnation for r in self._state.subs.values() if r.built is not None}
        if built <= self._ends[sender]:
            self._parting.discard(sender)
            unit, _ = self.known.pop(sender)
            self._switching.pop(sender, None)
            self._ends.pop(sender, None)
            self._tabled.discard(sender)
            for incarnation in built:  # it has its END from there: a run may last for thousands of senders
                self._state.tell(incarnation, Gone(sender))
            self._state.tell_unit(unit, Left(self._state.name, sender))
            self._check_settled()

    # deaths of ours --------------------------------------------------------------------------------

    def not_confirmed_by(self, incarnation: int, now: float) -> None:
        """Wait no longer for what this sub-unit of ours would have confirmed."""
        for sender in list(self._adding):
            self._adding[sender].discard(incarnation)
            self._check_added(sender, now)

    def _on_sub_unit_gone(self, message: SubUnitGone, now: float) -> None:
        for readers in self._ends.values():
            readers.discard(message.incarnation)
        self.not_confirmed_by(message.incarnation, now)
        for sender in list(self._parting):
            self._check_parting(sender)
