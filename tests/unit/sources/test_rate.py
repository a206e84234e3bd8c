from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SourceError, TopologyError
from esault.sources.rate import Rate


def test_at_a_constant_rate_tuple_i_is_due_after_i_over_rate_seconds():
    rate = Rate(10)
    assert [rate.due(t) for t in (0, 0.05, 0.1, 1.0, 1.05)] == [1, 1, 2, 11, 11]
    assert [rate.time_of(i) for i in (0, 1, 10)] == pytest.approx([0, 0.1, 1.0])


def test_steps_change_the_rate_at_their_time():
    rate = Rate([(1, 10), (2, 0), (3, 20)])
    assert [rate.due(t) for t in (0, 0.99, 1, 1.55, 2, 2.5, 3, 3.051, 4)] == [0, 0, 1, 6, 10, 10, 11, 12, 31]
    assert [rate.time_of(i) for i in (0, 5, 9, 10, 11, 30)] == pytest.approx([1, 1.5, 1.9, 3, 3.05, 4])


def test_a_function_of_the_seconds_is_followed():
    rate = Rate(lambda t: 100 * t)
    assert rate.due(2) == 201
    assert rate.time_of(50) == pytest.approx(1.0, abs=0.001)
    assert rate.time_of(200) == pytest.approx(2.0, abs=0.001)


def test_times_of_tuples_that_wait_are_known_until_they_are_forgotten():
    rate = Rate([(0, 10), (10, 100), (20, 1)])
    assert rate.due(1000) > 1100
    assert rate.time_of(0) == 0
    assert rate.time_of(99) == pytest.approx(9.9)
    rate.forget(100)
    assert rate.time_of(100) == pytest.approx(10)
    rate.forget(1100)
    assert len(rate._starts) == 1
    assert rate.time_of(1100) == pytest.approx(20)


def test_a_function_that_gives_the_same_rate_takes_no_memory():
    rate = Rate(lambda t: 5.0)
    rate.due(3600)
    assert len(rate._starts) == 1


@given(
    steps=st.lists(st.tuples(st.floats(0.01, 10), st.sampled_from([0, 0.3, 1, 7.7, 1000])), min_size=1, max_size=5),
    times=st.lists(st.floats(0, 60), min_size=1, max_size=20),
    parts=st.integers(1, 4),
)
def test_what_is_due_is_due_in_order_and_at_its_time(steps, times, parts):
    at, spec = 0.0, []
    for gap, tuples in steps:
        spec.append((at, tuples))
        at += gap
    if not any(tuples for _, tuples in spec):
        spec.append((at, 1))
    rates = [Rate(spec, part, parts) for part in range(parts)]
    whole = Rate(spec)
    for now in sorted(times):
        counts = [rate.due(now) for rate in rates]
        for rate, count in zip(rates, counts, strict=True):
            dues = [rate.time_of(i) for i in range(count)]
            assert dues == sorted(dues)
            assert all(due <= now + 1e-6 for due in dues)
        # the parts together are the whole, but for who is next
        assert abs(sum(counts) - whole.due(now)) <= 1
        assert max(counts) - min(counts) <= 1


@given(
    st.lists(st.tuples(st.floats(0.1, 2), st.sampled_from([0.0, 1.0, 7.0, 40.0])), min_size=1, max_size=4),
    st.integers(1, 3),
)
def test_before_the_next_time_nothing_is_due_and_in_the_end_something_is(steps, parts):
    at, written = 0.0, [(0.0, 3.0)]
    for length, each in steps:
        at += length
        written.append((at, each))
    rate, now = Rate(written, parts - 1, parts), 0.0
    offered = rate.due(now)
    for _ in range(40):
        coming = rate.next_time(offered)
        if coming == math.inf:
            assert not written[-1][1]
            break
        assert coming >= now - 1e-9
        assert Rate(written, parts - 1, parts).due(max(now, coming - 1e-6)) <= offered
        now = max(coming, now) + 1e-6
        offered = rate.due(now)
    else:
        assert offered > 0


def test_it_never_takes_back_what_was_due():
    rate = Rate(10)
    assert rate.due(1.0) == 11
    assert rate.due(0.5) == 11


@pytest.mark.parametrize(
    "spec", [0, -1, math.nan, math.inf, True, "fast", None, [], [(0, -1)], [(0, 1, 2)], [3], [(0, 0)], ["ab"]]
)
def test_what_is_no_rate_is_refused(spec):
    with pytest.raises(TopologyError, match="rate="):
        Rate(spec)


def test_steps_must_be_in_order():
    with pytest.raises(TopologyError, match="the seconds of the steps must grow"):
        Rate([(0, 1), (2, 3), (2, 4)])


@pytest.mark.parametrize("value", [-1, math.nan, None, "x"])
def test_a_function_that_gives_no_rate_is_named_with_its_value(value):
    with pytest.raises(
        SourceError, match=r"the function rate= gave .* for 0\.005 seconds; it must give tuples per second"
    ):
        Rate(lambda t: value).due(1)
