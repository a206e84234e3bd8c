"""How large roots are: by how long they take while the window is closed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.delivery.root_size import FIRST, HELD, LONG, QUICK, SLOW, TRIED, RootSize


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


def test_however_long_they_take_they_are_never_smaller_than_the_first_ones():
    size = RootSize(1024, True)
    for _ in range(20):
        size.processed(10 * LONG, size.rows, True)
        assert size.rows == FIRST


def test_without_acks_they_are_large_at_once():
    assert RootSize(1024, False).rows == 1024


@given(
    st.integers(1, 5000),
    st.lists(st.tuples(st.floats(0, 1) | st.just(0.015), st.integers(0, 5000), st.just(True) | st.booleans())),
)
def test_the_setting_is_never_passed(most, processed):
    size = RootSize(most, True)
    for each in processed:
        size.processed(*each)
        assert min(FIRST, most) <= size.rows <= most
