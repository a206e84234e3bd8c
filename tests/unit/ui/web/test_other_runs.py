"""Runs of other processes and reports, as a page of all runs asks for them; the control sockets are played."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from waiting import until

from esault.errors import UsageError
from esault.runtime.session.control_client import Running
from esault.ui.web import other_runs
from esault.ui.web.other_runs import OtherRuns, reports

PLACE = Path("control")


@pytest.fixture
def asked(monkeypatch):
    """A run `r-1` that answers three times, and what it was asked."""
    questions = []

    def ask(place, request, patience=5.0):
        questions.append(request["do"])
        if place != PLACE or questions.count("status") > 3:
            raise UsageError("the running topology does not answer")
        yield {
            "status": {"phase": "running", "seconds": 1.0, "changes": 0, "units": []},
            "history": {"changes": [], "widths": {}},
        }.get(request["do"], {"done": True})

    there = [Running(PLACE, {"topology": "words", "run": "r-1"})]
    monkeypatch.setattr(other_runs, "running", lambda: there)
    monkeypatch.setattr(other_runs, "ask", ask)
    monkeypatch.setattr(other_runs, "EVERY", 0.01)
    return questions, there


def test_what_runs_stands_before_the_reports_of_what_has_run(asked):
    runs = OtherRuns({"a.json": {"topology": "old", "units": {}}})
    assert [(each["run"], each["topology"], each["control"]) for each in runs.list()] == [
        ("r-1", "words", True),
        ("a.json", "old", False),
    ]


def test_a_run_is_followed_by_one_thread_until_it_answers_no_more_and_its_readers_are_told(asked):
    questions, _ = asked
    runs = OtherRuns({})
    history = runs.history("r-1")
    assert runs.history("r-1") is history
    until(lambda: not runs._histories)
    assert questions.count("history") == 1
    assert b"event: end" in b"".join(history.events())
    with pytest.raises(KeyError):
        runs.history("other")


def test_a_request_goes_to_the_run_that_is_named_while_it_is_there(asked):
    _, there = asked
    runs = OtherRuns({})
    assert list(runs.ask("r-1", {"do": "scale"})) == [{"done": True}]
    there.clear()
    with pytest.raises(UsageError, match="that run has ended"):
        runs.ask("r-1", {"do": "scale"})


def test_reports_are_read_by_the_names_of_their_files(tmp_path):
    good, wrong, broken = (str(tmp_path / name) for name in ("good.json", "wrong.json", "broken.json"))
    Path(good).write_text(json.dumps({"topology": "words", "units": {}}))
    Path(wrong).write_text("[1]")
    Path(broken).write_text("{")
    assert reports((good,)) == {good: {"topology": "words", "units": {}}}
    with pytest.raises(UsageError, match="is no report of a run: esault run TOPOLOGY --report"):
        reports((good, wrong))
    for path in (broken, str(tmp_path / "none.json")):
        with pytest.raises(UsageError, match=path):
            reports((path,))
