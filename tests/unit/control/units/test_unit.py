"""A unit as a whole: whoever dies at whatever step, each place has one owner, and its next life is like this one."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from one_unit import OneUnit

from esault import UsageError
from esault.control.units.rescale_table import RescaleState
from esault.messages.change import (
    HandOverRanges,
    HandOverTo,
    HoldRanges,
    LostOldOwner,
    RangesHandedOver,
    RangesHeld,
    StateInstalled,
)
from esault.messages.control import Add, Added, Ended, Fork, Registered, SenderSwitched, TableFor


def test_a_message_that_no_unit_knows_is_not_taken():
    one = OneUnit().running()
    assert not one.unit.handle(object(), one.now)


def test_the_next_life_has_the_shares_and_the_record_of_this_one():
    one = OneUnit().running()
    one.reach(RescaleState.STARTING)
    shares = one.unit.table.intervals()
    after = one.unit.successor(20.0)
    (dropped,) = after.changes
    assert dropped.dropped == "all went back to a checkpoint"
    assert (after.died_at, after.width, after.change) == (20.0, 2, None)
    after.start(20.0)
    first, second = after.subs
    assert after.lives.first_table([first, second]).intervals() == [
        (low, high, first if owner == 1 else second) for low, high, owner in shares
    ]
    assert after.history[-1] == (20.0, 2)


def test_a_unit_without_replicas_is_never_down():
    one = OneUnit().running()
    one.unit.died(1, "killed", one.now)
    assert not one.unit.down
    assert list(one.unit.all_replicas) == [one.unit]
    assert not one.unit.ended_here(1)


class Neighbours(RuleBasedStateMachine):
    """Sub-units and a sender that answer, die, and are asked to change, in any order."""

    def __init__(self):
        super().__init__()
        self.one = OneUnit().running()
        self.unit = self.one.unit
        self.mail = deque()
        self.versions = [1]
        self.published = []
        self.unborn = False
        #: new owners whose `RangesHeld` is on its way -> it is followed by `StateInstalled`, since no state is to come
        self.holding = {}
        self.held = set()
        self.take()

    def take(self):
        for to, message in self.one.sent():
            if isinstance(message, Fork):
                self.mail.append(("built", message.build.incarnation))
            elif isinstance(message, Add):
                self.mail.append(("say", to, Added(to, tuple(s for s, _ in message.senders))))
            elif isinstance(message, HoldRanges):
                self.holding[to] = not message.olds
                self.mail.append(("say", to, RangesHeld(to, message.version)))
            elif isinstance(message, HandOverRanges):
                news = tuple(message.news)
                self.mail.append(("say", to, RangesHandedOver(to, message.version, news)))
                self.mail.extend(("say", new, StateInstalled(new, message.version)) for new in news)
            elif isinstance(message, HandOverTo):
                self.mail.append(("say", message.new, StateInstalled(message.new, message.version)))
            elif isinstance(message, LostOldOwner) and to in self.holding:
                self.holding[to] = True
            elif isinstance(message, LostOldOwner) and to in self.held:
                self.mail.append(("say", to, StateInstalled(to, message.version)))
            elif isinstance(message, (TableFor, Registered)):
                self.published.append(message.table)
                self.mail.append(("say", None, SenderSwitched(100, message.table.version)))
        while self.unit.events:
            if self.unit.events.popleft()[0] == "check":
                self.unit.check(self.one.now)
                self.one.now += 1.0

    def answer(self, which):
        what, *rest = self.mail[which % len(self.mail)]
        del self.mail[which % len(self.mail)]
        if what == "built":
            if rest[0] in self.unit.subs:
                self.one.built(rest[0])
        elif rest[0] is None or rest[0] in self.unit.subs:
            self.one.say(rest[1])
            if isinstance(rest[1], RangesHeld) and rest[0] in self.holding:
                self.held.add(rest[0])
                if self.holding.pop(rest[0]):  # a sub-unit says that it holds before it says that all is there
                    self.mail.append(("say", rest[0], StateInstalled(rest[0], rest[1].version)))
        self.take()

    @precondition(lambda self: self.mail)
    @rule(which=st.integers(0, 5))
    def go_on(self, which):
        self.answer(which)

    @precondition(lambda self: self.mail)
    @rule()
    def settle(self):
        while self.mail:
            self.answer(0)

    @rule(what=st.sampled_from(["split", "merge", "move"]), which=st.integers(0, 5))
    def change(self, what, which):
        owners = self.unit.table.owners()
        try:
            getattr(self.unit, what)(owners[which % len(owners)], self.one.now)
        except UsageError:
            return
        self.take()

    @rule(which=st.integers(0, 5))
    def die(self, which):
        self.one.now += 5.0
        # A unit is given up where some die in a row before they are started.
        victims = [i for i, r in self.unit.subs.items() if r.started_at is not None or not self.unborn]
        if not victims:
            return
        self.unborn = self.unit.subs[victims[which % len(victims)]].started_at is None
        self.unit.died(victims[which % len(victims)], "killed", self.one.now)
        self.take()

    @invariant()
    def each_place_has_one_owner_in_the_table_that_the_sender_is_given(self):
        self.one.check_owners()
        for table in self.published:
            assert min(table.pairs)[0] == 0
            assert {owner for _, owner in table.pairs} == set(table.peers)
        self.published.clear()
        assert self.unit.table.version >= self.versions[-1]
        self.versions.append(self.unit.table.version)

    def teardown(self):
        for _ in range(1000):
            if not self.mail:
                break
            self.answer(0)
        assert self.unit.rescaling.state is RescaleState.IDLE
        assert all(r.started_at is not None for r in self.unit.subs.values())
        assert set(self.unit.table.owners()) == {i for i, r in self.unit.subs.items() if not r.leaving}
        for incarnation in list(self.unit.subs):
            self.one.say(Ended(incarnation))


Neighbours.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestNeighbours = Neighbours.TestCase


@pytest.mark.parametrize("state", [RescaleState.STARTING, RescaleState.HOLDING, RescaleState.MOVING])
@pytest.mark.parametrize("victim", [1, 2, 3])
def test_whoever_dies_in_whatever_state_each_place_has_one_owner(victim, state):
    one = OneUnit().running()
    one.reach(state)
    one.unit.died(victim, "killed", one.now)
    one.check_owners()
    dropped = state is not RescaleState.MOVING
    assert (one.unit.change is None) == dropped
    if victim == 2 and dropped:
        assert one.unit.changes[0].dropped == "count/2 died"
