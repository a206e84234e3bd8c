"""Tables of a run that may go on: no other run empties them unseen."""

from __future__ import annotations

import os

import pytest

from esault import Bolt, Topology, by_key
from esault.errors import UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit
from esault.sinks import JsonLines
from esault.sources import Items
from esault.state.outputs import OUTPUTS, check_outputs, check_same_units, note_outputs
from esault.state.state_dir import StateDir
from esault.topology.sink import Sink


class Count(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Remote(Sink):
    """A table that is no file."""

    mode = "replace"

    def write(self, rows):
        pass


def plan(name="words", sink=None, out="out.jsonl", mode="replace"):
    t = Topology(name)
    rows = t.spout("rows", Items([("a", 1)]))
    rows.bolt("count", Count, grouping=by_key()).sink("table", sink or JsonLines(out, mode=mode))
    return t.plan()


UNITS = {"rows": CompletedUnit("spout", "sub-unit", 1), "count": CompletedUnit("bolt", "key", 1)}


@pytest.fixture
def paused(tmp_path, monkeypatch):
    """The state directory of a run that may go on."""
    monkeypatch.chdir(tmp_path)
    made = StateDir(tmp_path / ".esault" / "words")
    made.keep(CompletedCheckpoint(4, "r", UNITS, completed_at=100.0, topology="words"))
    note_outputs(plan(), made.path)
    yield made
    made.close()


@pytest.mark.parametrize("own", [None, ".esault/other", "elsewhere/other"])
def test_another_run_that_would_empty_them_is_refused(paused, tmp_path, own):
    with pytest.raises(
        UsageError, match=r"sink 'table' would empty .*out.jsonl, which the run in .*words has written.*checkpoint 4"
    ):
        check_outputs(plan("other"), own and tmp_path / own, None, print)


def test_one_that_adds_to_them_writes_elsewhere_or_is_the_same_run_may_begin(paused):
    check_outputs(plan("other", mode="append"), None, None, print)
    check_outputs(plan("other", out="else.jsonl"), None, None, print)
    check_outputs(plan(), paused.path, None, print)
    paused.mark_ended()
    check_outputs(plan("other"), None, None, print)


def test_a_run_that_goes_on_hears_who_has_written_since(paused, tmp_path):
    told = []
    kept = CompletedCheckpoint(9, "r2", {}, completed_at=200.0)
    os.utime(paused.path / OUTPUTS, (150.0, 150.0))
    check_outputs(plan("other"), tmp_path / ".esault" / "other", kept, told.append)
    assert told == []
    os.utime(paused.path / OUTPUTS, (250.0, 250.0))
    check_outputs(plan("other"), tmp_path / ".esault" / "other", kept, told.append)
    assert "out.jsonl has been written by the run in" in told[0] and "since checkpoint 9: rows of both" in told[0]


def test_what_is_no_list_of_outputs_is_passed_over(paused):
    (paused.path / OUTPUTS).write_text("{")
    check_outputs(plan("other"), None, None, print)


def test_a_renamed_topology_does_not_empty_a_table_that_is_no_file(paused, tmp_path):
    own = tmp_path / ".esault" / "other"
    with pytest.raises(UsageError, match="holds a run with the same units, of topology 'words'.*--rename words=other"):
        check_same_units(plan("other", sink=Remote()), own)
    check_same_units(plan("other"), own)  # it is a file: whether there are rows is looked at
    paused.mark_ended()
    check_same_units(plan("other", sink=Remote()), own)
