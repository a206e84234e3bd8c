"""What the guard lets pass, and what a judge makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from elasticity_views import HostUsage, numbers_of, sample, view

from esault.elasticity.action import Advise, Merge, Migrate, Rescale, Split
from esault.elasticity.edit import edited
from esault.elasticity.guard import Guard
from esault.errors import UsageError
from esault.routing.ring import INT_MAX
from esault.routing.table import OutputTable


def samples(*sub_units):
    return [sample(i, arrivals=10.0) for i in sub_units]


def test_growth_within_bounds_and_slots_passes():
    verdict = Guard().check(view(10, samples(1, 2)), [Rescale("why", 5)])
    assert numbers_of(verdict.allowed) == [5]
    assert verdict.refusals == ()


def test_more_than_there_are_slots_is_cut_and_said():
    verdict = Guard().check(view(10, samples(1, 2), free=3), [Rescale("why", 9)])
    assert numbers_of(verdict.allowed) == [5]
    assert "3 are free" in verdict.refusals[0]


@pytest.mark.parametrize(
    ("free", "obtainable", "wanted", "allowed", "awaited", "refused"),
    [
        (3, 0, 4, [4], 0, 0),
        (3, 3, 4, [], 2, 0),  # all would have to be given by others first
        (3, 1, 5, [4], 1, 0),
        (3, 1, 9, [4], 0, 1),  # not even those would do: what is there is taken
    ],
)
def test_slots_that_others_would_have_to_give_are_waited_for(free, obtainable, wanted, allowed, awaited, refused):
    seen = replace(view(10, samples(1, 2), free=free), obtainable=obtainable)
    verdict = Guard().check(seen, [Rescale("why", wanted)])
    assert numbers_of(verdict.allowed) == allowed
    assert (verdict.awaited, len(verdict.refusals)) == (awaited, refused)


def test_a_move_needs_a_slot_that_is_there():
    seen = replace(view(10, samples(1, 2), free=1, hosts=[HostUsage("b", 1, 0.0)]), obtainable=1)
    assert Guard().check(seen, [Migrate("why", 1, "b")]).refusals == ("a move needs a free slot",)


def test_splits_beyond_the_slots_are_refused_one_by_one():
    verdict = Guard().check(view(10, samples(1, 2), free=1), [Split("a", 1), Split("b", 2)])
    assert verdict.allowed == (Split("a", 1),)
    assert len(verdict.refusals) == 1


def test_bounds_of_the_unit_hold():
    assert numbers_of(Guard().check(view(10, samples(1, 2), most=4), [Rescale("why", 9)]).allowed) == [4]
    assert Guard().check(view(10, samples(1, 2), most=2), [Split("why", 1)]).allowed == ()
    assert Guard().check(view(10, samples(1, 2), least=2), [Merge("why", 1, 2)]).allowed == ()


def test_one_change_at_a_time_and_a_time_after_it():
    assert Guard().check(view(10, samples(1), changing=True), [Split("why", 1)]).refusals == (
        "a change of this unit is on",
    )
    assert Guard(5.0).check(view(10, samples(1), changed_at=6.0), [Split("why", 1)]).allowed == ()


def test_nonsense_is_refused_by_name():
    verdict = Guard().check(view(10, samples(1)), ["split", None, Advise("hm")])
    assert verdict.allowed == ()
    assert "'split' is no action" in verdict.refusals[0]
    assert len(verdict.refusals) == 2


def test_splits_and_merges_are_one_change_of_the_table():
    table = OutputTable.even([1, 2, 3, 4])
    edit = edited(table, [Split("hot", 1), Merge("cold", 3, 4)], [])
    assert edit.news == 1
    assert set(edit.table.owners()) == {1, 2, 4, -1}
    assert edit.table.owner(INT_MAX // 8 + 10_000) == -1
    assert edit.table.ranges(4)[0][0] == table.ranges(3)[0][0]
    assert edit.table.version == table.version
    assert edited(table, [Split("hot", 1)], []).kind == "split"
    assert edited(table, [Merge("cold", 1, 2)], []).kind == "merge"


def test_a_merge_goes_to_the_neighbour_it_names():
    table = OutputTable.even([1, 2, 3])
    assert edited(table, [Merge("cold", 2, 1)], []).table.owners() == [1, 3]
    left = edited(table, [Merge("cold", 2, 1)], []).table
    right = edited(table, [Merge("cold", 2, 3)], []).table
    assert left.upper(0) == table.ranges(2)[0][1]
    assert right.ranges(3)[0][0] == table.ranges(2)[0][0]


@pytest.mark.parametrize(
    ("actions", "says"),
    [
        ([Split("", 9)], "no sub-unit 9"),
        ([Rescale("", 0)], "one sub-unit at least"),
        ([Rescale("", 2), Split("", 1)], "stands alone"),
        ([Merge("", 1, 1)], "the only one"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(actions, says):
    with pytest.raises(UsageError, match=says):
        edited(OutputTable.even([1]), actions, [])
