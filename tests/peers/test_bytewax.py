"""Bytewax' own tests of windows and of its interval join; the facts alone, seconds from its `align_to`.

A session of Bytewax ends with its last item, ours the gap behind that. Its clock is given no wait: the watermark is the latest time.
"""

from __future__ import annotations

import pytest
from steps import Rows
from test_joins import run

from esault import Topology
from esault import aggregates as agg
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.windows import SessionWindow, SlidingWindow, TumblingWindow

# Bytewax: pytests/operators/windowing/test_session_windower.py ----------------------------------------------


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        # test_initial_session
        ([0], [(0, 0)]),
        # test_extend_forward_within_gap
        ([0, 5], [(0, 5)]),
        # test_extend_forward_exact_gap
        ([0, 10], [(0, 10)]),
        # test_extend_backward_within_gap
        ([0, -5], [(-5, 0)]),
        # test_extend_backward_exact_gap
        ([0, -10], [(-10, 0)]),
        # test_extend_merge
        ([0, 20, 10], [(0, 20)]),
        # test_within_existing
        ([0, 10, 5], [(0, 10)]),
        # test_find_merges_none
        ([0, 20], [(0, 0), (20, 20)]),
        # test_find_merges_within_gap
        ([5, 0], [(0, 5)]),
        # test_find_merges_exact_gap
        ([10, 0], [(0, 10)]),
        # test_find_merges_multi
        ([0, 10, 5], [(0, 10)]),
        # test_find_merges_no_yes_no
        ([0, 20, 25, 40], [(0, 0), (20, 25), (40, 40)]),
    ],
)
def test_sessions_of_a_gap_of_ten(steps, times, expected):
    w = steps(SessionWindow(10), Rows)
    for at in times:
        assert w.give("k", at) == []
    assert sorted((start, end - 10) for _, (start, end, _) in w.end()) == expected


def test_what_is_older_than_all_sessions(steps):
    """test_late"""
    w = steps(SessionWindow(10), Rows)
    w.give("k", 0)
    w.watermark(0)
    assert w.give("k", -1000) == [("late", "k", {"at": -1000, "n": 1})]


# Bytewax: pytests/operators/windowing/test_sliding_windower.py -----------------------------------------------


@pytest.mark.parametrize(
    ("every", "time", "numbers"),
    [
        # test_intersect_overlap_offset_divisible_by_length_bulk_positive
        (5, 13, [1, 2]),
        # test_intersect_overlap_offset_divisible_by_length_bulk_negative
        (5, -3, [-2, -1]),
        # test_intersect_overlap_offset_divisible_by_length_bulk_zero_negative
        (5, 3, [-1, 0]),
        # test_intersect_overlap_offset_divisible_by_length_bulk_zero_positive
        (5, 7, [0, 1]),
        # test_intersect_overlap_offset_divisible_by_length_edge_positive
        (5, 15, [2, 3]),
        # test_intersect_overlap_offset_divisible_by_length_edge_negative
        (5, -5, [-2, -1]),
        # test_intersect_overlap_offset_divisible_by_length_edge_start_zero
        (5, 0, [-1, 0]),
        # test_intersect_overlap_offset_divisible_by_length_edge_end_zero
        (5, 10, [1, 2]),
        # test_intersect_overlap_offset_indivisible_by_length_bulk_positive
        (3, 11, [1, 2, 3]),
        # test_intersect_overlap_offset_indivisible_by_length_bulk_positive_remainder
        (3, 11.5, [1, 2, 3]),
        # test_intersect_overlap_offset_indivisible_by_length_bulk_negative
        (3, -1, [-3, -2, -1]),
        # test_intersect_overlap_offset_indivisible_by_length_bulk_negative_remainder
        (3, -1.5, [-3, -2, -1]),
        # test_intersect_overlap_offset_indivisible_by_length_bulk_zero
        (3, 5, [-1, 0, 1]),
        # test_intersect_overlap_offset_indivisible_by_length_edge_start_positive
        (7, 14, [1, 2]),
        # test_intersect_overlap_offset_indivisible_by_length_edge_start_negative
        (7, -7, [-2, -1]),
        # test_intersect_overlap_offset_indivisible_by_length_edge_start_zero
        (7, 0, [-1, 0]),
        # test_intersect_overlap_offset_indivisible_by_length_edge_end_positive
        (7, 17, [2]),
        # test_intersect_overlap_offset_indivisible_by_length_edge_end_negative
        (7, -4, [-1]),
        # test_intersect_overlap_offset_indivisible_by_length_edge_end_zero
        (7, 10, [1]),
        # test_intersect_tumble_bulk_positive
        (10, 15, [1]),
        # test_intersect_tumble_bulk_negative
        (10, -5, [-1]),
        # test_intersect_tumble_bulk_zero
        (10, 5, [0]),
        # test_intersect_tumble_edge_positive
        (10, 20, [2]),
        # test_intersect_tumble_edge_negative
        (10, -10, [-1]),
        # test_intersect_tumble_edge_zero_start
        (10, 0, [0]),
        # test_intersect_tumble_edge_zero_end
        (10, 10, [1]),
    ],
)
def test_windows_of_ten_that_contain_a_time(steps, every, time, numbers):
    w = steps(SlidingWindow(10, every), Rows)
    w.give("k", time)
    assert [value[:2] for _, value in w.end()] == [(n * every, n * every + 10) for n in numbers]


