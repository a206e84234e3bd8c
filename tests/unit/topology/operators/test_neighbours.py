"""A tuple and the one before it."""

from __future__ import annotations

from itertools import groupby, pairwise

from hypothesis import given
from hypothesis import strategies as st

from esault.topology.operators.neighbours import Changes, Pairwise
from tests.unit.topology.operators.recorded import recorded

values = st.lists(st.sampled_from([None, 0, False, 1, "", "a", (), 1.0]), max_size=15)


@given(values)
def test_pairs_are_each_with_the_one_before_also_none(values):
    assert recorded(Pairwise).come(*values).values() == list(pairwise(values))


@given(values)
def test_changes_are_the_first_of_equal_ones(values):
    assert recorded(Changes, None).come(*values).values() == [next(group) for _, group in groupby(values)]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers())))
def test_changes_of_a_part_look_at_that_alone(values):
    found = recorded(Changes, lambda value: value[0]).come(*values).values()
    assert found == [next(group) for _, group in groupby(values, lambda value: value[0])]


@given(values, st.integers(0, 15))
def test_state_goes_to_another_object(values, cut):
    for cls, args in ((Pairwise, ()), (Changes, (None,))):
        one, two = recorded(cls, *args), recorded(cls, *args)
        one.come(*values[:cut])
        two.__setstate__(one.__getstate__())
        two.come(*values[cut:])
        assert one.out + two.out == recorded(cls, *args).come(*values).out
