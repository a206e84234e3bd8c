"""Rows of broadcast inputs while a change makes new sub-units: the copy is that of the barriers, and no row is processed twice."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.channel.frame import Batch
from esault.flow.handover.broadcast_rows import BroadcastRows
from esault.flow.handover.divide import Entry

KEYED, RULES = 0, 1


def entry(input, name="x"):
    return Entry(0.0, Batch((1, 1, 0), 99, input, (name,), (0,), 0.0, None))


def names(entries):
    return [each.batch.keys[0] for each in entries]


def test_nothing_waits_while_no_change_is_on():
    rows = BroadcastRows(frozenset([RULES]))
    assert not rows.active
    assert not rows.waits(entry(RULES), 9)
    assert rows.settled(deque([entry(RULES)]))
    assert rows.place(entry(RULES), deque([entry(KEYED)])) == 1


def test_an_old_owner_has_what_is_behind_the_barrier_wait_until_the_copy_is_made():
    rows = BroadcastRows(frozenset([RULES]))
    rows.gives = 5
    assert rows.active
    assert not rows.waits(entry(RULES), 4)
    assert rows.waits(entry(RULES), 5)
    assert not rows.waits(entry(KEYED), 5)
    rows.aside.append(entry(RULES, "behind"))
    assert names(rows.released()) == []
    rows.gives = 0
    assert rows.active
    assert rows.waits(entry(RULES), 4)  # they keep their order
    assert names(rows.released()) == ["behind"]
    assert not rows.active


def test_a_new_owner_has_all_wait_until_it_has_the_copy():
    rows = BroadcastRows(frozenset([RULES]))
    rows.takes = True
    assert rows.waits(entry(RULES), 1)
    assert not rows.waits(entry(KEYED), 1)
    rows.gives = 5  # and another change is on already
    assert rows.waits(entry(RULES), 1)
    rows.aside.extend([entry(RULES, "a"), entry(RULES, "b")])
    rows.gives = 0
    assert names(rows.released()) == []
    rows.takes = False
    assert names(rows.released()) == ["a", "b"]


def test_a_unit_without_such_inputs_never_waits():
    rows = BroadcastRows(frozenset())
    rows.takes = True
    assert not rows.waits(entry(RULES), 1)


@given(st.lists(st.sampled_from([KEYED, RULES]), max_size=12))
def test_what_the_copy_waits_for_goes_before_rows_of_keys_and_each_kind_keeps_its_order(kinds):
    rows = BroadcastRows(frozenset([RULES]))
    rows.gives = 1
    inbox = deque()
    for i, kind in enumerate(kinds):
        inbox.insert(rows.place(entry(kind), inbox), entry(kind, i))
    found = [(each.batch.input, each.batch.keys[0]) for each in inbox]
    assert found == sorted(found, key=lambda each: (-each[0], each[1]))
    assert rows.settled(inbox) is (RULES not in kinds)