# Bytewax: pytests/operators/windowing/test_fold_window.py ----------------------------------------------------


def letters(steps, window, items):
    """(start, letters) of each window; the watermark is the latest time."""
    w = steps(window, Rows)
    found, latest = [], 0
    for letter, at in items:
        w.give("ALL", at, letter)
        latest = max(latest, at)
        found += w.watermark(latest)
    assert w.dropped == 1
    return [(start, "".join(rows)) for _, (start, _, rows) in [*found, *w.end()]]


def test_a_fold_of_tumbling_windows(steps):
    """test_fold_window_tumbling"""
    items = [("login", 0), ("post", 4), ("post", 8), ("post", 16)]
    w = steps(TumblingWindow(10), Rows)
    for what, at in items:
        w.give("ALL", at, what)
    assert w.end() == [("ALL", (0, 10, ("login", "post", "post"))), ("ALL", (10, 20, ("post",)))]


def test_a_fold_of_sessions(steps):
    """test_fold_window_session: a gap of five, and one that is late"""
    items = [("a", 1), ("b", 5), ("c", 11), ("d", 12), ("e", 13), ("f", 14), ("g", 20), ("h", 1)]
    assert letters(steps, SessionWindow(5), items) == [(1, "ab"), (11, "cdef"), (20, "g")]


def test_a_fold_of_sliding_windows(steps):
    """test_fold_window_sliding: ten long, every five, and one that is late"""
    items = [("a", 1), ("b", 4), ("c", 8), ("d", 12), ("e", 13), ("f", 14), ("g", 16), ("h", 1)]
    found = letters(steps, SlidingWindow(10, 5), items)
    assert found == [(-5, "ab"), (0, "abc"), (5, "cdef"), (10, "defg"), (15, "g")]


# Bytewax: pytests/operators/windowing/test_count_window.py, test_reduce_window.py, test_max_min_window.py -------


def aggregated(rows, aggregate):
    """(key, window's number, aggregate), of windows of ten."""
    t = Topology("aggregated")
    spout = t.spout("rows", Items([(key, {"at": at, "val": n}) for key, at, n in rows]), time=lambda v: v["at"])
    spout.aggregate("out", {"found": aggregate}, TumblingWindow(10))
    local = LocalRuntime(t)
    local.run_until_drained()
    return sorted((key, value["start"] // 10, value["found"]) for key, value in local.emitted("out"))


ROWS = [("a", 0, 1), ("a", 4, 9), ("a", 8, 3), ("a", 12, 10), ("a", 13, 4)]


@pytest.mark.parametrize(
    ("rows", "aggregate", "expected"),
    [
        # test_count_window
        (
            [("a", 0, 1), ("a", 4, 1), ("b", 8, 1), ("a", 12, 1), ("a", 13, 1)],
            agg.count(),
            [("a", 0, 2), ("a", 1, 2), ("b", 0, 1)],
        ),
        # test_reduce_window
        ([(key, at, 1) for key, at, _ in ROWS], agg.sum("val"), [("a", 0, 3), ("a", 1, 2)]),
        # test_max_window
        (ROWS, agg.max("val"), [("a", 0, 9), ("a", 1, 10)]),
        # test_min_window
        (ROWS, agg.min("val"), [("a", 0, 1), ("a", 1, 4)]),
    ],
)
def test_aggregates_of_tumbling_windows(rows, aggregate, expected):
    assert aggregated(rows, aggregate) == expected


# Bytewax: pytests/interval/test_join_interval.py ----------------------------------------------------------------

NEAR = [("l", "ALL", ("left", 0)), ("r", "ALL", ("right1", 1)), ("r", "ALL", ("right2", 2))]


@pytest.mark.parametrize(
    ("rows", "within", "keep", "expected"),
    [
        # test_join_interval_complete
        (NEAR, 2, "all", [("left", "right1"), ("left", "right2")]),
        # test_join_interval_product
        (NEAR, 2, "all", [("left", "right1"), ("left", "right2")]),
        # test_join_interval_final
        (NEAR, 2, "last", [("left", "right2")]),
        # test_join_interval_batch_complete
        (
            [("l", "ALL", (f"l{n}", n)) for n in range(6)] + [("r", "ALL", (f"r{n}", n)) for n in range(4)],
            0.5,
            "all",
            [(f"l{n}", f"r{n}") for n in range(4)],
        ),
    ],
)
def test_joins_by_interval(rows, within, keep, expected):
    def build(t, left, right):
        left, right = (side.timed(lambda v: v[-1], lateness=10) for side in (left, right))
        left.join("out", right, within=(within, within), keep=keep)

    found = run(rows, build)
    assert [pair for _, pair in found] == expected
