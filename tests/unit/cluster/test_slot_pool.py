"""Slots of a node that several runs share: who gets them, who gives them, and that nothing swings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from esault.cluster.slot_messages import SlotDemand
from esault.cluster.slot_pool import PREEMPT_AFTER, SlotClaim, SlotPool, allocate


def claim(run, priority, held, wanted, least=1):
    return SlotClaim(run, run, priority, held, held, wanted, least)


@pytest.mark.parametrize(
    ("claims", "found"),
    [
        # who has the highest priority gets all that it wants, and the others keep their least
        ([claim("low", 1, 7, 7, 2), claim("high", 9, 1, 8)], {"low": 2, "high": 6}),
        ([claim("low", 1, 7, 7, 2), claim("mid", 5, 0, 2, 0), claim("high", 9, 1, 3)], {"low": 3, "mid": 2, "high": 3}),
        # of the same priority none takes from another, and what is free goes to who has least
        ([claim("one", 1, 6, 8), claim("two", 1, 1, 8)], {"one": 6, "two": 2}),
        ([claim("one", 1, 1, 8), claim("two", 1, 2, 8)], {"one": 4, "two": 4}),
        # one without a priority keeps what it has
        ([claim("old", None, 5, 0), claim("high", 9, 1, 8)], {"old": 5, "high": 3}),
        ([claim("low", 1, 3, 2)], {"low": 2}),
    ],
)
def test_slots_go_by_priority_from_the_least_up(claims, found):
    assert allocate(8, claims) == found


class Runs:
    """Runs on one node, that shrink a slot a turn and do at once what else they are told. A turn is a fifth of a second."""

    TURN = 0.2

    def __init__(self, slots):
        self.pool = SlotPool(slots)
        self.now = 0.0
        self.held, self.least, self.wants = {}, {}, {}
        self.limit, self.number = {}, {}
        #: (when, run) of each time that a run was told to hold less than it used
        self.preempted = []

    def add(self, run, priority, held, least=1):
        assert self.pool.admit(run, run, held, priority)
        self.held[run] = self.limit[run] = self.wants[run] = held
        self.least[run], self.number[run] = least, 0

    def turn(self):
        self.now += self.TURN
        for run in self.held:
            if self.held[run] > self.limit[run]:
                self.held[run] -= 1
            elif self.held[run] < self.limit[run]:
                self.held[run] = min(self.wants[run], self.limit[run]) if self.wants[run] else self.limit[run]
            self.held[run] = max(self.least[run], min(self.held[run], max(self.wants[run], self.least[run])))
            word = SlotDemand(self.number[run], self.held[run], self.wants[run], min(self.least[run], self.held[run]))
            self.pool.demand(run, word)
        for run, grant in self.pool.step(self.now).items():
            if grant.slots < min(self.held[run], self.limit[run]):
                self.preempted.append((self.now, run))
                claims = self.pool.claims
                assert any(c.short_since is not None and c.priority > claims[run].priority for c in claims.values())
            self.limit[run], self.number[run] = grant.slots, grant.number
        assert sum(self.held.values()) <= self.pool.slots

    def turns(self, seconds):
        for _ in range(round(seconds / self.TURN)):
            self.turn()
        return dict(self.held)


def shared(slots=8, low=6, high=1):
    runs = Runs(slots)
    runs.add("low", 1, low, least=2)
    runs.add("high", 9, high)
    return runs


def test_a_run_of_higher_priority_gets_the_slots_of_a_lower_one_and_that_gets_them_back():
    runs = shared()
    runs.wants["high"] = 6
    assert runs.turns(10) == {"low": 2, "high": 6}
    runs.wants["high"] = 2
    assert runs.turns(2) == {"low": 6, "high": 2}


def test_a_run_at_its_least_is_not_preempted_and_one_of_the_same_priority_neither():
    runs = shared(low=2)
    runs.wants |= {"low": 2, "high": 20}
    assert runs.turns(20) == {"low": 2, "high": 6}
    assert runs.preempted == []
    runs = Runs(4)
    runs.add("one", 5, 3)
    runs.add("two", 5, 1)
    runs.wants["two"] = 4
    assert runs.turns(20) == {"one": 3, "two": 1}
    assert runs.preempted == []


def test_slots_that_are_short_for_less_than_a_second_preempt_nobody():
    runs = shared(slots=7)
    for _ in range(20):
        runs.wants["high"] = 4
        runs.turns(PREEMPT_AFTER - runs.TURN)
        runs.wants["high"] = 1
        runs.turns(runs.TURN)
    assert runs.preempted == [] and runs.held == {"low": 6, "high": 1}


def test_that_a_lower_one_has_been_short_for_long_preempts_nobody():
    runs = Runs(6)
    for run, priority, held in (("low", 1, 1), ("mid", 5, 4), ("high", 9, 1)):
        runs.add(run, priority, held)
    runs.wants["low"] = 3
    runs.turns(5)
    runs.wants["high"] = 3
    runs.turns(PREEMPT_AFTER - runs.TURN)
    assert runs.preempted == []
    assert runs.turns(2) == {"low": 1, "mid": 2, "high": 3}


def test_what_is_wanted_steadily_comes_to_rest():
    runs = shared()
    runs.wants |= {"low": 8, "high": 5}
    runs.turns(10)
    runs.preempted.clear()
    numbers = dict(runs.number)
    assert runs.turns(60) == {"low": 3, "high": 5}
    assert runs.preempted == [] and runs.number == numbers


def test_who_is_to_give_less_than_was_said_is_told_so():
    runs = shared(slots=7)
    runs.wants["high"] = 5
    runs.turns(PREEMPT_AFTER + 2 * runs.TURN)
    assert runs.preempted and runs.limit["low"] == 2
    runs.wants["high"] = 2
    assert runs.turns(3)["low"] == 5  # one of them was given


def test_a_run_begins_with_the_slots_of_others_when_they_have_gone():
    runs = Runs(4)
    runs.add("low", 1, 4, least=1)
    runs.turns(1)
    assert runs.pool.obtainable(9) == 3 and runs.pool.obtainable(1) == runs.pool.obtainable(None) == 0
    with pytest.raises(ValueError):
        runs.pool.admit("high", "high", 4, 9)
    assert not runs.pool.admit("high", "high", 2, 9)
    runs.turns(PREEMPT_AFTER)
    assert not runs.pool.begun("high")
    assert runs.turns(2)["low"] == 2
    assert runs.pool.begun("high")
    assert (runs.pool.claims["high"].held, runs.pool.free) == (2, 0)
    runs.pool.leave("high")
    assert runs.turns(1)["low"] == 4


def test_one_without_a_priority_takes_what_is_free_and_is_told_nothing():
    pool = SlotPool(4)
    assert pool.admit("old", "old", 3, None)
    with pytest.raises(ValueError):
        pool.admit("two", "two", 2, None)
    with pytest.raises(ValueError):
        pool.admit("two", "two", 0, None)
    assert pool.admit("new", "new", 0, 5)
    assert {run: (grant.slots, grant.obtainable) for run, grant in pool.step(0.0).items()} == {"new": (0, 1)}
    assert pool.step(1.0) == {}  # nothing new
    assert [(share.run, share.priority, share.slots) for share in pool.shares()] == [("old", None, 3), ("new", 5, 0)]


class Sharing(RuleBasedStateMachine):
    """Whatever runs want: never more slots than there are, no run below its least, and the same priority takes nothing."""

    def __init__(self):
        super().__init__()
        self.runs = Runs(8)
        self.names = iter(range(10**6))

    @precondition(lambda self: len(self.runs.held) < 5)
    @rule(priority=st.integers(0, 2), slots=st.integers(0, 3), least=st.integers(0, 2))
    def begin(self, priority, slots, least):
        if slots <= self.runs.pool.free:
            self.runs.add(str(next(self.names)), priority, slots, min(least, slots))

    @precondition(lambda self: self.runs.held)
    @rule(data=st.data(), wants=st.integers(0, 9))
    def want(self, data, wants):
        self.runs.wants[data.draw(st.sampled_from(sorted(self.runs.held)))] = wants

    @precondition(lambda self: self.runs.held)
    @rule(data=st.data())
    def end(self, data):
        run = data.draw(st.sampled_from(sorted(self.runs.held)))
        for known in (self.runs.held, self.runs.least, self.runs.wants, self.runs.limit, self.runs.number):
            del known[run]
        self.runs.pool.leave(run)

    @rule(turns=st.integers(1, 20))
    def go_on(self, turns):
        for _ in range(turns):
            self.runs.turn()

    @invariant()
    def no_slot_is_held_twice_and_nobody_is_below_its_least(self):
        claims = self.runs.pool.claims.values()
        assert sum(each.occupied for each in claims) <= 8
        assert all(self.runs.held[run] >= self.runs.least[run] for run in self.runs.held)


TestSharing = Sharing.TestCase


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 9), st.integers(0, 3)), max_size=5))
def test_no_more_is_allocated_than_there_is_and_a_lower_one_gets_nothing_that_a_higher_one_lacks(rows):
    slots = max(8, sum(held for _, held, _, _ in rows))
    claims = [claim(str(i), p, held, wanted, min(least, held)) for i, (p, held, wanted, least) in enumerate(rows)]
    found = allocate(slots, claims)
    assert sum(found.values()) <= slots
    for each in claims:
        assert each.least <= found[each.run] <= max(each.wanted, each.least)
        if found[each.run] < each.wanted:
            lower = [other for other in claims if other.priority < each.priority]
            assert all(found[other.run] == other.least for other in lower)
