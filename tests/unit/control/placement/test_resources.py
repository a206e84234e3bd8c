"""Slots, and who has which."""

from __future__ import annotations

import pytest

from esault.control.placement.resources import OneHost, Places, Slot, SlotRequest
from esault.errors import UsageError

SEAT = SlotRequest("count")


def test_what_is_asked_for_beyond_what_there_is_comes_without_a_slot():
    slots = OneHost("here", 2)
    assert [slots.take(SEAT) for _ in range(3)] == [
        ("here", Slot("here", 0)),
        ("here", Slot("here", 1)),
        ("here", None),
    ]
    assert (slots.free, slots.total) == (0, 2)


def test_slots_come_back_once_and_only_ours():
    slots = OneHost("here", 2)
    given = [slots.take(SEAT)[1] for _ in range(2)]
    for slot in (given[1], given[1], Slot("there", 7), None):
        slots.leave(SEAT, "here", slot)
    assert slots.free == 1
    assert slots.slot_on("here") == given[1]


def test_one_host_knows_no_other():
    with pytest.raises(UsageError, match="cannot move to 'there'"):
        OneHost("here", 2).take(SlotRequest("count", host="there"))


def test_a_place_is_given_back_when_its_holder_is_gone_and_goes_to_who_has_none():
    places = Places(OneHost("here", 1))
    assert places.place(1, SEAT) == places.place(2, SEAT) == "here"
    assert places.crowded == [2]
    assert places.settle({1, 2}) == 0
    assert places.crowded == [2]
    assert places.settle({2}) == 0
    assert places.crowded == []
    assert places.settle(set()) == 1
    assert places.hosts == {1: "here", 2: "here"}
