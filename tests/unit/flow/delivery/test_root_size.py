"""How large roots are: by how long they take while the window is closed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.delivery.acks import Acks
from esault.flow.delivery.root_size import FEWEST, FIRST, HELD, LONG, QUICK, SLOW, TRIED, WORK, RootSize
from esault.flow.delivery.roots import Roots
from esault.messages.settings import Settings


def test_roots_grow_while_each_is_quick_and_the_window_is_closed_nevertheless():
    size = RootSize(1024, True)
    assert size.rows == FIRST
    for expected in (256, 512, 1024, 1024):
        size.processed(QUICK / 2, size.rows, True)
        assert size.rows == expected


def test_they_double_once_a_round_trip():
    size = RootSize(1024, True)
    for _ in range(8):
        size.processed(QUICK / 2, FIRST, True)  # these were on their way already
    assert size.rows == 2 * FIRST


def test_they_do_not_grow_under_light_load_or_where_user_code_is_slow():
    size = RootSize(1024, True)
    size.processed(QUICK / 2, FIRST, False)
    size.processed(QUICK / 2, 3, True)  # the source had no more
    size.processed((QUICK + SLOW) / 2, FIRST, True)
    assert size.rows == FIRST


def test_they_shrink_when_they_take_long_and_never_below_the_first_ones():
    size = RootSize(1024, True)
    for _ in range(3):
        size.processed(QUICK / 2, size.rows, True)
    for expected in (512, 256, 128, 128):
        size.processed(2 * SLOW, size.rows, True)
        assert size.rows == expected


def test_roots_that_were_late_together_shrink_those_to_come_once():
    size = RootSize(1024, True)
    for _ in range(3):
        size.processed(QUICK / 2, size.rows, True)
    for _ in range(8):  # a window of them, behind one long turn
        size.processed(2 * SLOW, 1024, True)
    assert size.rows == 512


def run(size, took, roots):
    """The sizes of so many roots, each as large as it may be at a closed window; `took` says how long one of some size takes."""
    sizes = []
    for _ in range(roots):
        sizes.append(size.rows)
        size.processed(took(size.rows), size.rows, True)
    return sizes


def test_they_grow_where_they_take_long_for_what_a_root_costs_and_not_for_its_tuples():
    size = RootSize(1024, True)
    took = lambda rows: 0.025 + rows * 10e-6
    assert took(1024) > SLOW
    sizes = run(size, took, 4 * 2 * TRIED)
    assert sorted({*sizes}) == [128, 256, 512, 1024]
    assert sizes == sorted(sizes)
    assert {*run(size, took, HELD - 1)} == {1024}


def test_what_was_found_is_tried_anew_after_a_while():
    size = RootSize(1024, True)
    took = lambda rows: 0.025 + rows * 10e-6
    run(size, took, 4 * 2 * TRIED)
    slow = lambda rows: rows * 90e-6
    later = run(size, slow, HELD + 100)
    assert later[0] == 1024 and max(later[-50:]) <= 2 * FIRST
    assert later[-50:].count(FIRST) > 25


def test_they_stay_small_where_their_tuples_take_long():
    size = RootSize(1024, True)
    sizes = run(size, lambda rows: rows * 100e-6, 4 * HELD)
    assert {*sizes} == {FIRST, 2 * FIRST}
    assert sizes.count(FIRST) > 0.97 * len(sizes)


def test_they_shrink_at_once_where_larger_ones_take_much_too_long():
    size = RootSize(1024, True)
    run(size, lambda rows: 0.025 + rows * 10e-6, 4 * 2 * TRIED)
    assert run(size, lambda rows: 2 * LONG, 5) == [1024, 512, 256, 128, 128]


def test_roots_that_end_where_they_begin_grow_while_reading_and_processing_are_quick():
    size = RootSize(1024, True)
    size.at_once(QUICK / 2, FIRST - 1)  # the source had no more
    size.at_once(2 * QUICK, FIRST)
    assert size.rows == FIRST
    for expected in (256, 512, 1024, 1024):
        size.at_once(QUICK / 2, size.rows)
        assert size.rows == expected


def dealt(sub_units, each, roots=200, size=None):
    """The sizes of roots that sub-units take whole, `each` seconds a tuple; eight roots and 64 tuples for each are on their way."""
    size = size or RootSize(1024, True)
    size.dealt_to = sub_units
    sizes = []
    for _ in range(roots):
        sizes.append(size.rows)
        open_roots = max(8, math.ceil(64 * sub_units / size.rows))
        pending = open_roots * size.rows
        at_work = min(sub_units, open_roots)
        size.processed(pending * each / at_work, size.rows, True, pending)
    return sizes


@pytest.mark.parametrize("sub_units", [1, 4, 8, 15, 40])
def test_roots_that_are_dealt_whole_are_small_where_each_is_long_work(sub_units):
    sizes = dealt(sub_units, 0.0011)
    assert sizes[0] == FIRST and {*sizes[5:]} == {FEWEST}
    assert math.ceil(64 * sub_units / FEWEST) >= 2 * sub_units  # then two for each are on their way


@pytest.mark.parametrize("each", [1e-6, 1e-5, 5e-5, WORK / FIRST])
@pytest.mark.parametrize("sub_units", [1, 4, 8])
def test_they_are_as_large_as_the_first_ones_where_a_root_is_short_work(sub_units, each):
    assert min(dealt(sub_units, each)) == FIRST


def test_small_ones_grow_again_when_tuples_take_less():
    size = RootSize(1024, True)
    assert dealt(8, 0.002, size=size)[-1] == FEWEST
    assert dealt(8, 0.0003, size=size)[-1] in (32, 64)
    assert dealt(8, 0.00001, size=size)[-1] >= FIRST


def test_small_ones_grow_again_where_roots_are_divided_from_now_on():
    size = RootSize(1024, True)
    dealt(4, 0.002, size=size)
    sizes = []
    size.dealt_to = 0.0
    for _ in range(5):
        sizes.append(size.rows)
        size.processed(0.2, size.rows, True, 8 * size.rows)
    assert sizes == [16, 32, 64, 128, 128]


@pytest.mark.parametrize(("sub_units", "small"), [(1, False), (4, False), (5, True), (16, True)])
def test_they_are_small_only_where_a_window_of_large_ones_would_leave_sub_units_idle(sub_units, small):
    roots = Roots(1, Settings(max_pending=8), Acks(1, 1, None, None, None), lambda lineage, payload: None)
    roots.deals = True
    roots.widen(sub_units)
    for _ in range(5):
        roots.size.processed(0.2, roots.size.rows, True, 8 * roots.size.rows)
    assert (roots.size.rows < FIRST) == small


def test_roots_that_are_divided_are_never_small():
    size = RootSize(1024, True)
    for _ in range(20):
        size.processed(10 * LONG, size.rows, True, 8 * size.rows)
        assert size.rows == FIRST


def test_without_acks_they_are_large_at_once():
    assert RootSize(1024, False).rows == 1024


@given(
    st.integers(1, 5000),
    st.lists(
        st.tuples(
            st.floats(0, 1) | st.just(0.015),
            st.integers(0, 5000),
            st.just(True) | st.booleans(),
            st.integers(0, 50_000),
        )
    ),
    st.sampled_from([0.0, 1.0, 3.5, 16.0]),
)
def test_the_setting_is_never_passed(most, processed, dealt_to):
    size = RootSize(most, True)
    size.dealt_to = dealt_to
    for each in processed:
        size.processed(*each)
        assert min(FEWEST if dealt_to else FIRST, most) <= size.rows <= most
