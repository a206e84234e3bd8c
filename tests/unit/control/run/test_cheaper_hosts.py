"""Sub-units go to hosts that cost less, one at a time, where that is asked for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault import Bolt, Topology, by_key
from esault.control.placement.placement import Cluster, PlacementRules
from esault.control.placement.resources import slot_request_of
from esault.control.run.cheaper_hosts import EVERY, CheaperHosts
from esault.errors import UsageError
from esault.sources import Items


class Count(Bolt):
    def process(self, key, value):
        pass


def plan():
    t = Topology("t")
    t.spout("rows", Items([("a", 1)])).bolt("count", Count, by_key())
    return t.plan()


class Run:
    """A driver as far as hosts are concerned: `at` says which host has which sub-unit of `count`."""

    def __init__(self, at, strategy="cheapest", refused=(), **prices):
        self.plan, self.phase, self.draining, self.busy = plan(), "running", False, False
        self.resources = Cluster(PlacementRules(strategy))
        for name, price in prices.items():
            self.resources.join(name, 2, (), price)
        for host in at.values():
            self.resources.allocate(slot_request_of(self.plan, "count", host))
        self.places = SimpleNamespace(hosts=at)
        self.refused, self.moves = refused, []
        self.commands = SimpleNamespace(elastic=lambda unit, more: None)
        self.units = {"count": SimpleNamespace(name="count", subs=dict.fromkeys(at), changing=False, move=self.move)}

    def move(self, incarnation, now, reason, policy, host):
        if incarnation in self.refused:
            raise UsageError("no")
        self.moves.append((incarnation, host, reason))

    def deliver(self, now):
        pass


def go(run, seconds=EVERY):
    watch, now = CheaperHosts(), 100.0
    while now <= 100.0 + seconds:
        watch.step(run, now)
        now += 0.5
    return run.moves


def test_the_one_that_costs_most_goes_where_a_slot_is_free_and_cheapest():
    assert go(Run({1: "b", 2: "a"}, a=0.5, b=0.3, c=0.1)) == [
        (2, "c", "a slot costs 0.1 an hour on c, and 0.5 where it was")
    ]


def test_one_move_in_so_many_seconds():
    assert len(go(Run({1: "a", 2: "a"}, a=0.5, b=0.1), 3 * EVERY)) == 3  # nothing here makes the moves happen
    assert go(Run({1: "a"}, a=0.5, b=0.1), EVERY - 0.5) == []


def test_full_hosts_take_none_and_one_that_may_not_move_gives_way_to_the_next():
    assert go(Run({1: "a", 2: "b", 3: "b"}, a=0.5, b=0.1)) == []
    assert go(Run({1: "a", 2: "b"}, a=0.5, b=0.3, c=0.1, refused={1})) == [
        (2, "c", "a slot costs 0.1 an hour on c, and 0.3 where it was")
    ]


@pytest.mark.parametrize("prices", [{"a": 0.5, "b": 0.46}, {"a": 0.0, "b": 0.0}, {"a": 0.1, "b": 0.5}])
def test_what_saves_little_is_not_worth_a_move(prices):
    assert go(Run({1: "a"}, **prices)) == []


def test_nothing_moves_where_it_is_not_asked_for_or_something_else_changes():
    assert go(Run({1: "a"}, "spread", a=0.5, b=0.1)) == []
    for attribute, value in (("busy", True), ("draining", True), ("phase", "building")):
        run = Run({1: "a"}, a=0.5, b=0.1)
        setattr(run, attribute, value)
        assert go(run) == []
    run = Run({1: "a"}, a=0.5, b=0.1)
    run.units["count"].changing = True
    assert go(run) == []
    run = Run({1: "a"}, a=0.5, b=0.1)
    run.resources = SimpleNamespace()
    assert go(run) == []
