"""Runs in the background that have begun and of which no tuple flows yet."""

from __future__ import annotations

import calendar
import os
import time

import pytest

from esault.errors import UsageError
from esault.runtime.process.owner import Owner
from esault.runtime.session.detached import DetachedRun, any_begins, begin, detached_runs

HERE = {"pid": Owner.current().pid, "born": Owner.current().start_time}


@pytest.mark.parametrize(
    ("command", "about", "begins"),
    [
        (os.getpid(), {"started": "today"}, True),
        (2**30, {"started": "today"}, False),
        (2**30, HERE, True),
        (2**30, {**HERE, "run": "1"}, False),
        (2**30, {**HERE, "ended": "drained"}, False),
    ],
    ids=["the command is there", "the command died", "its process is there", "tuples flow", "it is over"],
)
def test_a_run_begins_until_its_tuples_flow(monkeypatch, tmp_path, command, about, begins):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "esault" / "runs" / f"20260101-000000-{command}"
    folder.mkdir(parents=True)
    DetachedRun(folder).say(**about)
    assert any_begins() is begins


def test_names_follow_each_other_in_every_time_zone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        made = begin(["--version"])
    finally:
        monkeypatch.undo()
        time.tzset()
    began = calendar.timegm(time.strptime(made.folder.name[:15], "%Y%m%d-%H%M%S"))
    assert abs(began - time.time()) < 3600  # Tokyo is nine hours ahead


def test_a_user_without_a_home_has_none_and_is_told_how_to_begin_one(monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", str)
    assert detached_runs() == [] and not any_begins()
    with pytest.raises(UsageError, match="name a folder by XDG_STATE_HOME"):
        begin(["policies"])
