"""Draining hosts: whose sub-units are moved away, and whose stay."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

from esault.control.placement.placement import Cluster, PlacementRules
from esault.control.run.evacuation import Evacuation
from esault.errors import UsageError


class Driving:
    """A driver of units with these sub-units, each on host a, which drains; what it is asked for is kept."""

    def __init__(self, subs, refused="", total=0, free=9, **options):
        self.asked, self.notices = [], deque()
        self.refused = refused
        self.units = {}
        for name, (kind, incarnations) in subs.items():
            self.units[name] = SimpleNamespace(
                plan=SimpleNamespace(kind=kind, spooled=False, min_parallelism=1),
                width=len(incarnations),
                subs={i: SimpleNamespace(ended=False) for i in incarnations},
                table=SimpleNamespace(owners=lambda incarnations=incarnations: incarnations),
            )
        self.phase, self.draining, self.busy, self.completed = "running", False, False, None
        self.plan = SimpleNamespace(units={})
        hosts = {i: "a" for _, incarnations in subs.values() for i in incarnations}
        self.places = SimpleNamespace(hosts=hosts, free=lambda: free)
        self.resources = SimpleNamespace(total=total)
        self.commands = self
        vars(self).update(options)

    def move(self, name, incarnation, now):
        if self.refused:
            raise UsageError(self.refused)
        self.asked.append((name, incarnation))

    def merge(self, name, incarnation, now):
        self.asked.append(("merge", name, incarnation))

    @property
    def going_back(self):
        return SimpleNamespace(begin=lambda why, now, counted=True: self.asked.append(why))

    def steps(self, n=3, every=1.0, offers=()):
        """Step so often; what was asked for, and what was said."""
        cluster = Cluster(PlacementRules(needs={"count": ("gpu",)}))
        cluster.join("a", 4, ("gpu",))
        cluster.join("b", 4, offers)
        cluster.drain("a")
        evacuation = Evacuation()
        for second in range(n):
            evacuation.step(self, cluster, every * second)
        return self.asked, list(self.notices)


@pytest.mark.parametrize("offers", [(), ("gpu",)])
def test_who_needs_what_only_the_draining_host_offers_stays_and_is_told_of_once(offers):
    found = Driving({"count": ("bolt", [7])}).steps(offers=offers)
    if offers:
        assert found == ([("count", 7)] * 3, [])
    else:
        assert found == ([], ["count/7 stays on its draining host: no other offers what 'count' needs"])


def test_where_all_hosts_drain_it_is_said_so():
    driver = Driving({"count": ("bolt", [7])})
    cluster = Cluster()
    cluster.join("a", 4)
    cluster.drain("a")
    Evacuation().step(driver, cluster, 0.0)
    assert list(driver.notices) == ["count/7 stays on its draining host: there is no other that does not drain"]


def test_one_of_each_unit_moves_at_a_time_and_nothing_moves_between_two_looks():
    driver = Driving({"one": ("bolt", [1, 2]), "two": ("bolt", [3])})
    assert driver.steps(3, 0.15) == ([("one", 1), ("two", 3)] * 2, [])


def test_only_who_owns_a_part_of_the_ring_is_moved():
    driver = Driving({"one": ("bolt", [1, 2])})
    driver.units["one"].table = SimpleNamespace(owners=lambda: [2])
    assert driver.steps(1) == ([("one", 2)], [])
    driver = Driving({"one": ("bolt", [1, 2])})
    driver.units["one"].table = None
    assert driver.steps(1) == ([], [])


def test_where_no_slot_is_free_units_shrink_to_their_least_and_what_is_left_waits():
    driver = Driving({"one": ("bolt", [1, 2]), "two": ("bolt", [3])}, free=0)
    assert driver.steps(1) == ([("merge", "one", 1), ("two", 3)], [])
    driver = Driving({"one": ("bolt", [1, 2])}, free=0)
    driver.units["one"].plan.min_parallelism = 2
    assert driver.steps(1) == ([("one", 1)], [])


def test_a_refusal_is_told_once_and_tried_again():
    found = Driving({"one": ("bolt", [1])}, refused="it is being changed").steps()
    assert found == ([], ["one/1 stays on its draining host so far: it is being changed"])


@pytest.mark.parametrize("state", [{"phase": "starting"}, {"draining": True}, {"busy": True}])
def test_nothing_moves_in_a_run_that_cannot_be_changed_now(state):
    assert Driving({"one": ("bolt", [1])}, **state).steps() == ([], [])


def test_nothing_moves_where_no_host_drains():
    driver = Driving({"one": ("bolt", [1])})
    cluster = Cluster(PlacementRules())
    cluster.join("a", 4, ())
    Evacuation().step(driver, cluster, 1.0)
    assert driver.asked == []


WAITS = ["host a drains: lines/1 cannot be moved and stays until its source has ended"]


@pytest.mark.parametrize(
    ("completed", "total", "spooled", "goes_back"),
    [(object(), 2, False, True), (None, 2, False, False), (object(), 1, False, False), (object(), 2, True, False)],
)
def test_all_go_back_to_a_checkpoint_for_spouts_where_there_is_one_and_room(completed, total, spooled, goes_back):
    driver = Driving({"lines": ("spout", [1]), "far": ("bolt", [9])}, completed=completed, total=total)
    driver.units["lines"].plan.spooled = spooled
    driver.places.hosts[9] = "b"
    asked, said = driver.steps(1)
    assert (asked, said) == ((["host a drains and lines/1 cannot be moved"], []) if goes_back else ([], WAITS))


def test_bolts_move_before_spouts_are_looked_at_and_a_spout_that_has_ended_is_none():
    driver = Driving({"lines": ("spout", [1]), "one": ("bolt", [2])}, completed=object(), total=9)
    assert driver.steps(1) == ([("one", 2)], [])
    driver = Driving({"lines": ("spout", [1])}, completed=object(), total=9)
    driver.units["lines"].subs[1].ended = True
    assert driver.steps(1) == ([], [])
