"""Flink's WindowOperatorTest and window assigners, whose times are in ms and whose watermark w says: nothing at or before w will come."""

from __future__ import annotations

import pytest
from steps import Rows

from esault.errors import TopologyError
from esault.windows import CountWindow, SessionWindow, SlidingWindow, TumblingWindow

#: Flink's watermark w is eSault's w + 1: nothing before it will come
NEXT = 1


def test_sessions_take_late_tuples_as_long_as_they_are_open(steps):
    """WindowOperatorTest.testSideOutputDueToLatenessSessionZeroLateness and, by its second late tuple, testSideOutputDueToLatenessSessionZeroLatenessPurgingTrigger."""
    w = steps(SessionWindow(3000))
    w.give("key2", 1000)
    assert w.watermark(1999 + NEXT) == []
    w.give("key2", 2000)
    assert w.watermark(4998 + NEXT) == []
    w.give("key2", 4500)  # behind the watermark, and in a session that reaches beyond it
    w.give("key2", 8500)
    assert w.watermark(7400 + NEXT) == []
    w.give("key2", 7000)  # joins what was open and what waits
    assert w.watermark(11501 + NEXT) == [("key2", (1000, 11500, 5))]
    w.give("key2", 11600)
    assert w.watermark(14600 + NEXT) == [("key2", (11600, 14600, 1))]
    assert w.dropped == 0
    assert w.give("key2", 10000) == [("late", "key2", {"at": 10000, "n": 1})]
    assert w.give("key2", 10100) == [("late", "key2", {"at": 10100, "n": 1})]
    w.give("key2", 14500)
    assert w.watermark(20000 + NEXT) == [("key2", (14500, 17500, 1))]
    assert w.watermark(100000 + NEXT) == []
    assert w.dropped == 2


def test_sessions_of_two_keys(steps):
    """WindowOperatorTest.testSessionWindows, testSessionWindowsWithProcessFunction, testReduceSessionWindows and testReduceSessionWindowsWithProcessFunction: sums over gaps of three seconds, with a snapshot in between."""
    w = steps(SessionWindow(3000))
    for key, n, at in [("key2", 1, 0), ("key2", 2, 1000), ("key2", 3, 2500), ("key1", 1, 10), ("key1", 2, 1000)]:
        assert w.give(key, at, n) == []
    for key, n, at in [("key1", 3, 2500), ("key2", 4, 5501), ("key2", 5, 6000), ("key2", 5, 6000), ("key2", 6, 6050)]:
        assert w.give(key, at, n) == []
    assert sorted(w.watermark(12000 + NEXT)) == [
        ("key1", (10, 5500, 6)),
        ("key2", (0, 5500, 6)),
        ("key2", (5501, 9050, 20)),
    ]
    w.give("key2", 15000, 10)
    w.give("key2", 15000, 20)
    assert (
        w.watermark(17999 + NEXT) == []
    )  # Flink closes at the end, eSault when a tuple at the very end cannot come any more
    assert w.watermark(18000 + NEXT) == [("key2", (15000, 18000, 30))]


def test_touching_sessions_are_one(steps):
    """EventTimeSessionWindowsTest.testMergeConsecutiveWindows: windows that touch, such as 0 to 1, 1 to 2 and 2 to 3, become one."""
    w = steps(SessionWindow(1), Rows)
    for at in (2, 0, 1, 4, 5):
        w.give("k", at, at)
    assert w.end() == [("k", (0, 3, (0, 1, 2))), ("k", (4, 6, (4, 5)))]


def test_a_gap_of_each_tuples_own(steps):
    """DynamicEventTimeSessionWindowsTest: an element's window reaches as far as the extractor says for it."""
    w = steps(SessionWindow(lambda value: value["n"]), Rows)
    for at, gap in ((0, 10), (3, 2), (10, 1), (12, 5)):
        w.give("k", at, gap)
    assert w.watermark(12) == [("k", (0, 11, (10, 2, 1)))]
    assert w.end() == [("k", (12, 17, (5,)))]


