"""Runs that share the slots of hosts: two of them on two nodes, with time passed in, and what one asks for and gives."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.cluster.slot_messages import SlotDemand
from esault.cluster.slot_pool import PREEMPT_AFTER, SlotPool
from esault.control.placement.placement import Cluster
from esault.control.placement.resources import Places, SlotRequest
from esault.control.run.slot_sharing import ASKED_FOR, GIVE_BACK_AFTER, HostDemand, SlotSharing
from esault.errors import UsageError

#: seconds of a turn, and that a merge takes
TURN, MERGE = 0.1, 0.6


class Unit:
    """A bolt whose merges end after a while; `at` says on which hosts its sub-units are."""

    def __init__(self, run, name, at, least=1, busy=1.0):
        self.run, self.name = run, name
        self.plan = SimpleNamespace(kind="bolt", min_parallelism=least, replicas=1)
        self.subs, self.table = {}, self
        self.measurements = SimpleNamespace(counts=SimpleNamespace(busy_seconds=0.0))
        self.busy, self.merges, self.reasons = busy, 0, []
        self._going: tuple[int, float] | None = None
        for host in at:
            self.grow(host)

    def grow(self, host=None):
        incarnation = next(self.run.numbers)
        self.run.places.place(incarnation, SlotRequest(self.name, self.name, host=host))
        self.subs[incarnation] = SimpleNamespace(joining=False, ended=False)

    def owners(self):
        return list(self.subs)

    @property
    def width(self):
        return len(self.subs)

    @property
    def changing(self):
        return self._going is not None

    def merge(self, owner, now, reason, policy):
        assert policy == "preemption"
        if self.run.refuses:
            raise UsageError("not now")
        self.reasons.append(reason)
        self._going, self.merges = (owner, now + MERGE), self.merges + 1

    def turn(self, now):
        self.measurements.counts.busy_seconds += self.busy * TURN
        if self._going is not None and now >= self._going[1]:
            del self.subs[self._going[0]]
            self._going = None
            self.run.places.settle(lambda: {i for unit in self.run.units.values() for i in unit.subs}, now)


class Run:
    """A driver of some bolts, whose policy wants so many sub-units of the first, and says so at every third look alone."""

    def __init__(self, slots, units, refuses=False, **prices):
        self.resources = Cluster()
        for name, number in slots.items():
            self.resources.join(name, number, (), prices.get(name, 0.0))
        self.places = Places(self.resources)
        self.numbers = iter(range(1, 10_000))
        self.refuses, self.phase, self.draining, self.busy = refuses, "running", False, False
        self.units: dict[str, Unit] = {}
        for name, options in units.items():
            self.units[name] = Unit(self, name, **options)
        self.first = next(iter(self.units.values()))
        self.wants = self.first.width
        self.scaling = SimpleNamespace(judges=dict.fromkeys(self.units), awaited=0)
        self.commands = SimpleNamespace(elastic=lambda name: None)
        self.sharing = SlotSharing()
        self.looks = 0

    def deliver(self, now):
        pass

    def turn(self, now):
        for unit in self.units.values():
            unit.turn(now)
        self.looks += 1
        self.scaling.awaited = 0
        if not self.first.changing and self.looks % 3 == 0:
            while self.first.width < self.wants and self.resources.free:
                self.first.grow()
            self.scaling.awaited = min(max(0, self.wants - self.first.width), self.resources.obtainable)
        self.sharing.step(self, self.resources, now)
        return self.sharing.demands(self, self.resources, now)

    def taken(self):
        return {name: host.taken for name, host in self.resources.hosts.items()}


class Pool:
    """Two nodes of four slots and the runs on them."""

    def __init__(self, **runs):
        self.nodes = {"a": SlotPool(4), "b": SlotPool(4)}
        self.runs, self.numbers, self.now = runs, {}, 0.0
        for priority, (name, run) in enumerate(runs.items()):
            for host, node in self.nodes.items():
                assert node.admit(name, name, run.resources.hosts[host].slots, priority)

    def turns(self, seconds):
        for _ in range(round(seconds / TURN)):
            self.now += TURN
            for name, run in self.runs.items():
                for host, demand in run.turn(self.now).items():
                    word = SlotDemand(self.numbers.get((name, host), 0), demand.held, demand.wanted, demand.least)
                    self.nodes[host].demand(name, word)
            for host, node in self.nodes.items():
                for name, grant in node.step(self.now).items():
                    self.numbers[name, host] = grant.number
                    self.runs[name].sharing.granted(
                        self.runs[name].resources, host, grant.slots, grant.obtainable, self.now
                    )
                assert sum(run.resources.hosts[host].taken for run in self.runs.values()) <= 4
        return {name: run.first.width for name, run in self.runs.items()}


def pool(low=("a", "a", "a", "b", "b", "b"), high=("a",), least=1):
    slots = {"a": 3, "b": 4}
    low_run = Run(slots, {"tally": {"at": low, "least": least}})
    return Pool(low=low_run, high=Run({"a": 1, "b": 0}, {"sum": {"at": high}}))


def test_the_higher_one_gets_what_it_wants_by_one_merge_for_each_slot_and_the_lower_one_gets_it_back():
    both = pool()
    both.runs["low"].wants = 7
    assert both.turns(2) == {"low": 7, "high": 1}
    both.runs["high"].wants = 5
    assert both.turns(12) == {"low": 3, "high": 5}
    assert both.runs["low"].first.merges == 4  # nothing swings: neither between the nodes nor between the runs
    assert both.turns(60) == {"low": 3, "high": 5}
    assert (both.runs["low"].first.merges, both.runs["high"].first.merges) == (4, 0)
    assert "go to a run of higher priority" in both.runs["low"].first.reasons[0]
    for name in ("a", "b"):
        both.nodes[name].leave("high")
    del both.runs["high"]
    assert both.turns(3) == {"low": 7}


def test_the_lower_one_comes_down_to_its_least_on_both_nodes_together_and_no_further():
    both = pool(least=4)
    both.runs["high"].wants = 8
    assert both.turns(30) == {"low": 4, "high": 4}
    assert both.runs["low"].first.merges == 2


def test_a_load_that_swings_preempts_once():
    both = pool()
    both.runs["low"].wants = 7
    both.turns(2)
    high = both.runs["high"]
    for _ in range(6):
        high.wants = 4
        both.turns(4)
        high.wants = 2  # slots that it has are kept, since it wanted them of late
        both.turns(3)
    assert both.runs["low"].first.merges == 3
    assert high.first.width == 4


def test_what_a_run_can_spare_is_offered_by_one_host_only_and_first_by_one_that_has_to_come_down():
    run = Run({"a": 2, "b": 2}, {"tally": {"at": ["a", "a", "b", "b"], "least": 2}})
    offered = lambda: {name: each.held - each.least for name, each in run.turn(0.0).items()}
    assert offered() == {"a": 2, "b": 0}
    run.sharing.granted(run.resources, "b", 1, 0, 0.0)
    assert offered() == {"a": 0, "b": 2}


def test_what_has_not_been_used_for_a_while_is_given_back():
    run = Run({"a": 3, "b": 2}, {"tally": {"at": ["a"]}})
    found = run.turn(0.0)
    assert found == {"a": HostDemand(3, 3, 1), "b": HostDemand(2, 2, 0)}
    run.turn(GIVE_BACK_AFTER - TURN)
    assert run.resources.hosts["a"].slots == 3
    assert run.turn(GIVE_BACK_AFTER + TURN) == {"a": HostDemand(1, 1, 1), "b": HostDemand(0, 0, 0)}


def test_the_cheapest_slots_are_asked_for_first_and_for_a_while_without_asking_again():
    run = Run({"a": 1, "b": 0, "c": 0}, {"tally": {"at": ["a"]}}, a=0.5, b=0.1, c=0.3)
    for name in ("a", "b", "c"):
        run.resources.hosts[name].obtainable = 2
    run.scaling.awaited = 3
    run.sharing._ask(3, run.resources, 5.0)
    wanted = lambda now: {name: each.wanted for name, each in run.sharing.demands(run, run.resources, now).items()}
    run.scaling.awaited = 0
    assert wanted(5.0 + TURN) == {"a": 1, "b": 2, "c": 1}
    run.resources.hosts["b"].obtainable = 0  # who is to give is busy with it
    run.scaling.awaited = 3
    assert wanted(6.0) == {"a": 1, "b": 2, "c": 1}
    run.scaling.awaited = 0
    assert wanted(5.0 + ASKED_FOR) == {"a": 1, "b": 0, "c": 0}


def test_sub_units_without_a_slot_and_those_asked_for_by_hand_are_wanted_too():
    run = Run({"a": 1}, {"tally": {"at": ["a"]}})
    run.resources.hosts["a"].obtainable = 4
    run.first.grow()
    run.places.ask(2, 9.0)
    assert run.turn(1.0)["a"].wanted == 4


def test_the_unit_that_is_least_busy_with_one_fewer_shrinks_first():
    units = {"busy": {"at": ["a", "a"], "busy": 1.8}, "idle": {"at": ["a", "a", "a"], "busy": 0.3}}
    run = Run({"a": 5}, units)
    for i in range(30):
        run.turn(i * TURN)
    run.sharing.granted(run.resources, "a", 3, 0, 3.0)
    for i in range(30, 60):
        run.turn(i * TURN)
    assert {name: unit.width for name, unit in run.units.items()} == {"busy": 2, "idle": 1}


@pytest.mark.parametrize("state", [{"phase": "building"}, {"draining": True}, {"busy": True}, {"refuses": True}])
def test_nothing_is_merged_in_a_run_that_cannot_be_changed_now(state):
    run = Run({"a": 3}, {"tally": {"at": ["a", "a", "a"]}})
    vars(run).update(state)
    run.sharing.granted(run.resources, "a", 1, 0, 0.0)
    run.sharing.step(run, run.resources, 1.0)
    assert run.first.merges == 0


def test_a_unit_that_no_policy_scales_and_one_with_replicas_give_nothing():
    run = Run({"a": 4}, {"tally": {"at": ["a", "a"]}, "sum": {"at": ["a", "a"]}})
    run.scaling.judges = {"sum": None}
    run.units["sum"].plan.replicas = 2
    assert run.turn(0.0)["a"] == HostDemand(4, 4, 4)
    run.units["sum"].plan.replicas = 1
    assert run.turn(1.0)["a"] == HostDemand(4, 4, 3)
    assert PREEMPT_AFTER < GIVE_BACK_AFTER


def test_sub_units_of_a_change_that_is_on_or_of_a_run_that_is_built_are_offered_too():
    run = Run({"a": 4}, {"tally": {"at": ["a", "a", "a", "a"]}})
    for record in list(run.first.subs.values())[1:]:
        record.joining = True
    assert run.turn(0.0)["a"] == HostDemand(4, 4, 1)
    run.first.table, run.phase = None, "building"
    assert run.turn(1.0)["a"] == HostDemand(4, 4, 1)
