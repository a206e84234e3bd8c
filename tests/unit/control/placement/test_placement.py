"""Which host a newcomer goes to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from esault.control.placement.placement import Cluster, PlacementRules
from esault.control.placement.resources import Places, Slot, SlotRequest
from esault.errors import UsageError


def cluster(rules=None, **slots):
    made = Cluster(rules)
    for name, number in slots.items():
        made.join(name, number)
    return made


def hosts(made, *seats):
    return [made.allocate(seat)[0] for seat in seats]


COUNT, SPLIT = SlotRequest("count", "count", frozenset({"split"})), SlotRequest("split", "split", frozenset({"count"}))


def test_spread_fills_hosts_by_the_share_that_is_taken():
    assert hosts(cluster(a=2, b=4), *[COUNT] * 6) == ["a", "b", "b", "a", "b", "b"]


def test_among_equals_neighbours_draw():
    made = cluster(a=4, b=4)
    assert hosts(made, SPLIT, SPLIT) == ["a", "b"]
    made.leave(SPLIT, "a", None)
    made.allocate(SlotRequest("other"))
    assert hosts(made, COUNT) == ["b"]


def test_pack_keeps_neighbours_together_and_fills_a_host():
    made = cluster(PlacementRules("pack"), a=3, b=3)
    assert hosts(made, SPLIT, COUNT, COUNT, COUNT) == ["a", "a", "a", "b"]


def priced(rules, **prices):
    made = Cluster(rules)
    for name, (slots, price) in prices.items():
        made.join(name, slots, (), price)
    return made


def test_cheapest_fills_hosts_by_what_a_slot_costs():
    made = priced(PlacementRules("cheapest"), a=(2, 0.5), b=(2, 0.1), c=(9, 0.2))
    assert hosts(made, *[SPLIT] * 4) == ["b", "b", "c", "c"]
    made = priced(PlacementRules("spread"), a=(2, 0.5), b=(2, 0.1))
    assert hosts(made, SPLIT, SPLIT) == ["a", "b"]


def test_a_host_fits_that_takes_newcomers_and_has_what_they_ask_for():
    made = priced(PlacementRules(apart={"count": ("split",)}), a=(1, 0.0), b=(1, 0.0), c=(1, 0.0))
    assert all(made.fits(COUNT, name) for name in "abc")
    made.allocate(SlotRequest("other", "other", host="a"))
    made.drain("b")
    made.short = frozenset("c")
    assert not any(made.fits(COUNT, name) for name in "abc")
    made = priced(PlacementRules(apart={"count": ("split",)}), a=(9, 0.0))
    made.allocate(SPLIT)
    assert not made.fits(COUNT, "a") and made.fits(SPLIT, "a")
    made.rules = PlacementRules(needs={"split": ("gpu",)})
    assert not made.fits(SPLIT, "a")


def test_slots_are_charged_while_they_are_taken_on_hosts_that_have_gone_as_well():
    made = priced(None, a=(4, 3.6), b=(4, 0.0))
    made.charge(100.0)
    first, second = made.allocate(COUNT), made.allocate(COUNT)
    made.charge(110.0)
    made.leave(COUNT, *second)
    made.charge(115.0)
    assert {name: (c.slot_seconds, round(c.cost, 6)) for name, c in made.costs.items()} == {
        "a": (15.0, 0.015),
        "b": (10.0, 0.0),
    }
    made.lose(first[0])
    made.charge(200.0)
    assert made.costs["a"].slot_seconds == 15.0


def test_copies_and_those_that_are_named_are_kept_apart():
    made = cluster(PlacementRules(apart={"sink": ("count~1",)}), a=9, b=1)
    assert hosts(made, SlotRequest("count~1", "count", replicas=frozenset({"count~2"}))) == ["a"]
    assert hosts(made, SlotRequest("count~2", "count", replicas=frozenset({"count~1"}))) == ["b"]
    made = cluster(PlacementRules(apart={"sink": ("count",)}), a=9, b=9)
    assert hosts(made, COUNT, SlotRequest("sink", "sink"), SlotRequest("sink", "sink")) == ["a", "b", "b"]


def test_needs_are_musts():
    made = Cluster(PlacementRules(needs={"count": ("gpu",)}))
    made.join("a", 4)
    made.join("b", 1, ("gpu",))
    assert [made.allocate(COUNT), made.allocate(COUNT)] == [
        ("b", made.allocate(SPLIT) and made.hosts["b"] and _slot("b", 0)),
        ("b", None),
    ]
    with pytest.raises(UsageError, match="cannot go to host 'a': it needs gpu"):
        made.allocate(SlotRequest("count", "count", host="a"))
    made.lose("b")
    with pytest.raises(UsageError, match="'count' needs gpu, which no host offers"):
        made.allocate(COUNT)


def _slot(host, number):
    from esault.control.placement.resources import Slot

    return Slot(host, number)


def test_a_host_that_is_named_must_have_room():
    made = cluster(a=1, b=1)
    assert made.allocate(SlotRequest("count", host="b"))[0] == "b"
    with pytest.raises(UsageError, match="all of its 1 slots taken"):
        made.allocate(SlotRequest("count", host="b"))
    with pytest.raises(UsageError, match="there is no host 'c'; there are: a, b"):
        made.allocate(SlotRequest("count", host="c"))
    made.drain("a")
    with pytest.raises(UsageError, match="it drains"):
        made.allocate(SlotRequest("count", host="a"))
    assert made.allocate(SlotRequest("count", host="a", beside=True))[0] == "a"
    assert made.allocate(SlotRequest("count", host="c", beside=True))[0] == "b"


def test_without_any_host_there_is_no_place():
    with pytest.raises(UsageError, match="no host"):
        Cluster().allocate(COUNT)


class Hosts(RuleBasedStateMachine):
    """Hosts come and go, sub-units too; a slot is never given twice, and counts agree."""

    budget = 0.0

    def __init__(self):
        super().__init__()
        self.cluster = Cluster(hourly_budget=self.budget)
        self.places = Places(self.cluster)
        self.living: set[int] = set()
        self.next = 1

    @rule(name=st.sampled_from("abc"), slots=st.integers(1, 3), price=st.sampled_from([0.0, 0.1, 0.3, 0.7]))
    def join(self, name, slots, price):
        if name in self.cluster.hosts:
            return
        self.cluster.join(name, slots, (), price)

    @rule(name=st.sampled_from("abc"))
    def drain(self, name):
        self.cluster.drain(name)

    @rule(name=st.sampled_from("abc"))
    def lose(self, name):
        self.cluster.lose(name)
        self.living -= {i for i in self.living if self.places.hosts[i] == name}
        self.places.settle(lambda: self.living, frozenset(self.living))

    @precondition(lambda self: self.cluster.hosts)
    @rule(unit=st.sampled_from(["x", "y"]))
    def fork(self, unit):
        room = self.cluster.free
        host = self.places.place(self.next, SlotRequest(unit, unit))
        assert host in self.cluster.hosts
        assert not (room and self.cluster.hosts[host].draining)
        assert room == 0 or self.next not in self.places.crowded
        self.living.add(self.next)
        self.next += 1

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def leave(self, data):
        self.living.discard(data.draw(st.sampled_from(sorted(self.living))))
        self.places.settle(lambda: self.living, frozenset(self.living))

    @invariant()
    def counts_agree(self):
        slots = [
            slot
            for _, host, slot, _ in self.places._requests.values()
            if slot is not None and host in self.cluster.hosts
        ]
        assert len(slots) == len(set(slots))
        for name, host in self.cluster.hosts.items():
            taken = {slot.number for slot in slots if slot.host == name}
            assert taken | host.free == set(range(host.slots))
            assert not taken & host.free
            assert host.used == sum(self.places.hosts[i] == name for i in self.living)


TestHosts = Hosts.TestCase


class HostsWithBudget(Hosts):
    """... and slots that are taken never cost more than the budget, whoever comes, dies or goes."""

    budget = 1.0

    @invariant()
    def nothing_is_spent_beyond_it(self):
        assert self.cluster.hourly <= self.cluster.most_hourly + 1e-9 <= self.budget + 2e-9


TestHostsWithBudget = HostsWithBudget.TestCase

PRICES = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.35]), st.integers(1, 4)), min_size=1, max_size=4)


@given(PRICES, st.sampled_from([0.1, 0.3, 0.5, 0.7, 2.0]))
def test_a_budget_in_money_buys_the_cheapest_slots_and_as_many_as_it_says(prices, budget):
    made = Cluster(PlacementRules("cheapest"), budget)
    for i, (price, slots) in enumerate(prices):
        made.join(str(i), slots, (), price)
    each = sorted(price for price, slots in prices for _ in range(slots))
    bought = max(n for n in range(len(each) + 1) if sum(each[:n]) <= budget + 1e-9)
    assert made.free == made.total == bought
    got = [made.allocate(COUNT)[1] for _ in range(len(each))]
    assert sum(slot is not None for slot in got) == bought
    assert (made.free, made.total) == (0, bought)
    assert made.hourly == made.most_hourly == pytest.approx(sum(each[:bought]))


def test_a_sub_unit_beyond_a_budget_shares_a_slot_and_none_goes_to_a_named_host_that_costs_too_much():
    made = Cluster(PlacementRules("cheapest"), 0.5)
    made.join("a", 1, (), 0.3)
    made.join("b", 1, (), 0.4)
    first, second = made.allocate(COUNT), made.allocate(COUNT)
    assert (first[0], first[1] is None, second[1] is None) == ("a", False, True)
    assert not made.fits(COUNT, "b")
    with pytest.raises(UsageError, match=r"it costs 0.4 a slot, and of the budget of 0.5/h 0.3 is spent"):
        made.allocate(SlotRequest("count", "count", host="b"))
    made.charge(0.0)
    made.charge(3600.0)
    assert sum(each.cost for each in made.costs.values()) == pytest.approx(0.3) and made.charged_seconds == 3600.0


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 30))
def test_free_slots_go_first(sizes, number):
    made = Cluster()
    for i, size in enumerate(sizes):
        made.join(str(i), size)
    got = [made.allocate(COUNT)[1] for _ in range(number)]
    assert sum(slot is not None for slot in got) == min(number, sum(sizes))


class Resized(RuleBasedStateMachine):
    """A host's slots become more and fewer while sub-units come and go: none is given twice, and none beyond what may be held."""

    def __init__(self):
        super().__init__()
        self.cluster = Cluster()
        self.cluster.join("a", 2)
        self.slots: list[Slot] = []

    @rule(slots=st.integers(0, 6))
    def resize(self, slots):
        self.cluster.resize("a", slots)

    @rule()
    def take(self):
        room = self.cluster.free
        slot = self.cluster.slot_on("a")
        assert (slot is not None) == bool(room)
        self.slots += [slot] if slot is not None else []

    @precondition(lambda self: self.slots)
    @rule(data=st.data())
    def leave(self, data):
        slot = self.slots.pop(data.draw(st.integers(0, len(self.slots) - 1)))
        self.cluster.hosts["a"].units["count"] = 1
        self.cluster.leave(COUNT, "a", slot)

    @invariant()
    def slots_are_counted_once(self):
        host = self.cluster.hosts["a"]
        assert len(set(self.slots)) == len(self.slots) == host.taken
        assert len(host.free) == max(0, host.slots - host.taken) and not host.free & host.held


TestResized = Resized.TestCase


def test_slots_that_others_can_give_count_within_a_budget_alone():
    made = priced(PlacementRules("cheapest"), a=(1, 0.1), b=(0, 0.2))
    made.hosts["b"].obtainable = 4
    assert (made.free, made.obtainable, made.total) == (1, 4, 1)
    made = Cluster(None, 0.5)
    made.join("a", 1, (), 0.1)
    made.join("b", 0, (), 0.2)
    made.hosts["b"].obtainable = 4
    assert (made.free, made.obtainable) == (1, 2)
    made.drain("b")
    assert made.obtainable == 0
    assert hosts(made, COUNT, COUNT) == ["a", "a"]  # the second shares a slot: a host without any takes none
