"""The handle on a run in the background: what it keeps of a run's words, how it waits, and what it says where nothing answers."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

import esault.api.run_handle as module
from esault import Bolt, Row, Topology, TopologyFailed, by_key, start
from esault.api.run_handle import LINES, RunHandle
from esault.control.report.summary import Snapshot, snapshot
from esault.errors import UsageError
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        if value < 0:
            raise ValueError("<negative>")
        self.total += value
        self.emit(key, self.total)


def topology(values=(1, 2, 3)):
    t = Topology("counted")
    t.spout("numbers", Items([("k", value) for value in values])).bolt("count", Count, grouping=by_key()).sink(
        "totals", Collect()
    )
    return t


def seen() -> tuple[LocalRuntime, Snapshot]:
    """A run that has ended, and how it stands."""
    local = LocalRuntime(topology())
    local.run_until_drained()
    return local, snapshot(local.driver, local.now())


class Held:
    """What a run does until it is let go."""

    def __init__(self, snapshot=None, fails=None):
        self.go, self.begun = threading.Event(), threading.Event()
        self.snapshot, self.fails = snapshot, fails

    def __call__(self, handle):
        if self.snapshot is not None:
            handle.update(self.snapshot)
        self.begun.set()
        assert self.go.wait(60)
        if self.fails is not None:
            raise self.fails
        return seen()[0].report()


@pytest.fixture
def held():
    made = []

    def begin(*arguments, **named):
        made.append(Held(*arguments, **named))
        handle = RunHandle(made[-1])
        assert made[-1].begun.wait(60)
        return handle, made[-1].go

    yield begin
    for each in made:
        each.go.set()


def test_a_run_goes_on_in_the_background_and_its_report_is_there_in_the_end():
    handle = start(topology, engine="local")
    report = handle.wait(60)
    assert report.collected["totals"] == [("k", 1), ("k", 3), ("k", 6)]
    assert handle.report is report
    assert not handle.running
    assert "counted drained after" in repr(handle)
    assert handle.status().topology == "counted"


def test_what_a_run_raises_is_raised_by_those_who_ask():
    handle = start(topology, {"values": (1, -1)}, engine="local")
    with pytest.raises(TopologyFailed, match="<negative>"):
        handle.wait(60)
    assert handle.report is not None
    assert "failed: " in repr(handle)
    assert "<negative>" not in handle._repr_html_()
    assert "&lt;negative&gt;" in handle._repr_html_()


def test_a_run_that_does_not_begin_says_why_by_status_too():
    handle = start(topology, engine="local", fixed="count")
    with pytest.raises(UsageError, match="fixed='count'"):
        handle.status(60)
    with pytest.raises(UsageError, match="fixed='count'"):
        handle.stop()
    assert handle.report is None


def test_who_does_not_wait_long_enough_is_told_what_the_run_does(held):
    handle, go = held()
    assert "starting" in repr(handle)
    with pytest.raises(UsageError, match=r"said nothing for 0\.01 s: it is still starting"):
        handle.status(0.01)
    with pytest.raises(UsageError, match=r"not ended within 0\.01 s: stop\(\) ends it"):
        handle.wait(0.01)
    go.set()
    assert handle.wait(60).ended == "drained"


def test_how_it_stands_is_shown_as_text_and_as_a_table(held):
    stands = seen()[1]
    handle, _ = held(stands)
    assert handle.status() is stands
    assert f"counted {stands.phase} for" in repr(handle)
    page = handle._repr_html_()
    assert "counted" in page
    assert [name in page for name in ("<td>numbers</td>", "<td>count</td>", "<td>p99 ms</td>")] == [True] * 3


def test_the_newest_lines_are_kept_whoever_printed_them(held):
    handle, _ = held()
    handle.notice("a notice")
    handle.line("count/2", "printed")
    assert list(handle.lines) == [("", "a notice"), ("count/2", "printed")]
    for number in range(LINES):
        handle.line("count/2", str(number))
    assert handle.lines[0] == ("count/2", "0")


@pytest.mark.parametrize(
    "asks",
    [
        lambda handle: handle.scale("count", 2),
        lambda handle: handle.throttle("count", 5, 1),
        lambda handle: handle.query("count", "k"),
        lambda handle: handle.savepoint("kept"),
        lambda handle: handle.stop(),
    ],
)
def test_a_run_that_takes_no_requests_says_so(held, monkeypatch, asks):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    handle, _ = held(seen()[1])
    with pytest.raises(UsageError, match="this run takes no requests: those on actors do"):
        asks(handle)


def test_an_empty_text_is_a_key_and_none_is_no_key(held, monkeypatch):
    asked = []
    monkeypatch.setattr(RunHandle, "_ask", lambda self, **request: asked.append(request["key"]) or {"found": []})
    handle, _ = held()
    for key in (None, "", "k", 7):
        handle.query("count", key)
    assert asked == ["", '""', "k", "7"]


def test_one_that_has_ended_takes_none_and_cannot_be_kept():
    handle = start(topology, engine="local")
    handle.wait(60)
    with pytest.raises(UsageError, match="the run has ended"):
        handle.scale("count", 2)
    with pytest.raises(UsageError, match="savepoint 'late': the run has ended"):
        handle.stop(savepoint="late")
    assert handle.stop().ended == "drained"


def test_a_program_that_ends_does_not_wait_for_a_run_that_takes_no_requests(held, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    handle, _ = held(seen()[1])
    handle._leave()
    assert handle.running


def test_what_a_unit_has_emitted_is_given_by_its_name_or_the_sinks():
    handle = start(topology, engine="local")
    handle.wait(60)
    assert handle.emitted("count") == handle.emitted("totals") == [("k", 1), ("k", 3), ("k", 6)]
    with pytest.raises(UsageError, match="'numbers' has no Collect sink: say .sink"):
        handle.emitted("numbers")


def test_while_it_runs_the_rows_are_read_from_the_folder_of_the_run(held, monkeypatch, tmp_path):
    stands = seen()[1]
    units = [replace(unit, sinks=(("totals", "Collect", ""),) * (unit.name == "count")) for unit in stands.units]
    handle, _ = held(replace(stands, units=tuple(units)))
    monkeypatch.setattr(handle, "_place", lambda: tmp_path / "control")
    assert handle.emitted("count") == []  # nothing is committed yet
    sink = Collect()
    sink.open(SimpleNamespace(run_dir=str(tmp_path), unit="totals", sub_unit=1))
    sink.write([Row("k", 1, 0.0, None)])
    sink.commit(1, sink.prepare(1))
    assert handle.emitted("count") == [("k", 1)]


def test_a_report_is_a_table_in_a_notebook():
    report = start(lambda: topology((1, 2)), engine="local").wait(60)
    page = report._repr_html_()
    assert page.startswith("<p>counted: drained after") and "<td>count</td><td>1</td><td>2</td><td>2</td>" in page
    assert "batch read, all processed" in page
    assert "&lt;negative&gt;" in replace(report, failure="<negative>")._repr_html_()
