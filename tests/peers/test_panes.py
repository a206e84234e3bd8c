"""Results before and behind the end of windows: Flink's lateness and clock, Beam's panes.

Flink's times are in ms, and its watermark w says: nothing at or before w will come. It is eSault's w + 1.
"""

from __future__ import annotations

import pytest
from steps import Panes, Rows, Sum

from esault.windows import SlidingWindow, TumblingWindow

NEXT = 1


def test_a_late_tuple_takes_the_result_back_and_gives_a_new_one(steps):
    """Flink table runtime, WindowOperatorTest.testLateness: an update is the old row and the new one."""
    w = steps(TumblingWindow(2000), updates="retract", allowed_lateness=500)
    assert w.give("key2", 500) == []
    assert w.watermark(1500 + NEXT) == []
    assert w.give("key2", 1300) == []
    assert w.watermark(2300 + NEXT) == [("key2", ((0, 2000, 2), 1))]
    assert w.give("key2", 1997) == [("key2", ((0, 2000, 2), -1)), ("key2", ((0, 2000, 3), 1))]
    assert w.watermark(6000 + NEXT) == []
    assert w.give("key2", 1998) == [("late", "key2", {"at": 1998, "n": 1})]
    assert w.watermark(7000 + NEXT) == []
    assert w.dropped == 1


def test_a_late_tuple_stands_alone_where_windows_are_purged(steps):
    """Flink streaming, WindowOperatorTest.testLateness: with a PurgingTrigger the late pane is 1 and not 3."""
    w = steps(TumblingWindow(2000), updates="discard", allowed_lateness=500)
    w.give("key2", 500)
    w.watermark(1500 + NEXT)
    w.give("key2", 1300)
    assert w.watermark(2300 + NEXT) == [("key2", (0, 2000, 2))]
    assert w.give("key2", 1997) == [("key2", (0, 2000, 1))]
    assert w.watermark(6000 + NEXT) == []
    assert w.give("key2", 1998) == [("late", "key2", {"at": 1998, "n": 1})]


@pytest.mark.parametrize(("bolt", "result"), [(Sum, 1), (Rows, (1,))])
def test_the_last_moment_of_lateness(steps, bolt, result):
    """Flink, WindowOperatorTest.testCleanupTimerWithEmptyReduceStateForTumblingWindows and, of lists, testCleanupTimerWithEmptyListStateForTumblingWindows: state goes at the end and the lateness, without a word."""
    w = steps(TumblingWindow(2000), bolt, updates="accumulate", allowed_lateness=1)
    w.give("key2", 1000)
    assert w.watermark(1599 + NEXT) == []
    assert w.watermark(1999 + NEXT) == [("key2", (0, 2000, result))]
    assert w.operator.states == 1
    assert w.watermark(2000 + NEXT) == []
    assert w.operator.states == 0
    assert w.watermark(5000 + NEXT) == []


def test_a_long_lateness_without_late_tuples(steps):
    """Flink, WindowOperatorTest.testCleanupTimerWithEmptyListStateForTumblingWindows2: the same with a lateness of 100, of which most is left."""
    w = steps(TumblingWindow(2000), Rows, updates="discard", allowed_lateness=100)
    w.give("key2", 1000)
    assert w.watermark(1599 + NEXT) == []
    assert w.watermark(1999 + NEXT) == [("key2", (0, 2000, (1,)))]
    assert w.watermark(2098 + NEXT) == []
    assert w.operator.states == 1
    assert w.watermark(2100 + NEXT) == []
    assert w.operator.states == 0
    assert w.watermark(5000 + NEXT) == []


def test_late_tuples_are_in_the_panes_of_those_windows_that_still_take_them(steps):
    """Sliding windows as Flink has them, with lateness: each window that takes it has a pane."""
    w = steps(SlidingWindow(3000, 1000), updates="accumulate", allowed_lateness=1000)
    w.give("k", 3000)
    assert w.watermark(4500) == [("k", (1000, 4000, 1))]
    assert w.give("k", 2500) == [("k", (1000, 4000, 2))]  # (0, 3000) takes it no more, (2000, 5000) has not ended
    assert w.watermark(5000) == [("k", (2000, 5000, 2))]
    assert w.end() == [("k", (3000, 6000, 1))]


def test_default_trigger_and_late_data(steps):
    """Beam, trigger_transcripts.yaml, fixed_default_late_data."""
    w = steps(TumblingWindow(10), Panes, updates="accumulate", allowed_lateness=1000)
    for at in (1, 2, 3, 10, 11, 25):
        assert w.give("k", at, at) == []
    assert w.watermark(100) == [
        ("k", (0, 10, (1, 2, 3), "on_time", 0, False)),
        ("k", (10, 20, (10, 11), "on_time", 0, False)),
        ("k", (20, 30, (25,), "on_time", 0, False)),
    ]
    assert w.give("k", 7, 7) == [("k", (0, 10, (1, 2, 3, 7), "late", 1, False))]


def test_default_trigger_of_fixed_windows(steps):
    """Beam, trigger_transcripts.yaml, fixed_default: the pane on time has what came."""
    w = steps(TumblingWindow(10), Rows)
    for at in (1, 2, 3, 10, 11):
        assert w.give("k", at, at) == []
    assert w.watermark(25) == [
        ("k", (0, 10, (1, 2, 3))),
        ("k", (10, 20, (10, 11))),
    ]


