"""Storm's own tests of its window manager; the facts alone, times as there.

A window of Storm says what is in it each time that it is due; ours is one object that is closed then.
"""

from __future__ import annotations

import pytest
from steps import Rows

from esault.windows import CountWindow, SlidingWindow

# Storm: WindowManagerTest --------------------------------------------------------------------------------------


def to(first, last):
    return tuple(range(first, last + 1))


@pytest.mark.parametrize(
    ("window", "count", "expected"),
    [
        # testCountBasedWindow, testCountBasedSlidingWithSameEventTs
        (CountWindow(5, 2), 10, [to(1, 2), to(1, 4), to(2, 6), to(4, 8), to(6, 10)]),
        # testTumblingWindow
        (CountWindow(3), 6, [to(1, 3), to(4, 6)]),
        # testCountBasedTumblingWithSameEventTs
        (CountWindow(2), 10, [to(n, n + 1) for n in (1, 3, 5, 7, 9)]),
    ],
)
def test_windows_of_a_count(steps, window, count, expected):
    w = steps(window, Rows)
    found = [rows for n in to(1, count) for _, (_, _, rows) in w.give("k", n=n)]
    assert found == expected and w.end() == []


def contents(found):
    return [rows for _, (_, _, rows) in found]


def test_windows_of_event_time(steps):
    """testEventTimeBasedWindow: twenty long, every ten; those without a tuple are none here either."""
    w = steps(SlidingWindow(20, 10), Rows)
    for n, at in enumerate((603, 605, 607), 1):
        w.give("k", at, n)
    assert w.watermark(609) == []
    for n, at in enumerate((618, 626, 636), 4):
        w.give("k", at, n)
    assert contents(w.watermark(631)) == [to(1, 3), to(1, 4), to(4, 5)]
    for n, at in enumerate((825, 826, 827, 839), 7):
        w.give("k", at, n)
    assert contents(w.watermark(834)) == [to(5, 6), to(6, 6), to(7, 9)]


@pytest.mark.parametrize(
    ("times", "third"),
    [
        # testEventTimeLag
        ((603, 605, 607, 618, 626, 632, 629, 636), (4, 5, 7)),
        # testScanStop
        ((603, 605, 607, 618, 626, 629, 636, 637, 638, 639), (4, 5, 6)),
    ],
)
def test_tuples_out_of_order(steps, times, third):
    w = steps(SlidingWindow(20, 10), Rows)
    for n, at in enumerate(times, 1):
        w.give("k", at, n)
    assert contents(w.watermark(631)) == [to(1, 3), to(1, 4), third]
