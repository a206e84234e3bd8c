"""The output table: the paper's figures, its edges, and random changes against a naive model."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from esault.routing.ring import INT_MAX, RING
from esault.routing.table import Move, OutputTable

A, B, C, D = 1, 2, 3, 4
QUARTER, HALF, THREE_QUARTERS = 536870912, 1073741824, 1610612736


def figure_4() -> OutputTable:
    table = OutputTable.single(A)
    assert table.split(0, B) == HALF
    assert table.split(0, C) == QUARTER
    assert table.split(HALF, D) == THREE_QUARTERS
    return table


def pairs(table: OutputTable) -> dict[int, int]:
    return dict(table.snapshot()[1])


def test_figure_4_step_by_step():
    table = OutputTable.single(A)
    assert pairs(table) == {0: A}
    assert table.split(0, B) == 1073741824
    assert pairs(table) == {0: A, 1073741824: B}
    assert table.split(0, C) == 536870912
    assert pairs(table) == {0: A, 536870912: C, 1073741824: B}
    assert table.split(1073741824, D) == 1610612736
    assert pairs(table) == {0: A, 536870912: C, 1073741824: B, 1610612736: D}
    assert table.version == 4


def test_upper_bounds_and_lookups_of_figure_4():
    table = figure_4()
    uppers = {0: 536870911, 536870912: 1073741823, 1073741824: 1610612735, 1610612736: 2147483647}
    assert {start: table.upper(start) for start in uppers} == uppers
    owners = {0: A, 536870911: A, 536870912: C, 1073741823: C, 1073741824: B, 1610612735: B, 1610612736: D, INT_MAX: D}
    assert {place: table.owner(place) for place in owners} == owners


def test_merges_of_figure_4():
    table = figure_4()
    assert table.merge_left(536870912) == 0
    assert pairs(table) == {0: A, 1073741824: B, 1610612736: D}
    table = figure_4()
    assert table.merge_right(536870912) == 536870912
    assert pairs(table) == {0: A, 536870912: B, 1610612736: D}
    assert table.ranges(B) == [(536870912, 1610612735)]
    table = figure_4()
    assert table.merge_left(0) is None
    assert table.merge_right(1610612736) is None
    assert table == figure_4()


@pytest.mark.parametrize(
    ("parallelism", "starts"),
    [(1, [0]), (2, [0, HALF]), (3, [HALF, 0, QUARTER]), (4, [0, QUARTER, HALF, THREE_QUARTERS])],
)
def test_the_papers_first_table_gives_owners_out_in_fifo_order(parallelism, starts):
    table = OutputTable.halved(range(parallelism))
    assert [table.ranges(owner)[0][0] for owner in range(parallelism)] == starts
    assert table.version == 1


@pytest.mark.parametrize(
    ("parallelism", "cells"),
    [
        (5, {1 / 4: 3, 1 / 8: 2}),
        (6, {1 / 4: 2, 1 / 8: 4}),
        (7, {1 / 4: 1, 1 / 8: 6}),
        (8, {1 / 8: 8}),
        (10, {1 / 8: 6, 1 / 16: 4}),
    ],
)
def test_the_papers_first_table_has_unequal_cells_unless_a_power_of_two(parallelism, cells):
    table = OutputTable.halved(range(parallelism))
    sizes = [(high - low + 1) / RING for low, high, _ in table.intervals()]
    assert {size: sizes.count(size) for size in sizes} == cells


@given(st.integers(1, 300))
def test_even_cells_differ_by_one_place_at_most(parallelism):
    table = OutputTable.even(range(parallelism))
    sizes = [high - low + 1 for low, high, _ in table.intervals()]
    assert sum(sizes) == RING
    assert max(sizes) - min(sizes) <= 1
    assert table.owners() == list(range(parallelism))


def test_a_table_of_no_owners_is_refused():
    for make in (OutputTable.even, OutputTable.halved):
        with pytest.raises(ValueError, match="needs at least one owner"):
            make([])


def test_a_split_at_a_chosen_place():
    table = OutputTable.single(A)
    assert table.split(0, B, at=10) == 10
    assert table.split(10, C, at=INT_MAX) == INT_MAX
    assert table.intervals() == [(0, 9, A), (10, INT_MAX - 1, B), (INT_MAX, INT_MAX, C)]


def test_a_single_place_cannot_be_split():
    table = OutputTable([(0, A), (7, B), (8, C)])
    with pytest.raises(ValueError, match="the interval at 7 is a single place and cannot be split"):
        table.split(7, D)
    assert table.version == 1


def test_a_split_outside_the_interval_is_refused():
    table = OutputTable([(0, A), (100, B)])
    for at in (0, 100, -1, 5000):
        with pytest.raises(ValueError, match=rf"0..99 cannot be split at {at}: choose 1..99"):
            table.split(0, C, at=at)


def test_starts_and_places_that_do_not_exist_are_named():
    table = figure_4()
    for change in (
        lambda: table.split(5, C),
        lambda: table.merge_left(5),
        lambda: table.merge_right(5),
        lambda: table.move(5, C),
        lambda: table.upper(5),
    ):
        with pytest.raises(ValueError, match="no interval of this table starts at 5"):
            change()
    for place in (-1, RING):
        with pytest.raises(ValueError, match=f"{place} is no place on the ring: places are 0..2147483647"):
            table.owner(place)
    assert table == figure_4()


@given(st.integers(0, INT_MAX - 1), st.integers(1, INT_MAX))
def test_the_papers_middle_is_inside_every_interval_that_can_be_split(low, size):
    high = min(low + size, INT_MAX)
    table = OutputTable(sorted({0: A, low: B}.items()) + ([(high + 1, C)] if high < INT_MAX else []))
    middle = table.split(low, D)
    assert low < middle <= high
    assert middle == low // 2 + high // 2 + 1
    assert abs((middle - low) - (high - middle + 1)) <= 2


def test_replace_is_one_change_and_finds_every_interval():
    table = OutputTable([(0, A), (10, B), (20, A), (30, C)])
    assert table.replace(A, D) == 2
    assert table.version == 2
    assert table.ranges(D) == [(0, 9), (20, 29)]
    assert table.ranges(A) == []
    assert table.replace(A, B) == 0
    assert table.version == 2


def test_owners_come_once_in_ring_order():
    assert OutputTable([(30, C), (0, B), (10, A), (20, B)]).owners() == [B, A, C]


def test_a_copy_and_a_snapshot_do_not_follow_changes():
    table = figure_4()
    copy, snapshot = table.copy(), table.snapshot()
    table.split(0, 9)
    assert copy == figure_4()
    assert snapshot == (4, ((0, A), (QUARTER, C), (HALF, B), (THREE_QUARTERS, D)))
    assert OutputTable.from_snapshot(snapshot) == copy
    copy.merge_left(QUARTER)
    assert table.owner(QUARTER) == C


@pytest.mark.parametrize(
    ("snapshot", "message"),
    [
        ((1, ()), "starts at 0"),
        ((1, ((5, A),)), "starts at 0"),
        ((1, ((0, A), (0, B))), "two intervals of an output table start at one place"),
        ((1, ((0, A), (RING, B))), "starts beyond 2147483647"),
        ((1, ((-5, A), (0, B))), "starts at 0"),
        ((1, ((0, "a"),)), "are integers"),
        ((1, ((0, A), (1.5, B))), "are integers"),
        (("1", ((0, A),)), "are integers"),
        ((1, 7), "no snapshot of an output table"),
        (None, "no snapshot of an output table"),
        ((1, ((0, A, B),)), "values to unpack"),
        ((1, ((0, A), ("x", B))), "no snapshot of an output table"),
    ],
)
def test_what_is_no_snapshot_of_a_table_is_refused(snapshot, message):
    with pytest.raises(ValueError, match=message):
        OutputTable.from_snapshot(snapshot)


def test_moves_say_which_ranges_change_their_owner():
    before = figure_4()
    after = before.copy()
    after.split(0, 9)
    after.merge_right(HALF)
    after.version = before.version + 1
    assert before.moves_to(after) == [Move(QUARTER // 2, QUARTER - 1, A, 9), Move(HALF, THREE_QUARTERS - 1, B, D)]
    assert before.moves_to(before) == []


def test_moves_between_the_same_owners_side_by_side_are_one():
    before = OutputTable([(0, A), (10, A), (20, B)])
    assert before.moves_to(OutputTable.single(C)) == [Move(0, 19, A, C), Move(20, INT_MAX, B, C)]


def test_a_table_shows_itself_and_is_no_key():
    assert repr(figure_4()) == "<OutputTable version 4: 4 intervals of 4 owners>"
    assert figure_4() != figure_4().snapshot()
    with pytest.raises(TypeError, match="unhashable"):
        hash(figure_4())


class TableAgainstModel(RuleBasedStateMachine):
    """A small ring's worth of places is watched: the model is one owner for each, nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.fresh = 100

    def new_owner(self) -> int:
        self.fresh += 1
        return self.fresh

    @initialize(
        parallelism=st.integers(1, 9), halved=st.booleans(), places=st.sets(st.integers(0, INT_MAX), max_size=40)
    )
    def start(self, parallelism, halved, places):
        self.table = (OutputTable.halved if halved else OutputTable.even)(range(parallelism))
        bounds = {x for low, high, _ in self.table.intervals() for x in (low, high)}
        self.model = {place: self.table.owner(place) for place in places | bounds | {0, 1, 2, INT_MAX}}
        self.version = self.table.version

    def pick(self, data):
        return data.draw(st.sampled_from(self.table.intervals()), label="interval")

    def give(self, low: int, high: int, owner: int) -> None:
        for place in self.model:
            if low <= place <= high:
                self.model[place] = owner

    def changed(self) -> None:
        self.version += 1
        assert self.table.version == self.version

    @rule(data=st.data(), middle=st.booleans())
    def split(self, data, middle):
        low, high, _ = self.pick(data)
        owner = self.new_owner()
        before = self.table.copy()
        if low == high:
            with pytest.raises(ValueError, match="single place"):
                self.table.split(low, owner)
            return
        at = None if middle else data.draw(st.one_of(st.integers(low + 1, high), st.just(low + 1), st.just(high)))
        at = self.table.split(low, owner, at)
        self.model |= {place: before.owner(place) for place in (low, at - 1, at, high)}
        self.give(at, high, owner)
        self.changed()
        assert before.moves_to(self.table) == [Move(at, high, before.owner(low), owner)]

    @rule(data=st.data())
    def merge_left(self, data):
        low, high, _ = self.pick(data)
        left = self.table.merge_left(low)
        if low == 0:
            assert left is None
            return
        assert self.table.upper(left) == high
        self.give(low, high, self.model[max(p for p in self.model if p < low)])
        self.changed()

    @rule(data=st.data())
    def merge_right(self, data):
        low, high, _ = self.pick(data)
        start = self.table.merge_right(low)
        if high == INT_MAX:
            assert start is None
            return
        assert start == low
        self.give(low, high, self.model[min(p for p in self.model if p > high)])
        self.changed()

    @rule(data=st.data())
    def move(self, data):
        low, high, _ = self.pick(data)
        owner = data.draw(st.sampled_from([*self.table.owners(), self.new_owner()]))
        self.table.move(low, owner)
        self.give(low, high, owner)
        self.changed()

    @rule(data=st.data())
    def replace(self, data):
        old = data.draw(st.sampled_from(self.table.owners()))
        new = self.new_owner()
        assert self.table.replace(old, new) > 0
        self.model = {place: new if owner == old else owner for place, owner in self.model.items()}
        self.changed()

    @rule()
    def travel(self):
        self.table = OutputTable.from_snapshot(self.table.snapshot())

    @precondition(lambda self: hasattr(self, "table"))
    @invariant()
    def every_place_has_the_one_owner_of_the_model(self):
        table = self.table
        table.check()
        assert {place: table.owner(place) for place in self.model} == self.model
        intervals = table.intervals()
        assert intervals[0][0] == 0
        assert intervals[-1][1] == INT_MAX
        assert all(a[1] + 1 == b[0] for a, b in pairwise(intervals))
        assert sorted(r for owner in table.owners() for r in table.ranges(owner)) == [i[:2] for i in intervals]
        assert len(table) == len(intervals)


TestTableAgainstModel = TableAgainstModel.TestCase
TestTableAgainstModel.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
