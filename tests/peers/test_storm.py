"""Storm's own tests of its window manager; the facts alone, times as there.

A window of Storm says what is in it each time that it is due; ours is one object that is closed then.
"""

from __future__ import annotations

import pytest
from steps import Rows

from esault.flow.watermark.clock import BEGINNING, Clock
from esault.flow.watermark.merging import Merging
from esault.testing import ManualClock
from esault.topology.event_time import EventTime
from esault.windows import CountWindow, SlidingWindow, TumblingWindow

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


def test_windows_of_the_last_second(steps):
    """testTimeBasedWindow: what came a second ago is in it no more when it is due; events come in the order of the clock here."""
    w = steps(SlidingWindow(1000, 100), Rows, by="processing")
    w.at(9000)
    for n in (*to(1, 50), *to(101, 200)):
        w.give("k", n=n)
    w.at(10000)
    for n in to(51, 100):
        w.give("k", n=n)
    assert contents(w.at(10100)) == [to(51, 100)]
    for n in to(201, 300):
        w.give("k", n=n)
    assert contents(w.at(10200)) == [(*to(51, 100), *to(201, 300))]


def test_windows_that_nothing_is_in_any_more(steps):
    """testTimeBasedWindowExpiry: a tenth of a second, looked at every 60 ms"""
    w = steps(SlidingWindow(100, 60, offset=20), Rows, by="processing")
    for n in to(1, 10):
        w.give("k", n=n)
    assert [contents(w.at(now)) for now in (60, 120, 180)] == [[to(1, 10)], [], []]


# Storm: WaterMarkEventGeneratorTest --------------------------------------------------------------------------------


def clock():
    """A stream's own watermark, with a lag of 5."""
    return Clock(EventTime(lambda value: value, lateness=5), ManualClock(), of_bolt=False)


@pytest.mark.parametrize(
    ("times", "watermark"),
    [
        # testNoEvents
        ([], BEGINNING),
        # testTrackSingleStream
        ([100, 110], 105),
        # testTrackSingleStreamOutOfOrder
        ([100, 110, 104], 105),
    ],
)
def test_a_watermark_of_one_stream(times, watermark):
    made = clock()
    for at in times:
        made.observe([at])
    assert made.watermark == watermark


def test_a_watermark_of_two_streams():
    """testTrackTwoStreams: there is none before both have told something, and then the lower one counts"""
    merging, found = Merging(), []
    for stream in (1, 2):
        merging.add(stream, 10 + stream)
    for stream, times in ((1, (100, 110)), (2, (95, 98))):
        made = clock()
        made.observe(times)
        merging.read(0, 10 + stream, (float(made.watermark), False, -1, (), 0))
        merging.through(0, True)
        found.append(merging.current)
    assert found == [BEGINNING, 93]


def test_what_is_behind_the_watermark_is_late(steps):
    """testLateEvent"""
    made, w = clock(), steps(TumblingWindow(1), Rows)
    made.observe([100, 110])
    w.watermark(made.watermark)
    for at in (105, 106, 115):
        made.observe([at])
        assert w.give("k", at) == []
    assert w.give("k", 104) == [("late", "k", {"at": 104, "n": 1})]
    assert made.watermark == 110
