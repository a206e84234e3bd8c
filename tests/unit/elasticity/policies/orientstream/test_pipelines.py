"""MPDC, the time-stamp map and the choice of a configuration: vectors reckoned from the paper (Wang et al. 2019)."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.policies.orientstream.exact import TimestampMap
from esault import UsageError
from esault.elasticity.policies.orientstream.configuration import (
    Configuration,
    Node,
    Prediction,
    choose,
    query_latency,
    source_latency,
)
from esault.elasticity.policies.orientstream.mpdc import most_pipelines, mpdc

THREE = {"A": 2, "B": 8, "C": 4}
FOUR = {**THREE, "D": 6}
FIRST = list(enumerate("ABBCABABCC"))
SECOND = list(enumerate("ADBCDACBDA"))


def pipes(grouping):
    return {c: list(numbers) for c, numbers in grouping.pipelines}


def switches(grouping, current):
    """Changes that it takes from configuration `current` on."""
    return sum(a != b for a, b in pairwise([current, *(c for c, _ in grouping.pipelines)]))


# 6.1, 6.2


def test_latency_of_a_query():
    one, two = (0.40, 0.60, 0.50, 0.70), (0.90, 0.30)
    assert (source_latency(one), source_latency(two)) == (pytest.approx(0.55), pytest.approx(0.60))
    assert query_latency(map(source_latency, (one, two))) == pytest.approx(0.60)


def candidates():
    def nodes(*uses):
        return tuple(Node(cpu, memory) for cpu, memory in uses)

    names = [Configuration((("count", n),)) for n in (8, 4, 2)]
    return names, {
        names[0]: Prediction(nodes((0.60, 0.50), (0.40, 0.30)), 0.8, 30_000),
        names[1]: Prediction(nodes((0.30, 0.40), (0.30, 0.20)), 0.9, 25_000),
        names[2]: Prediction(nodes((0.20, 0.20), (0.20, 0.20)), 1.4, 12_000),
    }


def test_the_cheapest_that_meets_the_thresholds():
    (c1, c2, c3), predicted = candidates()
    assert [predicted[c].use() for c in (c1, c2, c3)] == [pytest.approx(v) for v in (0.90, 0.60, 0.40)]
    assert choose(predicted, 1.0, 20_000).configuration == c2
    assert choose(predicted, 0.9, 20_000).configuration == c1
    assert choose(predicted, 2.0, 10_000).configuration == c3


def test_where_none_does_latency_is_protected():
    (c1, _, _), predicted = candidates()
    choice = choose(predicted, 0.5, 20_000)
    assert (choice.configuration, choice.feasible) == (c1, False)


# 6.3


@pytest.mark.parametrize(
    ("window", "change", "most"),
    [
        (1500, 300, 5),
        (1000, 300, 3),
        (2000, 300, 6),
        (900, 300, 3),
        (500, 300, 1),
        (299, 300, 0),
        (700, 100, 7),
        (2400, 200, 12),
    ],
)
def test_most_pipelines(window, change, most):
    assert most_pipelines(window, change) == most


def test_most_pipelines_leaves_time_to_process():
    assert most_pipelines(1500, 300, 0.35) == 3
    assert most_pipelines(1000, 100, 0.3) == 7
    with pytest.raises(UsageError, match="load 1"):
        most_pipelines(1500, 300, 1.0)
    with pytest.raises(UsageError, match="change of 0 ms"):
        most_pipelines(1500, 0)


# 6.4


@pytest.mark.parametrize(
    ("window", "most", "mode", "expected"),
    [
        (3000, 10, "in_order", None),
        (2100, 7, "in_order", None),
        (1500, 5, "by_config", {"A": [0, 4, 6], "B": [1, 2, 5, 7], "C": [3, 8, 9]}),
        (900, 3, "top_parallelism", {"A": [0, 4, 6], "B": [1, 2, 5, 7], "C": [3, 8, 9]}),
        (600, 2, "top_parallelism", {"B": [0, 1, 2, 4, 5, 6, 7], "C": [3, 8, 9]}),
        (300, 1, "top_parallelism", {"B": list(range(10))}),
        (299, 0, "top_parallelism", {"B": list(range(10))}),
    ],
)
def test_first_vector(window, most, mode, expected):
    found = mpdc(FIRST, "A", window, 300, THREE)
    assert (found.changes, found.most, found.mode) == (7, most, mode)
    if expected is None:
        assert [c for c, _ in found.pipelines] == list("ABCABABC")
        assert [n for _, numbers in found.pipelines for n in numbers] == list(range(10))
        assert switches(found, "A") == 7
    else:
        assert pipes(found) == expected


def test_changes_are_counted_from_the_active_configuration():
    assert mpdc(FIRST, "B", 3000, 300, THREE).changes == 8
    assert mpdc(SECOND, "A", 3000, 300, FOUR).changes == 9


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (1500, {"A": [0, 5, 9], "B": [2, 7], "C": [3, 6], "D": [1, 4, 8]}),
        (1200, {"A": [0, 5, 9], "B": [2, 7], "C": [3, 6], "D": [1, 4, 8]}),
        (900, {"B": [0, 2, 5, 7, 9], "D": [1, 4, 8], "C": [3, 6]}),
        (600, {"B": [2, 3, 6, 7], "D": [0, 1, 4, 5, 8, 9]}),
    ],
)
def test_second_vector(window, expected):
    assert pipes(mpdc(SECOND, "A", window, 300, FOUR)) == expected


def test_grouping_always():
    found = mpdc(FIRST, "A", 3000, 300, THREE, always=True)
    assert found.mode == "by_config"
    assert [c for c, _ in found.pipelines] == ["A", "B", "C"]
    assert (switches(found, "A"), switches(found, "C")) == (2, 3)
    assert [c for c, _ in mpdc(FIRST, "C", 3000, 300, THREE, always=True).pipelines] == ["C", "A", "B"]


def test_time_to_process_is_kept_free():
    assert mpdc(FIRST, "A", 900, 300, THREE, load=0.35).most == 1


def test_nothing_in_nothing_out():
    assert mpdc([], "A", 1500, 300, THREE).pipelines == ()


@given(
    st.lists(st.sampled_from("ABCD"), min_size=1, max_size=40),
    st.sampled_from("ABCD"),
    st.integers(0, 3000),
    st.integers(50, 400),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 99)),
)
def test_invariants(asked, current, window, change, always, seed):
    order = None if seed is None else Random(seed)
    found = mpdc(list(enumerate(asked)), current, window, change, FOUR, order=order, always=always)
    assert sorted(n for _, numbers in found.pipelines for n in numbers) == list(range(len(asked)))
    assert all(FOUR[c] >= FOUR[asked[n]] for c, numbers in found.pipelines for n in numbers)
    assert all(list(numbers) == sorted(numbers) for _, numbers in found.pipelines)
    if found.mode == "in_order":
        assert found.changes == switches(found, current) <= found.most
    else:
        assert len(found.pipelines) == min(len(set(asked)), max(1, found.most))
        assert len({c for c, _ in found.pipelines}) == len(found.pipelines)
        assert switches(found, current) <= found.changes or current not in asked


# 6.7


def test_the_vector_of_the_map():
    ordered = TimestampMap(1500, 4, 3)
    assert [ordered.bucket(ms) for ms in (0, 1499, 1500, 4500, 6000)] == [0, 0, 1, 3, 0]
    delivered = {
        0: [(10, 0), (420, 3), (420, 4), (1510, 9)],
        1: [(900, 7), (130, 1)],
        2: [(200, 2), (1499, 8), (1500, 10)],
    }
    for items in delivered.values():
        for ms, sequence in items:
            ordered.put(ms, sequence, None)
    out = [ordered.end(pipe, 0) for pipe in delivered]
    assert out[:2] == [[], []]
    out += [ordered.end(pipe, 1) for pipe in delivered]
    assert [sequence for each in out for _, sequence, _ in each] == [0, 1, 2, 3, 4, 7, 8, 10, 9]


def test_too_far_ahead_and_too_late():
    ordered = TimestampMap(100, 2)
    with pytest.raises(BufferError, match="window 2 is too far ahead"):
        ordered.put(200, 1, None)
    assert ordered.end(0, 0) == []
    ordered.put(200, 1, "late enough now")
    with pytest.raises(UsageError, match="window 0 is out already"):
        ordered.put(99, 2, None)
    with pytest.raises(UsageError, match="0 buckets"):
        TimestampMap(100, 0)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
)
def test_output_is_that_of_one_pipeline(steps, order):
    now, tuples = 0, []
    for sequence, (gap, pipe) in enumerate(steps):
        now += gap
        tuples.append((now, sequence, pipe))
    windows = now // 100 + 1
    ordered: TimestampMap[int] = TimestampMap(100, 2)
    out = []
    for window in range(windows):
        mine = [t for t in tuples if t[0] // 100 == window]
        used = sorted({pipe for _, _, pipe in mine}) or [0]
        ordered.expect(window, len(used))
        order.shuffle(mine)
        for ms, sequence, pipe in mine:
            ordered.put(ms, sequence, pipe)
        order.shuffle(used)
        for pipe in used:
            out += ordered.end(pipe, window)
    assert out == tuples
