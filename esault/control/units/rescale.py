"""One change of a unit's table, from its request to its end (docs/explanation/rescaling.md; Zhan et al. 2017, growth and shrinkage).

Every change is a list of moves (range, old owner, new owner) and one new table version. New owners are forked and made
known to all senders first. They hold rows of what they get (`HoldRanges`) before the table is published. Old owners carry
rows of what they give (`HandOverRanges`) from then on. What fails before the table is published drops the change; what
fails after it is replaced, and the change goes on. `rescale_table` says which message does what in which state; here is
what each effect of the table does, all in one place since they share the change.

It is one module of over 300 lines: the effects of the table in `rescale_table` stand together, in the order of a
change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from esault.control.units.change import Change, Requested
from esault.control.units.lives import Lives
from esault.control.units.rescale_table import COMPLETIONS, MESSAGES, TABLE, Completion, Effect, Guard, RescaleState
from esault.control.units.sender_registry import SenderRegistry
from esault.control.units.signals import (
    ChangeEnded,
    Died,
    Introduced,
    MayEnd,
    OwnersChanged,
    Replaced,
    SubUnitGone,
    WentBack,
)
from esault.control.units.subscales import cut, divided
from esault.control.units.unit_state import Component, Handler, UnitState
from esault.control.units.unit_throttle import UnitThrottle
from esault.errors import UsageError
from esault.messages.change import (
    GIVES,
    TAKES,
    Cancel,
    HandOverRanges,
    HandOverTo,
    HoldRanges,
    Leave,
    LostOldOwner,
    RangesHandedOver,
    RangesHeld,
    StateInstalled,
)
from esault.messages.control import Finish, Kill
from esault.routing.table import Move, OutputTable
from esault.routing.table_change import dealt

__all__ = ["Rescale"]


class Rescale(Component):
    """The change of a unit that is on, if one is."""

    def __init__(self, state: UnitState, senders: SenderRegistry, lives: Lives, throttle: UnitThrottle) -> None:
        self._unit = state
        self._senders = senders
        self._lives = lives
        self._throttle = throttle
        self.state = RescaleState.IDLE
        self.change: Change | None = None
        self._effects: dict[Effect, Callable[[Any, float], bool | None]] = {
            Effect.REFUSE: self._refuse,
            Effect.FORK_NEW_OWNERS: self._fork_new_owners,
            Effect.TELL_NEW_OWNERS_TO_HOLD: self._tell_new_owners_to_hold,
            Effect.NOTE_HELD: self._note_held,
            Effect.PUBLISH_TABLE: self._publish_table,
            Effect.TELL_OLD_OWNERS_TO_HAND_OVER: self._tell_old_owners_to_hand_over,
            Effect.LET_THE_ENDED_FINISH: self._let_the_ended_finish,
            Effect.HOLD_BEFORE_TAKING_OVER: self._hold_before_taking_over,
            Effect.LET_REPLACEMENT_TAKE_OVER: self._let_replacement_take_over,
            Effect.NOTE_INSTALLED: self._note_installed,
            Effect.NOTE_HANDED_OVER: self._note_handed_over,
            Effect.GO_ON_WITHOUT_THE_DEAD: self._go_on_without_the_dead,
            Effect.RENAME_LATER: self._rename_later,
            Effect.BEGIN_SUBSCALE: self._begin_subscale,
            Effect.PUT_SUBSCALE_OFF: self._put_subscale_off,
            Effect.DROP: self._drop,
            Effect.RECORD_AS_DROPPED: self._record_as_dropped,
            Effect.RECORD_AS_DONE: self._record_as_done,
            Effect.RECORD_AS_CUT_SHORT: self._record_as_cut_short,
            Effect.RECORD: self._record,
        }
        self._guards: dict[Guard, Callable[[float], bool]] = {
            Guard.NEW_OWNERS_STARTED: self._new_owners_started,
            Guard.OVERTAKEN: self._overtaken,
            Guard.ALL_HOLD: self._all_hold,
            Guard.ALL_MOVED: self._all_moved,
            Guard.NOTHING_LEFT: lambda now: not self._on.later,
            Guard.INPUT_ENDED: self._input_ended,
            Guard.ALL_STARTED: self._all_started,
        }

    def handlers(self) -> Mapping[type, Handler]:
        return {SubUnitGone: self._on_sub_unit_gone, **{kind: partial(self._step, kind) for kind in MESSAGES}}

    @property
    def moving(self) -> bool:
        """Return whether a change is on, and not between two subscales."""
        return self.change is not None and not (self.state is RescaleState.BETWEEN and self._all_there)

    def _step(self, kind: type, message: Any, now: float) -> bool:
        """Do what the table says. True: no other component is to see the message."""
        cell = TABLE[self.state].get(kind)
        if cell is None or not self._is_meant(message):
            return False
        taken = self._do(cell.effects, cell.next, message, now)
        while (completion := self._completion(now)) is not None:
            self._do(completion.effects, completion.next, message, now)
        return taken

    def _completion(self, now: float) -> Completion | None:
        """Return the first one of this state that has what it waits for."""
        return next((each for each in COMPLETIONS.get(self.state, ()) if self._guards[each.guard](now)), None)

    def _do(self, effects: tuple[Effect, ...], after: RescaleState | None, message: Any, now: float) -> bool:
        before = self.state
        self.state = after or before
        taken = False
        try:
            for effect in effects:
                taken = self._effects[effect](message, now) is True or taken
        except (UsageError, ValueError):  # refused: nothing is changed
            self.state = before
            raise
        return taken

    def _is_meant(self, message: Any) -> bool:
        """Return False for an answer to another change than the one that is on: it came late."""
        if isinstance(message, (RangesHeld, StateInstalled, RangesHandedOver)):
            return self.change is not None and message.version == self.change.version
        return True

    @property
    def _on(self) -> Change:
        assert self.change is not None
        return self.change

    # the request -----------------------------------------------------------------------------------

    def _refuse(self, message: Requested, now: float) -> None:
        raise UsageError(f"unit {self._unit.name!r} is being changed already; try again when that is over")

    def _fork_new_owners(self, request: Requested, now: float) -> None:
        unit = self._unit
        assert unit.table is not None
        made: list[int] = []
        try:
            while len(made) < request.news:
                made.append(self._lives.fork_newcomer(request.host))
            table = request.table_of(made)
        except (UsageError, ValueError):
            for incarnation in made:
                del unit.subs[incarnation]
                unit.tell_keeper(Kill(incarnation))
            raise
        table.version = unit.table.version
        moves = self._moves_to(table, made)
        parts = divided(unit, moves, len(self._senders.known))
        first = cut(unit.table, parts) if len(parts) > 1 else table
        self.change = Change(
            id=request.id,
            kind=request.kind,
            table=first,
            moves=parts[0] if parts else [],
            news=set(made),
            at=now,
            reason=request.reason,
            policy=request.policy,
            before=unit.width,
            checkpoint=unit.checkpoints.newest,
            final=table if len(parts) > 1 else None,
            subscales=len(parts),
            later=deque(parts[1:]),
        )

    def _moves_to(self, table: OutputTable, news: list[int]) -> list[Move]:
        """Return what moves: the ranges that get other owners; where any sub-unit will do, rows to new ones, if all others stay."""
        unit = self._unit
        assert unit.table is not None
        if not unit.plan.shares_waiting:
            return unit.table.moves_to(table)
        olds = unit.table.owners()
        return dealt(olds, news) if set(olds) <= set(table.owners()) else []

    def _new_owners_started(self, now: float) -> bool:
        subs = self._unit.subs
        return all(new in subs and subs[new].started_at is not None for new in self._on.news)

    # holding ---------------------------------------------------------------------------------------

    def _tell_new_owners_to_hold(self, message: Any, now: float) -> None:
        change = self._on
        assert self._unit.table is not None
        change.table.version = self._unit.table.version
        change.waiting = change.new_owners if self._unit.moves_rows else set()
        for new_owner in change.waiting:
            self._send_hold(new_owner, change.old_owners, new_owner in change.news)
        for old_owner in self._copied - change.waiting:
            self._unit.tell(old_owner, HoldRanges(change.version, (), {}, broadcast=GIVES))
        change.waiting |= self._copied

    @property
    def _copied(self) -> set[int]:
        """Sub-units whose broadcast state goes to newcomers."""
        return self._on.old_owners if self._unit.plan.broadcast_inputs and self._on.news else set()

    def _send_hold(self, new_owner: int, old_owners: set[int], newcomer: bool) -> None:
        change = self._on
        moves = tuple((m.low, m.high, m.old) for m in change.moves if m.new == new_owner and m.old in old_owners)
        olds = {old: self._unit.endpoints[old][1] for _, _, old in moves}
        # All that comes to a newcomer is of its new ranges: it need not look where each key belongs.
        fresh = new_owner in change.news and change.old_owners_of(new_owner) == set(olds) and len(olds) == 1
        everything = self._unit.plan.objects == "unit" or fresh
        broadcast = GIVES if new_owner in self._copied else ""
        if newcomer and self._unit.plan.broadcast_inputs:
            broadcast = TAKES
        self._unit.tell(new_owner, HoldRanges(change.version, moves, olds, everything, broadcast))

    def _note_held(self, message: RangesHeld, now: float) -> None:
        self._on.waiting.discard(message.incarnation)

    def _all_hold(self, now: float) -> bool:
        # A sender that is being registered is confirmed first: it would not be waited for else.
        return not self._on.waiting and not self._senders.registering

    def _overtaken(self, now: float) -> bool:
        """Return whether a sender whose channel broke meanwhile has had this version already.

        It would take no other table for it, and its barrier would be taken for a word that it sends by the new one.
        """
        assert self._unit.table is not None
        return self._all_hold(now) and self._unit.table.version >= self._on.version

    # moving ----------------------------------------------------------------------------------------

    def _publish_table(self, message: Any, now: float) -> None:
        change, unit = self._on, self._unit
        assert unit.table is not None
        change.published_at = change.published_at or now
        published = change.version
        unit.table = change.table.copy()
        unit.table.version = published
        owners = set(unit.table.owners())
        for record in unit.subs.values():
            record.leaving = record.incarnation not in owners and not record.joining
            if record.leaving:
                unit.tell(record.incarnation, Leave())
        for incarnation in change.news:
            unit.subs[incarnation].joining = False
        self._throttle.share(now)
        if unit.moves_rows and unit.plan.watermarks:
            self._senders.gave_away(change.old_owners, change.version)
        self._senders.publish(after_death=False)
        unit.say(OwnersChanged(), now)

    def _tell_old_owners_to_hand_over(self, message: Any, now: float) -> None:
        change, unit = self._on, self._unit
        assert unit.table is not None
        if not unit.moves_rows:
            return
        owners, senders = set(unit.table.owners()), tuple(self._senders.known)
        change.waiting, change.giving = change.new_owners, change.old_owners
        for old_owner in change.old_owners:
            moves = tuple((m.low, m.high, m.new) for m in change.moves if m.old == old_owner)
            news = {new: unit.endpoints[new][1] for _, _, new in moves}
            # One that gives all it has to one other need not look where each key belongs.
            everything = unit.plan.objects == "unit" or (old_owner not in owners and len(news) == 1)
            later = tuple((m.low, m.high, m.new) for part in change.later for m in part if m.old == old_owner)
            unit.tell(old_owner, HandOverRanges(change.version, moves, news, senders, everything, later))

    def _let_the_ended_finish(self, message: Any, now: float) -> None:
        for record in self._unit.subs.values():
            if record.leaving and record.ended:  # it had ended before it knew; it gives first
                self._unit.tell(record.incarnation, Finish(leaving=True))

    def _note_installed(self, message: StateInstalled, now: float) -> None:
        self._on.waiting.discard(message.incarnation)
        self._on.held = max(self._on.held, message.held)

    def _note_handed_over(self, message: RangesHandedOver, now: float) -> None:
        change = self._on
        change.giving.discard(message.incarnation)
        for move in change.moves:
            if move.old == message.incarnation and move.new in change.waiting and move.new not in message.news:
                # It was done with the predecessor of this new owner before it heard of the death.
                self._unit.tell(move.new, LostOldOwner(change.version, message.incarnation))
        change.moved_keys += message.moved_keys
        change.moved_bytes += message.moved_bytes

    def _all_moved(self, now: float) -> bool:
        return not self._on.waiting and not self._on.giving and not self._senders.switching

    # the next subscale ----------------------------------------------------------------------------

    def _all_started(self, now: float) -> bool:
        """Return whether all owners are there, and no checkpoint waits: there is one between two subscales at most."""
        checkpoints = self._unit.checkpoints
        return self._all_there and not checkpoints.holds_up(self._on.checkpoint, now)

    @property
    def _all_there(self) -> bool:
        """Return whether every owner is there: one that died has been replaced, and the senders know."""
        unit = self._unit
        assert unit.table is not None
        records = [unit.subs.get(owner) for owner in unit.table.owners()]
        there = all(record is not None and record.started_at is not None for record in records)
        return there and not self._on.dying and not self._senders.switching

    def _begin_subscale(self, message: Any, now: float) -> None:
        change, table = self._on, self._unit.table
        assert table is not None
        change.moves = change.later.popleft()
        change.news = set()  # they have ranges by now, and their broadcast state
        change.checkpoint = self._unit.checkpoints.newest
        after = table.copy()
        for move in change.moves:
            after.assign(move.low, move.high, move.new)
        after.version = table.version
        change.table = after

    def _put_subscale_off(self, message: Died, now: float) -> None:
        """A sub-unit died before the senders knew of this subscale: it is made when the dead one has been replaced."""
        change, unit = self._on, self._unit
        assert unit.table is not None
        unit.table.version += 1  # so that no late answer is taken for one to the next subscale
        for new_owner in change.new_owners - {message.record.incarnation}:
            unit.tell(new_owner, Cancel(change.version))
        change.later.appendleft(change.moves)
        change.moves, change.waiting, change.dying = [], set(), True

    def _rename_later(self, message: Replaced, now: float) -> None:
        successor = self._successor(message)
        self._on.dying = False
        if successor is not None:
            self._on.rename_later(message.record.incarnation, successor)

    def _input_ended(self, now: float) -> bool:
        """Return whether nothing is left but to finish: which sub-unit does that for a key makes no difference, and the end waits for a change."""
        subs, senders = self._unit.subs.values(), self._senders
        return (
            all(record.ended for record in subs) and self._all_there and not (senders.registering or senders.expecting)
        )

    def _record_as_cut_short(self, message: Any, now: float) -> None:
        change = self._on
        assert change.final is not None
        whole = len(change.final.owners()) == self._unit.width
        self._record(message, now, "" if whole else "all input of the unit had come before all keys had moved")

    def _record(self, message: Any, now: float, dropped: str = "") -> None:
        change, self.change = self._on, None
        unit = self._unit
        assert unit.table is not None
        if change.final is not None:  # the senders keep the cuts: each place has the same owner by both tables
            unit.table.join_cuts({low for low, _, _ in change.final.intervals()})
        unit.changes.append(change.record(unit.name, now, unit.width, dropped))
        unit.history.append((now, unit.width))
        unit.event("changed")
        unit.say(MayEnd(), now)
        unit.say(ChangeEnded(), now)

    # deaths ----------------------------------------------------------------------------------------

    def _drop(self, message: Died, now: float) -> None:
        unit, dead = self._unit, message.record.incarnation
        change, copied = self._on, self._copied
        if dead in change.news:
            unit.subs.pop(dead)
            self._lives.forget(dead, now)
        self.change = None
        assert unit.table is not None
        unit.table.version += 1  # so that no late answer is taken for one to the next change
        for new_owner in (change.new_owners | copied) - change.news if unit.moves_rows else ():
            unit.tell(new_owner, Cancel(change.version))
        for incarnation in change.news:
            if unit.subs.pop(incarnation, None) is not None:
                self._lives.forget(incarnation, now)
                unit.tell_keeper(Kill(incarnation))
        unforked = message.record.unforked
        why = f"{unit.name}/{dead} could not be started: {unforked}" if unforked else f"{unit.name}/{dead} died"
        unit.changes.append(change.record(unit.name, now, unit.width, dropped=why))
        unit.event("changed")
        unit.say(MayEnd(), now)  # all may have ended while it was on

    def _hold_before_taking_over(self, message: Introduced, now: float) -> bool:
        """Have the replacement of a new owner hold rows before any sender sends to it; True if it is one."""
        change, incarnation = self._on, message.record.incarnation
        if incarnation not in change.waiting:
            return False
        if incarnation not in change.holding_anew:
            change.holding_anew.add(incarnation)
            self._send_hold(incarnation, change.giving, newcomer=True)
        return True

    def _let_replacement_take_over(self, message: RangesHeld, now: float) -> None:
        change, record = self._on, self._unit.subs.get(message.incarnation)
        if message.incarnation not in change.holding_anew:
            return
        change.holding_anew.discard(message.incarnation)
        if record is None:
            return
        self._lives.take_over(record, now)
        for old_owner in change.giving:
            if old_owner in self._unit.subs and record.replaces is not None:
                express = self._unit.endpoints[record.incarnation][1]
                self._unit.tell(old_owner, HandOverTo(change.version, record.replaces, record.incarnation, express))

    def _go_on_without_the_dead(self, message: Replaced, now: float) -> None:
        change, dead = self._on, message.record.incarnation
        change.holding_anew.discard(dead)
        if dead in change.giving:
            change.giving.discard(dead)
            for new_owner in change.waiting:
                if any(m.new == new_owner and m.old == dead for m in change.moves):
                    self._unit.tell(new_owner, LostOldOwner(change.version, dead))
        successor = self._successor(message)
        if dead in change.waiting:
            if successor is None:
                change.waiting.discard(dead)
            else:
                change.rename(dead, successor)

    def _successor(self, message: Replaced) -> int | None:
        """Return the one that takes the place of the dead one, or of whom that was to replace."""
        record, subs = message.record, self._unit.subs.values()
        named = (record.incarnation, record.replaces)
        return next((r.incarnation for name in named if name is not None for r in subs if r.replaces == name), None)

    # the end ---------------------------------------------------------------------------------------

    def _record_as_dropped(self, message: WentBack, now: float) -> None:
        change, self.change = self._on, None
        unit = self._unit
        unit.changes.append(change.record(unit.name, now, unit.width, dropped="all went back to a checkpoint"))

    def _record_as_done(self, message: WentBack, now: float) -> None:
        """The sub-units of the final table begin with the state of the checkpoint: nothing is left to move."""
        change, self.change = self._on, None
        unit = self._unit
        if change.final is not None:
            unit.table = change.final.copy()
        unit.changes.append(change.record(unit.name, now, unit.width))
        unit.history.append((now, unit.width))

    def _on_sub_unit_gone(self, message: SubUnitGone, now: float) -> None:
        """Forget the endpoints of sub-units that are gone and that no table names."""
        unit = self._unit
        if self.change is None and unit.table is not None:
            named = {*unit.subs, *unit.table.owners()}
            unit.endpoints = {i: endpoints for i, endpoints in unit.endpoints.items() if i in named}
