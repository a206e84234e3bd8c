from __future__ import annotations

import sys
from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.errors import TopologyError
from esault.sources.cron import Cron
from esault.topology.context import Context

LINES = ["*/5 * * * *", "30 2 * * *", "0 * * * *", "45 1,2 * * *", "0 0 29 2 *", "*/20 * * * * *", "15 */6 * * 1-5"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]


def seconds(text):
    return datetime.fromisoformat(text).timestamp()


def read(cron, begin, until, position=None, limit=1000):
    clock = [begin]
    cron.open(Context("cron", now=lambda: clock[0]))
    if position is not None:
        cron.seek(position)
    clock[0] = until
    return [value for _, value in cron.read(limit)]


def said(times):
    return [datetime.fromtimestamp(at, timezone.utc).strftime("%d %H:%M") for at in times]


class TestCron:
    def test_each_tick_has_the_time_at_which_it_is_due(self):
        begin = seconds("2026-03-01T10:01:00+00:00")
        assert said(read(Cron("*/5 * * * *"), begin, begin + 900)) == ["01 10:05", "01 10:10", "01 10:15"]

    def test_in_the_hour_that_is_left_out_a_daily_job_runs_once(self):
        begin = seconds("2026-03-28T12:00:00+00:00")
        times = read(Cron("30 2 * * *", time_zone="Europe/Berlin"), begin, begin + 2 * 86400)
        assert said(times) == ["29 01:00", "30 00:30"]

    def test_in_the_hour_that_comes_twice_a_daily_job_runs_once_and_an_hourly_one_twice(self):
        begin = seconds("2026-10-24T23:30:00+00:00")
        daily = read(Cron("30 2 * * *", time_zone="Europe/Berlin"), begin, begin + 4 * 3600)
        assert said(daily) == ["25 00:30"]
        hourly = read(Cron("30 * * * *", time_zone="Europe/Berlin"), begin, begin + 4 * 3600)
        assert said(hourly) == ["25 00:30", "25 01:30", "25 02:30", "25 03:30"]

    def test_begun_within_the_second_of_the_two_hours_it_names_no_time_of_the_first(self):
        begin = seconds("2026-10-25T01:10:00+00:00")
        times = read(Cron("45 2 * * *", time_zone="Europe/Berlin"), begin, begin + 3 * 86400)
        assert said(times) == ["26 01:45", "27 01:45", "28 01:45"][: len(times)]
        assert len(times) >= 2

    @settings(max_examples=40)
    @given(
        st.sampled_from(LINES),
        st.sampled_from(ZONES),
        st.sampled_from(["2026-03-28", "2026-10-24", "2026-04-04", "2026-10-03", "2026-03-07", "2026-10-31"]),
        st.integers(0, 2880),
        st.integers(1, 40),
    )
    def test_behind_any_tick_the_same_ones_come(self, line, zone, day, minutes, count):
        begin = seconds(f"{day}T00:00:00+00:00") + 60 * minutes
        end = begin + 5 * 86400
        cron = Cron(line, time_zone=zone)
        first = read(cron, begin, end, limit=count)
        rest = read(Cron(line, time_zone=zone), end, end, cron.position(), 10**6)
        whole = read(Cron(line, time_zone=zone), begin, end, limit=10**6)
        assert first + rest == whole
        assert whole == sorted(set(whole))

    @pytest.mark.parametrize(
        ("line", "says"),
        [
            ("* * * *", "no crontab line"),
            ("61 * * * *", "Bad minute"),
            ("0 0 30 2 *", "no crontab line"),
            (5, "no crontab line"),
            ("", "no crontab line"),
        ],
    )
    def test_what_is_no_crontab_line_is_refused(self, line, says):
        with pytest.raises(TopologyError, match=says):
            Cron(line)

    def test_a_time_zone_that_is_not_known_is_refused(self):
        with pytest.raises(TopologyError, match="time_zone='Mars/Base'"):
            Cron("* * * * *", time_zone="Mars/Base")

    def test_the_extra_is_named_where_the_library_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cronsim", None)
        with pytest.raises(TopologyError, match=r"esault\[cron\]"):
            Cron("* * * * *")
