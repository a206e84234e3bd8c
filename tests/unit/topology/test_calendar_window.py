"""Calendar windows: bounds in a time zone, also where clocks are changed."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from esault import Bolt, Topology, TopologyError
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.windows import CalendarWindow, Window

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",  # clocks went on at midnight: days began at 1 o'clock
    "America/Havana",  # clocks go back at 1 o'clock to midnight: it is there twice
    "America/St_Johns",  # clocks went back one minute behind midnight: into the day before
    "Pacific/Apia",  # a day that never was
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
]
units = st.sampled_from(["day", "week", "month", "quarter", "year"])


def at(zone, *date):
    return datetime(*date, tzinfo=ZoneInfo(zone)).timestamp()


def hours(kind, time):
    (index,) = kind.indices(time)
    start, end = kind.window(index)
    assert start <= time < end
    return (end - start) / 3600


def test_a_day_has_23_or_25_hours_where_clocks_are_changed():
    day = CalendarWindow("day", "Europe/Berlin")
    assert hours(day, at("Europe/Berlin", 2026, 3, 28, 12)) == 24
    assert hours(day, at("Europe/Berlin", 2026, 3, 29, 12)) == 23
    assert hours(day, at("Europe/Berlin", 2026, 10, 25, 12)) == 25
    assert hours(CalendarWindow("week", "Europe/Berlin"), at("Europe/Berlin", 2026, 3, 29, 12)) == 7 * 24 - 1
    assert hours(CalendarWindow("month", "Europe/Berlin"), at("Europe/Berlin", 2026, 10, 1)) == 31 * 24 + 1


def test_where_midnight_is_skipped_or_there_twice_a_day_begins_with_its_first_moment():
    (index,) = CalendarWindow("day", "America/Sao_Paulo").indices(at("America/Sao_Paulo", 2018, 11, 4, 12))
    start = CalendarWindow("day", "America/Sao_Paulo").window(index).start
    assert datetime.fromtimestamp(start, ZoneInfo("America/Sao_Paulo")).hour == 1
    day = CalendarWindow("day", "America/Havana")
    (index,) = day.indices(at("America/Havana", 2023, 11, 5, 12))
    assert datetime.fromtimestamp(day.window(index).start, ZoneInfo("America/Havana")).fold == 0
    assert hours(day, at("America/Havana", 2023, 11, 5, 12)) == 25


def test_weeks_begin_on_the_day_that_is_said():
    for name, first in [("monday", 20), ("sunday", 19), ("saturday", 18)]:
        week = CalendarWindow("week", week_starts=name)
        (index,) = week.indices(at("UTC", 2026, 7, 23, 9))
        assert week.window(index) == Window(at("UTC", 2026, 7, first), at("UTC", 2026, 7, first + 7))


def test_quarters_and_years():
    time = at("UTC", 2026, 5, 17)
    for unit, first, last in [("quarter", (2026, 4, 1), (2026, 7, 1)), ("year", (2026, 1, 1), (2027, 1, 1))]:
        (index,) = CalendarWindow(unit).indices(time)
        assert CalendarWindow(unit).window(index) == Window(at("UTC", *first), at("UTC", *last))


@settings(max_examples=200, deadline=None)
@given(units, st.sampled_from(ZONES), st.lists(st.floats(-5e9, 8e9), min_size=1, max_size=5))
@example(
    "day", "America/St_Johns", [at("America/St_Johns", 2006, 10, 29, 0) + 30, at("America/St_Johns", 2006, 10, 29) + 90]
)
@example("day", "Pacific/Apia", [at("Pacific/Apia", 2011, 12, 29, 23), at("Pacific/Apia", 2011, 12, 31)])
def test_each_time_is_in_one_window_and_windows_follow_one_another(unit, zone, times):
    kind = CalendarWindow(unit, zone)
    for time in times:
        indices = kind.indices(time)
        assert len(indices) == 1
        window = kind.window(indices[0])
        assert window.start <= time < window.end
        assert kind.window(indices[0] + 1).start == window.end
        assert CalendarWindow(unit, zone).indices(time) == indices  # whatever was asked before
        assert kind.indices(window.start) == indices


def test_what_is_no_calendar_window():
    for given_, text in [
        (("hour",), "unit='hour' is not one of 'day', 'week', 'month', 'quarter', 'year'"),
        (("day", "Berlin"), "zone='Berlin' is not known here .*write a name such as 'Europe/Berlin'"),
        (("day", ""), "zone='' is not known here"),
        (("week", "UTC", "mon"), "week_starts='mon' is not one of 'monday', "),
    ]:
        with pytest.raises(TopologyError, match=text):
            CalendarWindow(*given_)
    with pytest.raises(ValueError, match="beyond the years 1 to 9999"):
        CalendarWindow("day").indices(1e18)
    assert repr(CalendarWindow("day", "UTC")) == "CalendarWindow(unit='day', zone='UTC', week_starts='monday')"


class Count(Bolt):
    def __init__(self):
        self.count = 0

    def process(self, key, value):
        self.count += 1

    def finish(self):
        self.emit(
            self.key, (datetime.fromtimestamp(self.window.start, ZoneInfo("Europe/Berlin")).isoformat(), self.count)
        )


def test_days_of_berlin_run_on_an_engine():
    start = at("Europe/Berlin", 2026, 10, 24)
    t = Topology("t")
    hourly = t.spout("hours", Items([("k", start + 3600 * hour) for hour in range(60)]))
    hourly.window("day", Count, CalendarWindow("day", "Europe/Berlin"), time=float)
    local = LocalRuntime(t)
    local.run_until_drained()
    assert [value for _, value in local.emitted("day")] == [
        ("2026-10-24T00:00:00+02:00", 24),
        ("2026-10-25T00:00:00+02:00", 25),
        ("2026-10-26T00:00:00+01:00", 11),
    ]


@pytest.mark.parametrize("week_starts", ["monday", "tuesday"])
@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize(
    "time",
    [
        253_402_300_799.0,  # the last second of 9999, which often stands for "for ever": its window's end is in no calendar
        -62_135_596_800.0 - 86_400,
        float("nan"),
        float("inf"),
        -1e300,
    ],
)
def test_a_time_whose_window_is_in_no_calendar_is_refused_as_what_it_is(unit, week_starts, time):
    with pytest.raises(ValueError, match=f"time gave .*, whose {unit} reaches beyond the years 1 to 9999"):
        CalendarWindow(unit, week_starts=week_starts).indices(time)


def test_a_week_that_begins_before_the_first_day_of_the_calendar_is_refused():
    first = -62_135_596_800.0  # a Monday
    assert CalendarWindow("week").indices(first)
    with pytest.raises(ValueError, match="whose week reaches beyond"):
        CalendarWindow("week", week_starts="tuesday").indices(first)
