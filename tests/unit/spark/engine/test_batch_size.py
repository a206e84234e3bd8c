"""How large batches are, by what they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esault.spark.engine.batch_size import BEHIND, FIRST, GROWS, GROWS_BLINDLY, LONG_ENOUGH, MANY, MOST, BatchSize


def sizes(takes: Callable[[int], float], batches: int, own: float = 0.5, every: float = 0.0) -> list[int]:
    """The tuples of batches whose two workers take so long together, where there is always more."""
    size, found = BatchSize(every), []
    for _ in range(batches):
        found.append(size.rows)
        worked = takes(size.rows)
        size.took(size.rows, True, own + worked / 2, (worked / 2, worked))
    return found


def test_batches_of_quick_tuples_grow_to_the_largest_in_two_steps() -> None:
    assert sizes(lambda rows: rows * 1e-6, 3) == [FIRST, GROWS * FIRST, MOST]


@pytest.mark.parametrize("each", [0.01, 0.1, 1.0])
def test_batches_of_slow_tuples_take_as_long_as_a_batch_should(each: float) -> None:
    found = sizes(lambda rows: rows * each, 4)
    assert found[0] == FIRST
    assert all(rows * each == pytest.approx(2 * LONG_ENOUGH, abs=2 * each) for rows in found[2:]), found


def test_batches_of_many_tuples_take_twice_as_long_while_more_wait_and_no_longer() -> None:
    found = sizes(lambda rows: rows * 1e-5, 6)
    assert found[-1] * 1e-5 == pytest.approx(2 * BEHIND * LONG_ENOUGH, rel=0.01)
    size = BatchSize()
    size.rows = 2 * MANY
    for limited in (False, True):
        size.took(2 * MANY, limited, 4.5, (4.0, 8.0))
        assert size.rows == (4 * MANY if limited else 2 * MANY)
    size.took(size.rows, False, 17.0, (16.0, 32.0))  # it became slow, and nothing more waits
    assert size.rows * 8e-5 == pytest.approx(2 * LONG_ENOUGH, rel=0.01)


def test_a_batch_that_was_over_soon_is_followed_by_one_that_takes_as_long_as_it_may() -> None:
    size = BatchSize()
    size.rows = 2 * MANY
    size.took(MANY, True, 1.0, (0.5, 1.0))  # half of what it might have had
    assert size.rows == BEHIND * LONG_ENOUGH * MANY
    size.rows = 2 * MANY
    size.took(2 * MANY, True, 0.5, (0.4, 0.8))
    assert size.rows == GROWS_BLINDLY * 2 * MANY


def test_that_another_worker_helps_is_no_cost_of_a_batch() -> None:
    """A first batch is read by one, since nobody knows yet that it is slow."""
    size = BatchSize()
    for workers in (1, 2, 2, 2):
        worked = size.rows * 0.01
        size.took(size.rows, True, 0.5 + worked / workers, (worked / workers, worked))
        assert size.rows * 0.01 / 2 <= 1.1 * LONG_ENOUGH


def test_a_first_batch_that_takes_long_for_other_reasons_makes_no_small_ones_for_long() -> None:
    cold = iter([30.0])
    found = sizes(lambda rows: next(cold, 0.0) + rows * 1e-5, 6)
    assert found[1] < FIRST and max(found) > MANY


def test_a_sink_that_takes_long_to_be_opened_gets_larger_batches_not_smaller_ones() -> None:
    found = sizes(lambda rows: 10.0 + rows * 1e-4, 8)
    assert found[-1] * 1e-4 > 20.0, found


def test_tuples_that_become_slow_make_smaller_batches() -> None:
    size = BatchSize()
    for _ in range(3):
        size.took(size.rows, True, 1.0, (size.rows * 1e-5, size.rows * 1e-5))
    large = size.rows
    for _ in range(6):
        size.took(size.rows, True, 0.5 + size.rows * 0.01, (size.rows * 0.01, size.rows * 0.01))
    assert large > MANY and size.rows * 0.01 <= 2 * LONG_ENOUGH


def test_what_is_not_whole_says_nothing_for_larger_ones() -> None:
    size = BatchSize()
    for _ in range(3):
        size.took(10, False, 0.6, (0.001, 0.001))
    assert size.rows == FIRST
    size.took(0, True, 0.6, (0.001, 0.001))  # a pulse alone
    assert size.rows == FIRST


def test_batches_may_be_as_long_as_there_is_time_between_two() -> None:
    assert sizes(lambda rows: rows * 0.01, 5, every=60.0)[-1] == pytest.approx(12000, rel=0.01)


def test_without_a_word_of_workers_the_time_of_batches_counts() -> None:
    size = BatchSize()
    grown = []
    for seconds in (9.0, 1.0, 1.0, 1.0, 0.5, 3.0, 5.0):
        size.took(size.rows, True, seconds, None)
        grown.append(size.rows // FIRST)
    assert grown == [2, 16, 128, 1024, 7812, 7812, 7812]  # the last ones are the most there may be
    assert size.rows == MOST


@given(
    st.lists(
        st.tuples(
            st.integers(0, MOST),
            st.booleans(),
            st.floats(0, 1e4),
            st.one_of(st.none(), st.tuples(st.floats(0, 1e4), st.floats(0, 1e4))),
        ),
        max_size=40,
    )
)
@example(batches=[(1, False, 0.0, (0.0, 0.0))])
def test_there_is_always_some_and_never_more_than_there_may_be(batches: list[Any]) -> None:
    size = BatchSize()
    for batch in batches:
        size.took(*batch)
        assert 1 <= size.rows <= size.next_rows <= MOST and size.piece >= 1
