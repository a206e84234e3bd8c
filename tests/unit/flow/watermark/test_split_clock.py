"""The watermark of a sub-unit that reads splits is the least over those that are not idle."""

from __future__ import annotations

import pytest

from esault.flow.watermark.clock import BEGINNING, END_OF_TIME
from esault.flow.watermark.split_clock import OpenSplits
from esault.topology.event_time import EventTime


@pytest.fixture
def splits():
    made = OpenSplits()
    made.dealt = True
    return made


def made(splits, lateness=0.0, idle=None):
    return splits.clock(EventTime(lambda value: value, lateness, idle), lambda: 100.0)


def rows(splits, clock, split, *times):
    splits.current = split
    clock.observe(times)


class TestSplitClock:
    def test_the_slowest_split_decides_and_one_that_gave_nothing_yet_is_waited_for(self, splits):
        clock = made(splits, lateness=2.0)
        splits.begin("a", ())
        splits.begin("b", ())
        rows(splits, clock, "a", 50, 40)
        assert clock.stand(100.0, None) == (BEGINNING, False, END_OF_TIME)
        rows(splits, clock, "b", 30)
        assert clock.stand(100.0, None) == (28.0, False, END_OF_TIME)

    def test_time_stands_still_until_splits_are_dealt_and_a_sub_unit_without_any_is_idle(self):
        splits = OpenSplits()
        clock = made(splits)
        assert clock.stand(100.0, None) == (BEGINNING, False, END_OF_TIME)
        splits.dealt = True
        assert clock.stand(100.0, None)[1]

    def test_an_idle_split_is_left_out_until_it_has_caught_up(self, splits):
        clock = made(splits, idle=5.0)
        splits.begin("a", ())
        splits.begin("b", ())
        rows(splits, clock, "a", 50)
        rows(splits, clock, "b", 10)
        splits.quiet["b"] = 101.0
        assert clock.stand(102.0, None) == (10.0, False, 106.0)
        assert clock.stand(106.0, None)[0] == 50.0
        splits.quiet["b"] = None
        rows(splits, clock, "b", 20)
        assert clock.stand(107.0, None)[0] == 50.0
        rows(splits, clock, "b", 60)
        rows(splits, clock, "a", 70)
        assert clock.stand(108.0, None)[0] == 60.0

    def test_what_is_not_asked_is_not_silent(self, splits):
        clock = made(splits, idle=5.0)
        splits.begin("a", ())
        splits.begin("b", ())
        rows(splits, clock, "a", 50)
        rows(splits, clock, "b", 10)
        splits.quiet["b"] = 100.0
        splits.hold(102.0)  # there is no room for what was read
        splits.hold(103.0)
        assert clock.stand(130.0, None) == (10.0, False, END_OF_TIME)
        splits.go_on(130.0)
        assert splits.quiet == {"a": None, "b": 128.0}
        assert clock.stand(132.0, None) == (10.0, False, 133.0)
        assert clock.stand(133.0, None)[0] == 50.0

    def test_a_split_that_ends_is_left_out_and_one_that_is_handed_over_goes_on_where_it_was(self, splits):
        clock = made(splits, lateness=1.0)
        splits.begin("a", ())
        splits.begin("b", ())
        rows(splits, clock, "a", 50)
        rows(splits, clock, "b", 10)
        times = splits.end("b")
        assert times == (9.0,)
        assert clock.stand(100.0, None)[0] == 49.0
        splits.begin("b", times)
        assert clock.stand(100.0, None)[0] == 9.0
