"""How large roots are: by how long they take while the window is closed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.delivery.root_size import FIRST, QUICK, SLOW, RootSize


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
        size.processed(2 * SLOW, 1024, True)
        assert size.rows == expected


def test_without_acks_they_are_large_at_once():
    assert RootSize(1024, False).rows == 1024


@given(st.integers(1, 5000), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5000), st.booleans())))
def test_the_setting_is_never_passed(most, processed):
    size = RootSize(most, True)
    for each in processed:
        size.processed(*each)
        assert min(FIRST, most) <= size.rows <= most
