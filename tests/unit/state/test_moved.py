"""State under an old name, and tables that a run may not empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from esault import Bolt, Topology, by_key
from esault.control.checkpoints.completed import renamed
from esault.errors import TopologyError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Handle
from esault.sinks import JsonLines
from esault.sources import Items
from esault.state.last_run import BEGUN
from esault.state.run_state import RunState, check_tables
from esault.state.spool import rename_spools, spool_folder
from esault.state.state_path import state_path


class Count(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def plan(name="new", moved=None, out="out.jsonl", mode="replace"):
    t = Topology(name, moved=moved)
    t.spout("rows", Items([("a", 1)])).bolt("count", Count, grouping=by_key()).sink("table", JsonLines(out, mode=mode))
    return t.plan()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_state_under_the_old_name_of_a_topology_moves_to_the_new_one_when_the_run_begins(here):
    before = RunState(state_path(plan(name="old"), None), False, True, print)
    before.begin()
    before.close()
    (here / ".esault/old/spool").mkdir()
    spool_folder(here / ".esault/old", "lines", 0).mkdir()
    (spool_folder(here / ".esault/old", "lines", 0) / "0.rows").write_text("x")
    told: list[str] = []
    state = RunState(state_path(plan(moved={"old": "new", "lines": "rows"}), None), True, False, told.append)
    assert state.path == Path(".esault/old")
    state.close()  # it was refused for something else: the code of before finds all as it was
    assert (here / ".esault/old" / BEGUN).exists()
    assert spool_folder(here / ".esault/old", "lines", 0).exists()
    told.clear()
    state = RunState(state_path(plan(moved={"old": "new", "lines": "rows"}), None), True, False, told.append)
    state.begin()
    assert state.path == Path(".esault/new")
    assert not (here / ".esault/old").exists()
    assert spool_folder(here / ".esault/new", "rows", 0).exists()
    assert "topology 'old' is 'new'" in told[-1]
    state.close()
    assert state_path(plan(moved={"old": "new"}), None).lies == Path(".esault/new")


def test_state_that_is_in_use_does_not_move(here, monkeypatch):
    monkeypatch.setattr("esault.state.run_state.LET_GO_WITHIN", 0.05)
    held = RunState(state_path(plan(name="old"), None), False, True, print)
    with pytest.raises(UsageError, match="another run uses the state directory"):
        RunState(state_path(plan(moved={"old": "new"}), None), True, False, print)
    held.close()


def test_a_topology_with_another_name_never_empties_a_table(here):
    (here / "out.jsonl").write_text("{}\n")
    (here / ".esault/old").mkdir(parents=True)
    with pytest.raises(
        UsageError, match=r"would empty out.jsonl, which sink 'table' replaces.*moved=.*state is kept of: 'old'"
    ):
        check_tables(plan(), here / ".esault/new")
    check_tables(plan(mode="append"), here / ".esault/new")
    (here / "out.jsonl").write_text("")
    check_tables(plan(), here / ".esault/new")


def test_a_run_that_died_before_its_first_checkpoint_begins_anew_with_resume(here):
    (here / "out.jsonl").write_text("{}\n")
    state = RunState(state_path(plan(), here / "state"), False, False, print)
    state.begin()
    state.close()
    assert (here / "state" / BEGUN).exists()
    check_tables(plan(), here / "state")


def test_units_and_the_topology_of_a_checkpoint_get_the_names_of_today():
    kept = CompletedCheckpoint(1, "r", {"rows": CompletedUnit("spout", "sub-unit", 1), "tally": CompletedUnit("bolt", "key", 1)},
                (Handle("tally", "table", 1, None),), topology="old")  # fmt: skip
    now = renamed(kept, plan(moved={"old": "new", "tally": "count"}))
    assert (now.topology, list(now.units), now.handles[0].unit) == ("new", ["rows", "count"], "count")


@pytest.mark.parametrize(
    ("moved", "message"),
    [
        ({"tally": "nowhere"}, "there is no topology and no unit of that name"),
        ({"count": "count"}, "'count' is still there"),
        ({"tally": 1}, "moved says 'tally': 1"),
        ({"Order": Count}, "a class is named with its module"),
        (["tally"], "moved is a dict of old names"),
    ],
)
def test_a_map_of_old_names_that_makes_no_sense_is_refused(moved, message):
    with pytest.raises(TopologyError, match=message):
        plan(moved=moved)


@pytest.mark.parametrize("types", ["shapely", int, [1], ["not a name"]])
def test_types_that_are_none_are_refused(types):
    with pytest.raises(TopologyError, match="types"):
        Topology("t", types=types)


def test_what_was_read_for_a_spout_moves_with_its_name(tmp_path):
    for unit, part in (("lines", 0), ("lines", 1), ("lines-2", 0)):
        folder = spool_folder(tmp_path, unit, part)
        folder.mkdir(parents=True)
        (folder / "0.rows").write_text(f"{unit} {part}")
    rename_spools(tmp_path, {"lines": "texts"})
    assert (spool_folder(tmp_path, "texts", 1) / "0.rows").read_text() == "lines 1"
    assert (spool_folder(tmp_path, "lines-2", 0) / "0.rows").exists()
    assert not spool_folder(tmp_path, "lines", 0).exists()
