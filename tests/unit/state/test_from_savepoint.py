"""A run that begins with a savepoint: what of its state directory stays, and that no kill loses either of both."""

from __future__ import annotations

import pytest

from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit
from esault.state import run_state, state_dir
from esault.state.checkpoint_view import CheckpointView
from esault.state.last_run import LastRun, note_run
from esault.state.rewrite import rewrite_checkpoint
from esault.state.run_state import RunState
from esault.state.spool import spool_folder
from esault.state.state_dir import StateDir
from esault.state.state_path import StatePath
from tests.unit.state.test_savepoints import checkpoint, handle


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(run_state, "LET_GO_WITHIN", 0.1)


def taken(path, numbers=(5,), at=5, handles=()):
    """A state directory with checkpoints, of which one is a savepoint."""
    held = StateDir(path)
    for number in numbers:
        kept = checkpoint(held, number, handles, key=f"k{number}")
        if number == at:
            found = held.savepoints.create(kept, "first")
    held.close()
    return found


def begin(path, savepoint, **how):
    told = []
    state = RunState(
        StatePath(path, path), how.get("resume", False), how.get("restart", False), told.append, savepoint=savepoint
    )
    try:
        state.begin()
    finally:
        state.close()
    return state, told


def keys(path):
    return [key for key, _ in CheckpointView(path).states("count")]


def manifests(path):
    return [each.name for each in StateDir(path, locked=False).manifests()]


def test_a_new_state_directory_holds_it_before_anything_else_is_done(tmp_path):
    savepoint = taken(tmp_path / "old")
    state, told = begin(tmp_path / "new", savepoint)
    assert (state.from_savepoint, state.kept.number, state.last_number) == (True, 6, 6)
    assert "checkpoint 5 of words" in told[0] and "here it is checkpoint 6" in told[0]
    assert keys(tmp_path / "new") == ["k5"] == keys(savepoint)
    resumed, _ = begin(tmp_path / "new", None, resume=True)
    assert (resumed.from_savepoint, resumed.kept) == (False, state.kept)


def test_it_goes_on_where_it_was_taken_with_all_that_has_been_read_since(tmp_path):
    path = tmp_path / "state"
    savepoint = taken(path, handles=[handle(5)])
    spool = spool_folder(path, "lines", 0)
    spool.mkdir(parents=True)
    (spool / "00000000.rows").write_bytes(b"read since")
    state, told = begin(path, savepoint)
    assert state.kept.handles == (handle(5),)
    assert (spool / "00000000.rows").read_bytes() == b"read since"
    assert (manifests(path), keys(path), len(told)) == (["checkpoint-00000006.json"], ["k5"], 1)
    assert keys(savepoint) == ["k5"]


def test_one_that_was_rewritten_is_not_the_checkpoint_that_it_was_made_of(tmp_path):
    path = tmp_path / "state"
    taken(path)
    rewrite_checkpoint(
        CheckpointView(path), lambda unit, key, state: {"n": 7}, StateDir(path, locked=False).savepoints, "mended"
    )
    with pytest.raises(UsageError, match=r"did not finish \(checkpoint 5\)"):
        begin(path, path / "savepoints" / "mended")
    begin(path, path / "savepoints" / "mended", restart=True)
    assert list(CheckpointView(path).states("count")) == [("k5", {"n": 7})]


def test_another_run_that_did_not_finish_is_left_alone_unless_that_is_said(tmp_path):
    path = tmp_path / "state"
    savepoint = taken(path, numbers=(5, 6, 7))
    with pytest.raises(UsageError, match=r"did not finish \(checkpoint 7\).*--resume.*--restart"):
        begin(path, savepoint)
    state, told = begin(path, savepoint, restart=True)
    assert (state.kept.number, manifests(path), keys(path)) == (8, ["checkpoint-00000008.json"], ["k5"])
    assert "checkpoint 7 came after it: rows that sinks committed since come once more" in told[1]


def test_with_resume_it_is_for_the_first_time_only(tmp_path):
    savepoint = taken(tmp_path / "old")
    state, _ = begin(tmp_path / "new", savepoint, resume=True)
    assert state.from_savepoint
    held = StateDir(tmp_path / "new")
    checkpoint(held, 9, key="later")
    held.close()
    state, told = begin(tmp_path / "new", savepoint, resume=True)
    assert (state.from_savepoint, state.kept.number) == (False, 9)
    assert [text.startswith(f"going on from checkpoint 9 in {tmp_path / 'new'}, ") for text in told] == [True]


