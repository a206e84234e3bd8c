"""Of what is the same within a time, the first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.topology.operators.distinct import LATE, Distinct
from tests.unit.topology.operators.recorded import recorded

times = st.lists(st.integers(0, 40), max_size=25)


@given(times, st.integers(1, 9), st.integers(0, 12))
def test_no_two_that_are_emitted_are_near_and_none_is_lost_without_reason(times, within, behind):
    bolt = recorded(Distinct, within, float)
    newest = float("-inf")
    for time in times:
        newest = max(newest, time)
        bolt.clock = newest - behind
        before = list(bolt.out)
        bolt.come(time)
        near = any(abs(time - value) < within for value, to in before if to is None)
        if len(bolt.out) == len(before):
            assert near
        else:
            assert bolt.out[-1] == (time, LATE if time < bolt.clock else None)
            assert time < bolt.clock or not near
    out = bolt.values()
    assert all(abs(a - b) >= within for i, a in enumerate(out) for b in out[:i])


def test_by_the_clock_a_repeat_counts_from_the_one_that_was_emitted():
    bolt = recorded(Distinct, 10.0, None)
    for at in (0.0, 6.0, 9.9, 10.0, 15.0, 20.0):
        bolt.clock = at
        bolt.come(at)
    assert bolt.values() == [0.0, 10.0, 20.0] and bolt.times == (20.0,)


def test_state_goes_to_another_object():
    one, two = recorded(Distinct, 10.0, float), recorded(Distinct, 10.0, float)
    one.come(5)
    two.__setstate__(one.__getstate__())
    two.come(7, 15)
    assert two.values() == [15]