def test_a_gap_of_each_tuples_own_whose_furthest_end_holds(steps):
    """WindowOperatorTest.testDynamicEventTimeSessionWindows: three seconds for key1, one for key2 where it says 10, else two."""
    w = steps(SessionWindow(lambda value: {3: 3000, 10: 1000}.get(value["n"], 2000)))
    for key, n, at in [("key1", 3, 10), ("key2", 4, 5000), ("key2", 5, 6000)]:
        assert w.give(key, at, n) == []
    assert sorted(w.watermark(8999 + NEXT)) == [("key1", (10, 3010, 3)), ("key2", (5000, 8000, 9))]
    for n, at in [(1, 9000), (2, 10000), (10, 10500)]:
        assert w.give("key2", at, n) == []
    assert w.watermark(12999 + NEXT) == [("key2", (9000, 12000, 13))]
    for n, at in [(10, 13000), (10, 13500), (1, 14000)]:
        assert w.give("key2", at, n) == []
    assert w.watermark(16999 + NEXT) == [("key2", (13000, 16000, 21))]


def test_sliding_windows_drop_what_is_late_for_all_of_them(steps):
    """WindowOperatorTest.testSideOutputDueToLatenessSliding: a tuple is in those of its windows that are open."""
    w = steps(SlidingWindow(3000, 1000))
    w.give("key2", 1000)
    assert w.watermark(1999 + NEXT) == [("key2", (-1000, 2000, 1))]
    w.give("key2", 2000)
    assert w.watermark(3000 + NEXT) == [("key2", (0, 3000, 2))]
    w.give("key1", 3001)
    w.give("key2", 2400)
    w.give("key2", 2400)
    w.give("key1", 3001)
    w.give("key2", 3900)
    assert sorted(w.watermark(6000 + NEXT)) == [
        ("key1", (1000, 4000, 2)),
        ("key1", (2000, 5000, 2)),
        ("key1", (3000, 6000, 2)),
        ("key2", (1000, 4000, 5)),
        ("key2", (2000, 5000, 4)),
        ("key2", (3000, 6000, 1)),
    ]
    assert w.give("key1", 3001) == [("late", "key1", {"at": 3001, "n": 1})]
    assert w.watermark(25000 + NEXT) == []


OUT_OF_ORDER = [("key2", 3999), ("key2", 3000), ("key1", 20), ("key1", 0), ("key1", 999)]
OUT_OF_ORDER += [("key2", 1998), ("key2", 1999), ("key2", 1000)]


def test_sliding_windows_of_two_keys(steps):
    """WindowOperatorTest.testSlidingEventTimeWindowsReduce and testSlidingEventTimeWindowsApply: tuples are out of order."""
    w = steps(SlidingWindow(3000, 1000))
    for key, at in OUT_OF_ORDER:
        assert w.give(key, at) == []
    assert w.watermark(999 + NEXT) == [("key1", (-2000, 1000, 3))]
    assert sorted(w.watermark(1999 + NEXT)) == [("key1", (-1000, 2000, 3)), ("key2", (-1000, 2000, 3))]
    assert sorted(w.watermark(2999 + NEXT)) == [("key1", (0, 3000, 3)), ("key2", (0, 3000, 3))]
    assert w.watermark(3999 + NEXT) == [("key2", (1000, 4000, 5))]
    assert w.watermark(4999 + NEXT) == [("key2", (2000, 5000, 2))]
    assert w.watermark(5999 + NEXT) == [("key2", (3000, 6000, 2))]
    assert w.watermark(6999 + NEXT) == []
    assert w.watermark(7999 + NEXT) == []


def test_tumbling_windows_of_two_keys(steps):
    """WindowOperatorTest.testTumblingEventTimeWindowsReduce and testTumblingEventTimeWindowsApply, of the same tuples."""
    w = steps(TumblingWindow(3000))
    for key, at in OUT_OF_ORDER:
        assert w.give(key, at) == []
    assert w.watermark(999 + NEXT) == []
    assert w.watermark(1999 + NEXT) == []
    assert sorted(w.watermark(2999 + NEXT)) == [("key1", (0, 3000, 3)), ("key2", (0, 3000, 3))]
    assert w.watermark(3999 + NEXT) == []
    assert w.watermark(4999 + NEXT) == []
    assert w.watermark(5999 + NEXT) == [("key2", (3000, 6000, 2))]
    assert w.watermark(6999 + NEXT) == []
    assert w.watermark(7999 + NEXT) == []


def test_one_window_that_ends_with_the_stream(steps):
    """WindowOperatorTest.testEndOfStreamTrigger: a window of all there is closes when no more comes."""
    w = steps(TumblingWindow(10**9))
    for key, at in OUT_OF_ORDER:
        assert w.give(key, at) == []
    assert sorted(w.end()) == [("key1", (0, 10**9, 3)), ("key2", (0, 10**9, 5))]


