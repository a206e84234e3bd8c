"""Slots, and who has which."""

from __future__ import annotations

import pytest

from esault.control.placement.placement import Cluster
from esault.control.placement.resources import OneHost, Places, Slot, SlotRequest
from esault.elasticity.budget import Budget
from esault.errors import UsageError

SEAT = SlotRequest("count")


def test_what_is_asked_for_beyond_what_there_is_comes_without_a_slot():
    slots = OneHost("here", 2)
    assert [slots.allocate(SEAT) for _ in range(3)] == [
        ("here", Slot("here", 0)),
        ("here", Slot("here", 1)),
        ("here", None),
    ]
    assert (slots.free, slots.total) == (0, 2)


def test_slots_come_back_once_and_only_ours():
    slots = OneHost("here", 2)
    given = [slots.allocate(SEAT)[1] for _ in range(2)]
    for slot in (given[1], given[1], Slot("there", 7), None):
        slots.leave(SEAT, "here", slot)
    assert slots.free == 1
    assert slots.slot_on("here") == given[1]


def test_one_host_knows_no_other():
    with pytest.raises(UsageError, match="cannot move to 'there'"):
        OneHost("here", 2).allocate(SlotRequest("count", host="there"))


def test_a_place_is_given_back_when_its_holder_is_gone_and_goes_to_who_has_none():
    here = OneHost("here", 1)
    places = Places(here)
    assert places.place(1, SEAT) == places.place(2, SEAT) == "here"
    assert places.crowded == [2]
    places.settle(lambda: {1, 2}, "both")
    assert (places.crowded, here.free) == ([2], 0)
    places.settle(lambda: {2}, "second")
    assert (places.crowded, here.free) == ([], 0)
    places.settle(set, "none")
    assert here.free == 1
    assert places.hosts == {1: "here", 2: "here"}


def test_nobody_is_asked_while_the_same_live_and_all_have_a_slot():
    here = OneHost("here", 2)
    places = Places(here)
    places.place(1, SEAT)
    places.settle(lambda: {1}, "one")
    places.settle(lambda: pytest.fail("asked again"), "one")
    places.place(2, SEAT)
    places.settle(lambda: {2}, "one")  # somebody is new: the mark says nothing of that
    assert here.free == 1
    places.place(3, SEAT)
    places.place(4, SEAT)
    asked = []
    for _ in range(2):  # one waits for a slot, which may come with a host
        places.settle(lambda: asked.append(1) or {2, 3, 4}, "three")
    assert len(asked) == 2


def test_free_are_no_more_than_a_budget_leaves_and_ack_servers_take_none_of_it():
    places = Places(OneHost("here", 9), Budget(3))
    places.place(1, SlotRequest(""))
    assert places.free() == 3
    for incarnation in (2, 3, 4, 5):  # a newcomer in the place of one that died is there before its slot is back
        places.place(incarnation, SEAT)
    assert places.free() == 0
    places.settle(lambda: {1, 2, 3}, "some have gone")
    assert places.free() == 1


def test_those_that_went_with_a_host_take_nothing_of_it_when_it_has_come_back():
    """The driver may find out of both at once, and makes others in their places one after the other."""
    cluster = Cluster()
    cluster.join("a", 2)
    places = Places(cluster)
    places.place(1, SEAT)
    places.place(2, SEAT)
    cluster.lose("a")
    cluster.join("a", 2)
    places.settle(lambda: {1}, "the second has been replaced")
    places.place(3, SEAT)
    places.settle(lambda: {3}, "the first is gone")
    assert (cluster.hosts["a"].taken, cluster.hosts["a"].used, cluster.free) == (1, 1, 1)