def test_where_a_run_has_ended_it_begins_as_in_a_new_one(tmp_path):
    savepoint = taken(tmp_path / "old")
    held = StateDir(tmp_path / "new")
    checkpoint(held, 12, key="ended")
    held.mark_ended()
    held.close()
    state, _ = begin(tmp_path / "new", savepoint)
    assert (state.kept.number, keys(tmp_path / "new")) == (13, ["k5"])
    assert not StateDir(tmp_path / "new", locked=False).ended


def test_a_run_that_had_come_to_its_end_has_nothing_to_go_on_with(tmp_path):
    held = StateDir(tmp_path / "old")
    unit = CompletedUnit("spout", "sub-unit", 1, finished=True)
    held.keep(CompletedCheckpoint(3, "r1", {"lines": unit}, topology="words"))
    savepoint = held.savepoints.create(held.newest()[0], "last")
    held.close()
    with pytest.raises(
        UsageError, match=r"had come to its end: there is nothing to go on with.* `esault stop --savepoint NAME`"
    ):
        begin(tmp_path / "new", savepoint)
    with pytest.raises(UsageError, match="has no checkpoint"):
        begin(tmp_path / "new", tmp_path)


def test_a_damaged_one_is_named_and_nothing_is_changed(tmp_path):
    savepoint = taken(tmp_path / "old")
    piece = next(savepoint.glob("*.state"))
    piece.write_bytes(piece.read_bytes()[:-1] + b"x")
    with pytest.raises(CheckpointError, match=r"no checkpoint in .*first is whole"):
        begin(tmp_path / "new", savepoint)


def test_a_run_that_is_killed_while_it_begins_loses_neither_of_both(tmp_path, monkeypatch):
    path = tmp_path / "state"
    savepoint = taken(path, numbers=(5, 6, 7))

    def killed(path, data):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(state_dir, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            begin(path, savepoint, restart=True)
    assert keys(path) == ["k7"]
    assert begin(path, None, resume=True)[0].kept.number == 7

    def killed_later(self, paths):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StateDir, "_remove", killed_later)
        with pytest.raises(KeyboardInterrupt):
            begin(path, savepoint, restart=True)
    assert begin(path, None, resume=True)[0].kept.number == 8
    assert keys(path) == ["k5"] == keys(savepoint)


def test_what_spouts_had_read_by_then_takes_the_place_of_what_is_there(tmp_path):
    old = spool_folder(tmp_path / "old", "lines", 0)
    old.mkdir(parents=True)
    (old / "00000002.rows").write_bytes(b"then")
    savepoint = taken(tmp_path / "old")
    there = spool_folder(tmp_path / "new", "lines", 1)
    there.mkdir(parents=True)
    (there / "00000000.rows").write_bytes(b"of a run that is let go")
    with pytest.raises(UsageError, match="without a checkpoint"):
        begin(tmp_path / "new", savepoint)
    begin(tmp_path / "new", savepoint, restart=True)
    assert not there.exists()
    assert (spool_folder(tmp_path / "new", "lines", 0) / "00000002.rows").read_bytes() == b"then"


def test_it_goes_on_with_the_run_that_it_was_taken_of_by_its_number_there(tmp_path):
    savepoint = taken(tmp_path / "old")
    state, _ = begin(tmp_path / "new", savepoint)
    assert (state.kept.number, state.continues) == (6, (state.kept.run, 5))


def test_back_to_an_earlier_one_it_goes_on_with_its_run_and_not_with_the_last(tmp_path):
    path = tmp_path / "state"
    savepoint = taken(path, numbers=(5, 7), at=5)
    note_run(path, LastRun("another"))
    state, _ = begin(path, savepoint, restart=True)
    assert (state.kept.number, state.continues) == (8, (state.kept.run, 5))


def test_after_a_run_that_began_with_it_and_died_it_is_still_that_checkpoint_of_the_run_it_was_taken_of(tmp_path):
    path = tmp_path / "state"
    savepoint = taken(path, numbers=(5, 7), at=5)
    state, _ = begin(path, savepoint, restart=True)
    note_run(path, LastRun("second", state.continues))
    resumed, _ = begin(path, None, resume=True)
    assert (resumed.kept.number, resumed.continues) == (8, (state.kept.run, 5))
