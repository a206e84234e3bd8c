"""When a rhythm says that it pays to stop a sub-unit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.estimators.foretold_idle import ForetoldIdle


def test_those_that_are_needed_again_together_bear_the_hold_together():
    coming = ForetoldIdle([1] * 10 + [13] * 20, change=5.0, hold=4.0)
    assert coming.until(1) == 0 and coming.until(2) == coming.until(13) == 10 and coming.until(14) == 30
    # 10 s without it, of which growth begins 3 s before: 7 are worth 5 and a twelfth of 4, and not 5 and 4.
    assert all(coming.pays(rank, range(2, 14), lead=3.0) for rank in range(2, 14))
    assert not coming.pays(13, range(13, 14), lead=3.0)


def test_each_that_is_needed_again_alone_bears_all_of_it():
    coming = ForetoldIdle([1] * 8 + [2, 2, 3, 3, 4], change=5.0, hold=4.0)
    assert not any(coming.pays(rank, range(2, 5), lead=0.0) for rank in (2,))
    assert coming.pays(3, range(2, 5), lead=0.0) and coming.pays(4, range(2, 5), lead=0.0)


counts = st.lists(st.integers(0, 20), max_size=40)


@given(counts, st.floats(0, 20), st.floats(0, 20), st.floats(0, 5), st.integers(1, 15), st.integers(0, 15))
def test_a_shared_hold_keeps_nobody_whom_a_whole_one_would_let_go(needed, change, hold, lead, low, more):
    coming, idle = ForetoldIdle(needed, change, hold), range(low, low + more + 1)
    for rank in idle:
        alone = coming.pays(rank, range(rank, rank + 1), lead)
        together = coming.pays(rank, idle, lead)
        assert together >= alone
        assert alone == (coming.until(rank) - lead > change + hold)
        assert not together or coming.until(rank) - lead > change


@given(counts, st.floats(0, 20), st.floats(0, 20), st.floats(0, 5), st.integers(1, 15), st.integers(0, 15))
def test_those_that_are_needed_again_in_the_same_second_go_or_stay_together(needed, change, hold, lead, low, more):
    coming, idle = ForetoldIdle(needed, change, hold), range(low, low + more + 1)
    answers = {}
    for rank in idle:
        assert answers.setdefault(coming.until(rank), coming.pays(rank, idle, lead)) == coming.pays(rank, idle, lead)