def test_windows_of_four_tuples(steps):
    """WindowOperatorTest.testCountTrigger: a key's fourth tuple closes its window, and times are of no account."""
    w = steps(CountWindow(4), Rows)
    for key, at in [("key2", 3000), ("key2", 3999), ("key1", 20), ("key1", 0), ("key1", 999), ("key2", 1998)]:
        assert w.give(key, at) == []
    assert [len(rows) for _, (_, _, rows) in w.give("key2", 1999)] == [4]
    assert w.give("key2", 1000) == []
    assert [(key, len(rows)) for key, (_, _, rows) in w.give("key1", 10999)] == [("key1", 4)]
    assert w.give("key2", 1000) == w.give("key2", 1000) == []
    assert [(key, len(rows)) for key, (_, _, rows) in w.give("key2", 1000)] == [("key2", 4)]


def test_tumbling_windows_drop_what_is_late(steps):
    """WindowOperatorTest.testSideOutputDueToLatenessTumbling."""
    w = steps(TumblingWindow(2000))
    w.give("key2", 1000)
    assert w.watermark(1985 + NEXT) == []
    assert w.give("key2", 1980) == []
    assert w.watermark(1999 + NEXT) == [("key2", (0, 2000, 2))]
    assert w.give("key2", 1998) == [("late", "key2", {"at": 1998, "n": 1})]
    assert w.give("key2", 2001) == []
    assert w.watermark(2999 + NEXT) == []
    assert w.watermark(3999 + NEXT) == [("key2", (2000, 4000, 1))]
    assert w.dropped == 1


@pytest.mark.parametrize(
    ("offset", "cases"),
    [
        (0, {0: (0, 5000), 4999: (0, 5000), 5000: (5000, 10000)}),
        (100, {100: (100, 5100), 5099: (100, 5100), 5100: (5100, 10100)}),
        (-100, {0: (-100, 4900), 4899: (-100, 4900), 4900: (4900, 9900)}),
    ],
)
def test_offsets_of_tumbling_windows(steps, offset, cases):
    """TumblingEventTimeWindowsTest.testWindowAssignment, WithGlobalOffset and WithNegativeGlobalOffset."""
    for at, bounds in cases.items():
        w = steps(TumblingWindow(5000, offset=offset), Rows)
        w.give("k", at)
        assert w.end() == [("k", (*bounds, (1,)))]


@pytest.mark.parametrize(
    ("offset", "cases"),
    [
        (
            0,
            {
                0: [(-4000, 1000), (-3000, 2000), (-2000, 3000), (-1000, 4000), (0, 5000)],
                4999: [(0, 5000), (1000, 6000), (2000, 7000), (3000, 8000), (4000, 9000)],
                5000: [(1000, 6000), (2000, 7000), (3000, 8000), (4000, 9000), (5000, 10000)],
            },
        ),
        (
            100,
            {
                100: [(-3900, 1100), (-2900, 2100), (-1900, 3100), (-900, 4100), (100, 5100)],
                5099: [(100, 5100), (1100, 6100), (2100, 7100), (3100, 8100), (4100, 9100)],
            },
        ),
        (-100, {0: [(-4100, 900), (-3100, 1900), (-2100, 2900), (-1100, 3900), (-100, 4900)]}),
    ],
)
def test_offsets_of_sliding_windows(steps, offset, cases):
    """SlidingEventTimeWindowsTest.testWindowAssignment, WithOffset and WithNegativeOffset."""
    for at, bounds in cases.items():
        w = steps(SlidingWindow(5000, 1000, offset=offset), Rows)
        w.give("k", at)
        assert [value[:2] for _, value in w.end()] == bounds


@pytest.mark.parametrize(
    "make", [lambda: TumblingWindow(-1), lambda: TumblingWindow(10, 20), lambda: TumblingWindow(10, -11)]
)
def test_offsets_that_are_none(make):
    """TumblingEventTimeWindowsTest.testInvalidParameters: |offset| is below the size."""
    with pytest.raises(TopologyError, match="size=-1|offset=20|offset=-11"):
        make()


def test_sliding_counts(steps):
    """WindowOperatorMigrationTest and CountTrigger with CountEvictor behind countWindow(4, 2): every two, the last four at most."""
    w = steps(CountWindow(4, 2), Rows)
    out = [row for n in range(1, 8) for row in w.give("k", n=n)]
    assert [rows for _, (_, _, rows) in out] == [(1, 2), (1, 2, 3, 4), (3, 4, 5, 6)]
    assert [rows for _, (_, _, rows) in w.end()] == [(5, 6, 7)]  # Flink never gives what is left
