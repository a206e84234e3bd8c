"""Where watermarks start, and what is due when."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.watermark.clock import BEGINNING, IDLE_BOLT, Clock, as_time
from esault.flow.watermark.levels import Levels
from esault.flow.watermark.timers import Timers
from esault.routing.ring import INT_MAX, position
from esault.testing import ManualClock
from esault.topology.event_time import EventTime


def at(value):
    return value["at"]


def clock(of_bolt=False, time=lambda value: value, **options):
    now = ManualClock()
    return Clock(EventTime(time, **options), now, of_bolt), now


def test_it_is_the_newest_time_less_the_lateness():
    made, _ = clock(lateness=5.0)
    assert made.watermark == -math.inf
    made.observe([3, 9, 4])
    assert made.watermark == 4.0
    made.observe([1])
    assert made.watermark == 4.0


@pytest.mark.parametrize("bad", [None, "x", math.nan, math.inf, -math.inf, object()])
def test_what_is_no_time_moves_nothing(bad):
    for values in ([bad], [bad, 3], [3, bad], [2, bad, 3], [bad, 3, bad]):
        made, _ = clock()
        made.observe([1])
        made.observe(values)
        assert made.watermark == (3.0 if 3 in values else 1.0)


@pytest.mark.parametrize(
    "times",
    [
        [3, 9, 4],
        [0.5, 2.5],
        [3, None],
        [math.nan, 2.0],
        [math.inf, 1.0],
        ["x", "y"],
        [True, False],
        [1, 1 << 60],
        [7, 99],
    ],
    ids=str,
)
def test_a_column_of_times_moves_it_as_its_rows_do(times):
    pa = pytest.importorskip("pyarrow")
    columns = pa.RecordBatch.from_pydict({"at": times})
    by_rows, by_column, other = (clock(time=time, ahead=50.0)[0] for time in (itemgetter("at"), itemgetter("at"), at))
    by_rows.observe(columns.to_pylist())
    assert by_column.observe_columns(columns) == (times in ([3, 9, 4], [0.5, 2.5], [7, 99]))
    assert by_column.watermark in (-math.inf, by_rows.watermark)
    assert not other.observe_columns(columns) and other.watermark == -math.inf


def test_all_that_is_seen_of_a_column_of_times_is_the_greatest():
    pa = pytest.importorskip("pyarrow")
    made, _ = clock(time=itemgetter("at"), lateness=5.0)
    assert made.observe_columns(pa.RecordBatch.from_pydict({"at": [7, 9, 8]})) and made.watermark == 4.0
    assert made.observe_columns(pa.RecordBatch.from_pydict({"at": [7.5]})) and made.watermark == 4.0


def test_times_that_raise_move_nothing():
    made, _ = clock(time=lambda value: value["at"])
    made.observe([{"at": 1}, {}, {"at": 5}, 3])
    assert made.watermark == 5.0


NUMBERS = [
    7,
    7.0,
    True,
    Decimal(7),
    Fraction(7),
    np.int64(7),
    np.uint8(7),
    np.float32(7),
    np.float64(7),
    Decimal("-7.5"),
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{type(n).__name__} {n}")
def test_a_time_is_any_real_number_and_becomes_an_int_or_a_float(number):
    time = as_time(number)
    assert type(time) in (int, float)
    assert time == number
    made, _ = clock()
    made.observe([-9, number])
    made.observe([-9.5])
    assert made.watermark == float(number)
    assert type(made.watermark) is float


@pytest.mark.parametrize(
    "bad",
    [None, "7", 10**400, -(10**400), Decimal("nan"), Decimal("snan"), Decimal("inf"), np.float32("nan"), 7j],
    ids=repr,
)
def test_what_is_no_finite_real_number_is_no_time(bad):
    assert as_time(bad) is None
    made, _ = clock()
    made.observe([1, bad, 3])
    assert made.watermark == 3.0


def test_what_is_too_far_ahead_is_not_believed():
    made, now = clock(ahead=10.0)
    made.observe([now() + 5, now() + 11])
    assert made.watermark == now() + 5
    now.advance(1)
    made.observe([now() + 10])
    assert made.watermark == now() + 10


def test_a_source_is_idle_if_that_was_said_and_a_bolt_after_a_while():
    made, now = clock()
    assert made.idle_at(now()) == math.inf
    made, now = clock(of_bolt=True)
    start = now()
    assert made.idle_at(None) == math.inf  # something waits
    assert made.idle_at(start) == start + IDLE_BOLT
    now.advance(5)
    made.observe([1])
    assert made.idle_at(start) == start + 5 + IDLE_BOLT
    made, now = clock(idle=30.0)
    assert made.idle_at(now() + 1) == now() + 31


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.booleans())), st.integers(0, 9))
def test_timers_give_what_is_due_in_order_and_each_once(events, until):
    timers, there = Timers(), {}
    for due, name, add in events:
        if add:
            timers.add(due, name)
            there.setdefault(due, {}).setdefault(name)
        else:
            timers.remove(due, name)
            there.get(due, {}).pop(name, None)
    expected = [(due, name) for due in sorted(there) if due <= until for name in there[due]]
    found = []
    while (first := timers.next(until)) is not None:
        found.append(first)
        timers.remove(*first)
    assert [due for due, _ in found] == [due for due, _ in expected]
    assert sorted(found) == sorted(expected)
    assert len(timers) == sum(len(names) for due, names in there.items() if due > until)


def test_keys_that_came_keep_the_time_of_where_they_came_from_until_it_is_passed():
    place = position("a")
    levels = Levels()
    levels.own = 10.0
    assert levels.of("a") == 10.0
    levels.merge([(place, place, 30.0)])
    assert levels.of("a") == 30.0
    assert levels.of("b") == 10.0
    levels.own = 20.0
    levels.catch_up()
    assert levels.of("a") == 30.0
    levels.own = 30.0
    levels.catch_up()
    assert not levels.others
    levels.merge([(place, place, 5.0)])  # behind: until all that came with it is here
    assert levels.of("a") == 5.0
    levels.catch_up()
    assert levels.of("a") == 30.0


def test_what_is_passed_on_is_what_holds_for_each_place():
    place = position("a")
    levels = Levels()
    levels.own = 10.0
    levels.merge([(place, place + 5, 30.0)])
    levels.merge([(place, place, 3.0)])
    there = Levels()
    there.own = 99.0
    there.merge(levels.cut([(0, INT_MAX)]))
    assert there.of("a") == 3.0
    assert there.of("b") == 10.0
    assert levels.cut([(place + 3, place + 3)]) == [(place + 3, place + 3, 30.0), (place + 3, place + 3, 10.0)]


def test_what_is_saved_holds_for_each_place_wherever_it_is_restored():
    place = position("a")
    behind, ahead = Levels(), Levels()
    behind.own, ahead.own = BEGINNING, 20.0
    behind.merge([(0, place, 10.0)])
    assert ahead.saved() == 20.0  # as earlier versions wrote it, and read it
    for writers in ([behind, ahead], [ahead, behind]):
        there = Levels()
        for levels in writers:
            there.restore(levels.saved(), [(0, place)] if levels is behind else [(place + 1, INT_MAX)])
        assert there.own == BEGINNING
        assert there.of("a") == 10.0
        assert there.of(next(key for key in "bcdefgh" if position(key) > place)) == 20.0
        there.own = 20.0
        there.catch_up()
        assert not there.others
    some = Levels()
    some.restore(behind.saved(), [])  # none of its ranges came here
    some.restore(ahead.saved(), [(place + 1, INT_MAX)])
    assert some.own == 20.0


def test_of_whom_it_is_not_known_what_ranges_they_had_the_slowest_counts():
    levels = Levels()
    for saved in (30.0, 20.0, 25.0):
        levels.restore(saved, None)
    assert levels.own == 20.0 and not levels.others
