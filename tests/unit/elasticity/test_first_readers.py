"""Readers that a source begins with, by the sizes of what they share and the processors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.first_readers import GAIN, WORTH, first_readers

MB = 1 << 20


@pytest.mark.parametrize(
    ("sizes", "cores", "readers"),
    [
        ([4 * MB] * 4, 2, 2),
        ([4 * MB] * 4, 1, 1),
        ([4 * MB] * 4, 4, 4),
        # Three would leave one with two files, as two do.
        ([4 * MB] * 4, 3, 2),
        ([4 * MB] * 3, 16, 3),
        ([100 * MB], 8, 1),
        ([], 8, 1),
        # One file has nearly all of it.
        ([90 * MB, 10 * MB], 2, 1),
        ([60 * MB, 40 * MB], 2, 2),
        # Too little for a process more, however many files there are.
        ([1000] * 2000, 2, 1),
        ([1000] * 30_000, 2, 2),
        ([WORTH, WORTH], 2, 2),
        ([WORTH, WORTH - 1], 2, 1),
        ([0, 0, 9 * MB], 8, 1),
    ],
)
def test_as_many_as_there_are_processors_and_pieces_that_are_worth_it(sizes, cores, readers):
    assert first_readers(sizes, cores) == readers


@given(st.lists(st.integers(0, 50 * MB), max_size=40), st.integers(1, 20))
def test_there_are_never_more_than_processors_or_pieces_and_each_number_saves_time(sizes, cores):
    readers = first_readers(sizes, cores)
    assert 1 <= readers <= max(1, min(cores, len(sizes)))
    if readers > 1:
        assert max(sizes) <= (1 - GAIN) * sum(sizes)
        assert sum(sizes) >= readers * WORTH
