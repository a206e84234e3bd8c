"""Records in JSON: what a run prints, says and how it stands, each with what it is about."""

from __future__ import annotations

import io
import json
import logging

import pytest

from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.runtime.process.log_output import JsonFormatter
from esault.ui.json_view import EVERY, JsonView


def snapshot(now, done=0):
    units = (UnitSnapshot(name="lines", kind="spout", sub_units=1, tuples_out=done),)
    return Snapshot(
        topology="words", run="r-1", phase="running", draining=False, now=now, seconds=now, units=units, roots_open=0
    )


@pytest.fixture
def written():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    return handler, lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_lines_of_user_code_go_to_standard_output_as_they_are(written, capsys):
    handler, records = written
    JsonView(handler).line("count/3", "hello")
    assert capsys.readouterr().out == "[count/3] hello\n"
    assert records() == []


@pytest.mark.parametrize(
    ("mark", "about"), [("count/3", {"unit": "count", "sub_unit": 3}), ("driver", {"unit": "driver"})]
)
def test_in_the_background_they_are_records_with_unit_and_sub_unit(written, mark, about):
    handler, records = written
    JsonView(handler, lambda first: None).line(mark, "hello")
    (record,) = records()
    assert {name: record[name] for name in about} == about
    assert "hello" in record.values()


def test_a_notice_is_a_record(written):
    handler, records = written
    JsonView(handler).notice("count/3 died")
    assert "count/3 died" in records()[0].values()


def test_how_the_run_stands_is_told_at_the_level_info_now_and_then_and_names_the_run(written, caplog):
    handler, records = written
    began = []
    view = JsonView(handler, began.append)
    with caplog.at_level(logging.INFO, "esault.progress"):
        for now, done in ((0.0, 0), (EVERY / 2, 10), (EVERY, 20)):
            view.update(snapshot(now, done))
    assert [each.now for each in began] == [0.0]
    assert [record["run"] for record in records()] == ["r-1", "r-1"]
    with caplog.at_level(logging.WARNING, "esault.progress"):
        view.update(snapshot(3 * EVERY, 50))
    assert len(records()) == 2
