"""Runs in the background that have begun and of which no tuple flows yet."""

from __future__ import annotations

import os

import pytest

from esault.runtime.process.owner import Owner
from esault.runtime.session.detached import DetachedRun, any_begins

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
