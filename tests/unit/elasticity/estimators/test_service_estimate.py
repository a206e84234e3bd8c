"""What a tuple takes and brings, from windows that are added up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.estimators.service_estimate import FEWEST, LONG, ServiceEstimate


def test_a_window_of_enough_tuples_is_a_measurement_of_its_own():
    cost = ServiceEstimate()
    cost.add(20, 40, 0.2, 0.25)
    assert (cost.service, cost.selectivity) == (0.01, 2.0)
    cost.add(20, 20, 0.4, 0.25)
    assert cost.service == pytest.approx(0.7 * 0.01 + 0.3 * 0.02)
    assert cost.selectivity == pytest.approx(0.7 * 2.0 + 0.3 * 1.0)


def test_windows_with_few_tuples_are_added_up():
    cost = ServiceEstimate()
    for _ in range(3):
        cost.add(2.5, 2.5, 0.25, 0.25)
        assert cost.service is None
    assert "8 of 20 tuples" in cost.missing  # 7.5
    cost.add(2.5, 2.5, 0.25, 0.25)
    assert cost.service == pytest.approx(0.1)
    assert "0 of 20 tuples" in cost.missing


def test_a_tuple_of_ten_seconds_is_known_when_it_is_over():
    cost = ServiceEstimate()
    for _ in range(40):
        cost.add(0, 0, 0.0, 0.25)
        assert cost.service is None
    cost.add(1, 1, 10.0, 0.25)
    assert cost.service == 10.0


def test_quick_tuples_that_are_few_are_waited_for():
    cost = ServiceEstimate()
    for _ in range(19):
        cost.add(1, 100, 0.001, 0.25)
        assert cost.service is None
    cost.add(1, 100, 0.001, 0.25)
    assert cost.service == pytest.approx(0.001)
    assert cost.selectivity == 100.0


def test_how_busy_it_is_is_told_over_the_time_of_two_tuples():
    cost = ServiceEstimate()
    cost.add(1, 1, 5.0, 0.25)
    for _ in range(3):  # 5 s without news, then a tuple is over
        for _ in range(19):
            cost.add(0, 0, 0.0, 0.25)
        cost.add(1, 1, 5.0, 0.25)
    assert cost.span == 10.0
    assert cost.busy == pytest.approx(1.0)


@given(st.integers(20, 2000), st.sampled_from((0.05, 0.5, 2.0)), st.sampled_from((16, 64, 1024)))
def test_a_tuple_takes_its_part_of_all_that_may_be_under_way_also_while_the_first_ones_begin(rate, seconds, most):
    """Calls that take `seconds`, `most` at once: one that begins is counted as busy, and is processed when it is over."""
    cost, window = ServiceEstimate(), 0.25
    counted: list[tuple[int, float, float]] = [(0, 0.0, 0.0)]  # processed, busy, of that in those that are under way
    for look in range(1, 41):
        now = look * window
        ages = [now - i / rate for i in range(int(rate * now))]
        over = sum(age >= seconds for age in ages)
        under_way = sum(age for age in ages if age < seconds) / most
        counted.append((over, over * seconds / most + under_way, under_way))
        (done, busy, opened), (done_now, busy_now, opened_now) = counted[-2:]
        cost.add(done_now - done, 0, busy_now - busy, window, opened=opened_now - opened)
        if cost.service is not None:
            assert cost.service == pytest.approx(seconds / most)
    assert cost.service is not None


def test_how_busy_quick_work_keeps_it_is_that_of_the_newest_window():
    cost = ServiceEstimate()
    cost.add(1000, 0, 1.0, 0.25, width=8)
    cost.add(1000, 0, 0.5, 0.25, width=8)
    assert cost.busy == pytest.approx(0.25)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.floats(1e-4, 12.0)), min_size=1, max_size=60),
    st.floats(1.0, 2.0),
)
def test_it_is_known_from_when_there_was_enough_and_lies_among_what_was_measured(windows, overhead):
    cost, known = ServiceEstimate(), False
    processed = busy = 0.0
    for count, service in windows:
        cost.add(count, count, count * service, 0.25, overhead=overhead)
        processed, busy = processed + count, busy + count * service
        if processed >= FEWEST or (processed >= 1 and busy >= LONG):
            known, processed, busy = True, 0.0, 0.0
        assert (cost.service is not None) == known
    if known:
        assert cost.service is not None
        used = [service * overhead for count, service in windows if count]
        assert 0.999 * min(used) <= cost.service <= 1.001 * max(used)
        assert cost.selectivity == pytest.approx(1.0)
