"""Slots."""

from __future__ import annotations

from esault.control.resources import OneHost, Slot


def test_what_is_asked_for_beyond_what_there_is_comes_back_short():
    slots = OneHost("here", 3)
    assert slots.allocate(2) == [Slot("here", 0), Slot("here", 1)]
    assert (slots.free, slots.total) == (1, 3)
    assert slots.allocate(5) == [Slot("here", 2)]
    assert slots.allocate(1) == []


def test_slots_come_back_once_and_only_ours():
    slots = OneHost("here", 2)
    given = slots.allocate(2)
    slots.release([given[1], given[1], Slot("there", 7)])
    assert slots.free == 1
    assert slots.allocate(1) == [given[1]]