@pytest.mark.parametrize(
    ("before", "values"),
    [
        # known_late_data_watermark: two of them are behind the watermark already
        (5, (2, 3, 7, 8)),
        # known_late_data_no_watermark_hold_possible
        (8, (2, 3, 7)),
    ],
)
def test_what_is_behind_the_watermark_is_in_windows_that_are_open(steps, before, values):
    """Beam, trigger_transcripts.yaml, "known_late_data_watermark" and "known_late_data_no_watermark_hold_possible": but for the pane's own timestamp."""
    w = steps(TumblingWindow(10), Rows)
    assert w.watermark(before) == []
    for at in values:
        assert w.give("k", at, at) == []
    assert w.watermark(11) == [("k", (0, 10, values))]


def test_early_panes_that_discard(steps):
    """Beam, trigger_transcripts.yaml, discarding_early_fixed, tuple by tuple: the last pane is there though nothing is in it."""
    w = steps(TumblingWindow(10), Panes, updates="discard", early_count=2)
    assert w.give("k", 1, 1) == []
    assert w.give("k", 2, 2) == [("k", (0, 10, (1, 2), "early", 0, False))]
    assert w.give("k", 14, 14) == []
    assert w.give("k", 4, 4) == []
    assert w.give("k", 5, 5) == [("k", (0, 10, (4, 5), "early", 1, False))]
    assert w.give("k", 18, 18) == [("k", (10, 20, (14, 18), "early", 0, False))]
    assert w.give("k", 6, 6) == []
    assert w.watermark(100) == [
        ("k", (0, 10, (6,), "on_time", 2, True)),
        ("k", (10, 20, (), "on_time", 1, True)),
    ]


def test_early_and_late_panes_that_accumulate(steps):
    """Beam, trigger_transcripts.yaml, early_late_sessions, in fixed windows and with a pane for each late tuple."""
    w = steps(TumblingWindow(16), Panes, updates="accumulate", early_count=2, allowed_lateness=1000)
    out = [w.give("k", at, at) for at in (1, 2, 3, 4, 5)]
    assert out == [
        [],
        [("k", (0, 16, (1, 2), "early", 0, False))],
        [],
        [("k", (0, 16, (1, 2, 3, 4), "early", 1, False))],
        [],
    ]
    assert w.watermark(100) == [("k", (0, 16, (1, 2, 3, 4, 5), "on_time", 2, False))]
    assert w.give("k", 1, 1) == [("k", (0, 16, (1, 2, 3, 4, 5, 1), "late", 3, False))]


def test_a_window_that_opens_late_has_no_pane_on_time(steps):
    """Beam, PaneInfo: what comes behind the watermark is late, also the first pane. The last one says that it is."""
    w = steps(TumblingWindow(10), Panes, updates="accumulate", allowed_lateness=20, last_pane=True)
    w.watermark(12)
    assert w.give("k", 7, 7) == [("k", (0, 10, (7,), "late", 0, False))]
    assert w.watermark(29) == []
    assert w.watermark(30) == [("k", (0, 10, (7,), "late", 1, True))]


def test_early_panes_by_the_clock(steps):
    """Beam, AfterProcessingTime.pastFirstElementInPane: so long after the first tuple that is in no pane yet."""
    w = steps(TumblingWindow(100), Panes, updates="accumulate", early_seconds=10)
    w.give("k", 1, 1)
    assert w.at(5) == []
    w.give("k", 2, 2)
    assert w.at(10) == [("k", (0, 100, (1, 2), "early", 0, False))]
    assert w.at(30) == []
    w.give("k", 3, 3)
    assert w.at(39) == []
    assert w.at(40) == [("k", (0, 100, (1, 2, 3), "early", 1, False))]
    w.give("k", 4, 4)
    assert w.watermark(100) == [("k", (0, 100, (1, 2, 3, 4), "on_time", 2, True))]
    assert w.at(100) == []


def test_tumbling_windows_of_the_clock(steps):
    """Flink, WindowOperatorTest.testProcessingTimeTumblingWindows: a tuple's own time is of no account."""
    w = steps(TumblingWindow(3000), Sum, by="processing")
    w.at(3)
    for key, at in [("key2", 7000), ("key2", 7000), ("key2", 9), ("key1", 7000), ("key1", 7000)]:
        w.give(key, at)
    assert sorted(w.at(5000)) == [("key1", (0, 3000, 2)), ("key2", (0, 3000, 3))]
    for _ in range(3):
        w.give("key1", 7000)
    assert w.at(7000) == [("key1", (3000, 6000, 3))]
    assert w.dropped == 0


def test_sliding_windows_of_the_clock(steps):
    """Flink, WindowOperatorTest.testProcessingTimeSlidingWindows."""
    w = steps(SlidingWindow(3000, 1000), Sum, by="processing")
    w.at(3)
    w.give("key2")
    assert w.at(1000) == [("key2", (-2000, 1000, 1))]
    w.give("key2")
    w.give("key2")
    assert w.at(2000) == [("key2", (-1000, 2000, 3))]
    w.give("key1")
    w.give("key1")
    assert sorted(w.at(3000)) == [("key1", (0, 3000, 2)), ("key2", (0, 3000, 3))]
    for _ in range(3):
        w.give("key1")
    assert sorted(w.at(7000)) == [
        ("key1", (1000, 4000, 5)),
        ("key1", (2000, 5000, 5)),
        ("key1", (3000, 6000, 3)),
        ("key2", (1000, 4000, 2)),
    ]


def test_windows_that_hand_over_in_order(steps):
    """Bytewax, windowing/test_collect_window.py: values of a window come by their times. Equal ones come as they came."""
    w = steps(TumblingWindow(10), Rows, ordered=True)
    for at, n in [(0, 1), (8, 3), (4, 2), (13, 5), (12, 4), (12, 4.5)]:
        w.give("ALL", at, n)
    assert w.watermark(10) == [("ALL", (0, 10, (1, 2, 3)))]
    assert w.end() == [("ALL", (10, 20, (4, 4.5, 5)))]
