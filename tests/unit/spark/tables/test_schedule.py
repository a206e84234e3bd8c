"""Schedules of a pipeline's runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SinkError, TopologyError
from esault.spark.tables import schedule
from esault.spark.tables.schedule import POLL, AtTimes, Every, Landed, repeat


@given(st.lists(st.floats(0, 50), max_size=15), st.floats(0.5, 9))
def test_it_is_due_once_for_all_that_came_due_meanwhile(waits, seconds):
    every, now, began = Every(seconds), 1000.0, 1000.0
    assert every.due(now) and not every.due(now)
    ran = 0
    for wait in waits:
        now += wait
        number = int((now - began) / seconds + 1e-9)
        if abs((now - began) / seconds - round((now - began) / seconds)) < 1e-6:
            return  # too near to tell
        assert every.due(now) is (number > ran)
        assert not every.due(now)
        ran = number


def test_times_of_a_crontab_line_are_due_once():
    day = 86400.0
    at = AtTimes("0 6 * * *", 0.0)
    assert not at.due(0.0) and not at.due(6 * 3600 - 1)
    assert at.due(6 * 3600) and not at.due(6 * 3600 + 1)
    assert at.due(5 * day) and not at.due(5 * day + 6 * 3600 - 1) and at.due(5 * day + 6 * 3600)


@pytest.mark.parametrize("line", ["", "x", "* * * *", "61 * * * *", "0 0 30 2 *"])
def test_no_such_line_is_refused(line):
    with pytest.raises(TopologyError):
        AtTimes(line, 0.0)


def test_tables_that_are_not_there_are_not_due(tmp_path):
    landed = Landed([str(tmp_path / "none"), str(tmp_path)])
    assert not landed.due(0.0) and not Landed([]).due(0.0)


@pytest.mark.parametrize(("folder", "whole"), [("s3://bucket/t", 3), ("folder/t", 5)])
def test_of_a_table_at_an_address_the_log_is_read_whole_once(monkeypatch, folder, whole):
    there = [SinkError("not yet"), SinkError("not yet"), 1, 2, 2]
    read = []

    class Log:
        def refresh(self):
            version = there.pop(0)
            if isinstance(version, SinkError):
                raise version
            self.state = SimpleNamespace(version=version, written=True)
            return self.state

    def table_log(path):
        read.append(path)
        log = Log()
        log.refresh()
        return log

    monkeypatch.setattr(schedule, "table_log", table_log)
    landed = Landed([folder])
    assert [landed.due(float(second)) for second in range(5)] == [False, False, True, True, False]
    assert len(read) == whole  # those that found nothing, and the first


class Over(Exception):
    pass


def run(due, answers, steps):
    """Times at which `repeat` ran, where these times are due and `run` answers so."""
    clock, ran, answers = [0.0], [], list(answers)

    class Schedule:
        def due(self, now):
            return now in due

    def wait(seconds):
        clock[0] += seconds
        if clock[0] >= steps:
            raise Over

    def once():
        ran.append(clock[0])
        return answers.pop(0) if answers else None

    with pytest.raises(Over):
        repeat(once, Schedule(), lambda: clock[0], wait)
    return ran


def test_it_runs_when_it_is_due():
    assert run({0.0, 3.0}, [], 6) == [0.0, 3.0]


def test_what_must_wait_is_called_again_and_takes_along_what_comes_due():
    assert run({0.0, 2.0}, [3 * POLL, None], 10) == [0.0, 3.0]
    assert run({1.0}, [POLL, POLL, None], 10) == [1.0, 2.0, 3.0]
    assert run({1.0}, [0.0, None], 10) == [1.0, 2.0]
