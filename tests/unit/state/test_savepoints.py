"""Checkpoints under a name: nothing of the state directory is needed for them any more."""

from __future__ import annotations

import os
import shutil

import pytest

from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Handle
from esault.state import savepoints as module
from esault.state.checkpoint_place import checkpoint_place, savepoint_place
from esault.state.checkpoint_view import CheckpointView
from esault.state.run_state import RunState
from esault.state.savepoints import Savepoints
from esault.state.spool import spool_folder
from esault.state.state_dir import StateDir
from esault.state.state_path import StatePath
from esault.state.state_store import FileStateStore


@pytest.fixture
def state_dir(tmp_path):
    made = StateDir(tmp_path / ".esault" / "words")
    yield made
    made.close()


def checkpoint(state_dir, number, handles=(), key="a"):
    file = FileStateStore(state_dir.path).create(number, 3, True)
    file.add(key, b"1")
    unit = CompletedUnit("bolt", "key", 1, ((file.finish({}).result(),),), ((0, 0),))
    kept = CompletedCheckpoint(number, "r1", {"count": unit}, tuple(handles), 9, 5.0, 6.0, "words")
    state_dir.keep(kept)
    return kept


def handle(number):
    return Handle("count", "table", number, {"rows": number})


def test_one_survives_the_checkpoints_that_come_after_it_and_a_run_that_begins_anew(state_dir):
    path = state_dir.savepoints.create(checkpoint(state_dir, 1), "first")
    for number in (2, 3, 4):
        checkpoint(state_dir, number, key="b")
    state_dir.clear()
    assert state_dir.manifests() == []
    view = CheckpointView(path)
    assert (view.checkpoint.number, view.count("count"), view.amiss) == (1, 1, [])
    assert Savepoints(state_dir.path).names() == ["first"]


def test_its_folder_can_be_copied_to_anywhere(state_dir, tmp_path):
    path = state_dir.savepoints.create(checkpoint(state_dir, 1), "first")
    shutil.copytree(path, tmp_path / "elsewhere")
    shutil.rmtree(state_dir.path)
    assert CheckpointView(tmp_path / "elsewhere").count("count") == 1


def test_where_files_cannot_have_two_names_they_are_copied(state_dir, monkeypatch):
    def refused(source, target):
        raise OSError(95, "not supported")

    monkeypatch.setattr(os, "link", refused)
    path = state_dir.savepoints.create(checkpoint(state_dir, 1), "first")
    state_dir.clear()
    assert CheckpointView(path).count("count") == 1


def test_what_a_spout_that_cannot_seek_has_read_is_part_of_it(state_dir):
    spool = spool_folder(state_dir.path, "lines", 0)
    spool.mkdir(parents=True)
    (spool / "00000003.rows").write_bytes(b"rows")
    path = state_dir.savepoints.create(checkpoint(state_dir, 1), "first")
    with (spool / "00000003.rows").open("ab") as more:
        more.write(b"later")
    assert (spool_folder(path, "lines", 0) / "00000003.rows").read_bytes() == b"rows"


def test_a_name_is_used_once_until_it_is_removed(state_dir):
    kept = checkpoint(state_dir, 1)
    state_dir.savepoints.create(kept, "first")
    with pytest.raises(UsageError, match="there is a savepoint 'first' already, .*esault checkpoint remove"):
        state_dir.savepoints.create(kept, "first")
    state_dir.savepoints.remove("first")
    assert state_dir.savepoints.names() == []
    state_dir.savepoints.create(kept, "first")
    with pytest.raises(UsageError, match="no savepoint 'second'.*there are: first"):
        state_dir.savepoints.remove("second")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", ".x", "x" * 101, "a b"])
def test_what_is_no_name_is_refused(state_dir, name):
    with pytest.raises(UsageError, match="cannot be named"):
        state_dir.savepoints.check(name)


def test_half_of_one_is_never_seen(state_dir, monkeypatch):
    kept = checkpoint(state_dir, 1)

    def full(path, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module, "put", full)
        with pytest.raises(CheckpointError, match="savepoint 'first' cannot be kept.*No space left"):
            state_dir.savepoints.create(kept, "first")
    assert state_dir.savepoints.names() == []
    (state_dir.savepoints.path / ".first.part").mkdir()  # of a process that was killed
    state_dir.savepoints.create(kept, "first")
    assert state_dir.savepoints.names() == ["first"]


def handles_of(path):
    return [each.number for each in CheckpointView(path).checkpoint.handles]


def test_what_sinks_have_to_commit_is_in_it_until_they_have_done_so_for_certain(state_dir):
    path = state_dir.savepoints.create(checkpoint(state_dir, 5, [handle(5)]), "first")
    checkpoint(state_dir, 6)
    assert handles_of(path) == [5]
    checkpoint(state_dir, 7)
    assert handles_of(path) == []


def test_what_a_run_that_was_killed_had_to_commit_is_committed_by_the_one_that_goes_on(state_dir):
    before = state_dir.savepoints.create(checkpoint(state_dir, 5, [handle(5)]), "before")
    kept = checkpoint(state_dir, 6, [handle(6)])
    later = StateDir(state_dir.path, locked=False)
    later.savepoints.go_on_from(kept)
    checkpoint(later, 7)
    assert handles_of(before) == [5]
    checkpoint(later, 8)
    assert handles_of(before) == []


def test_one_that_was_begun_anew_knows_nothing_of_what_was_to_be_committed_before(state_dir):
    before = state_dir.savepoints.create(checkpoint(state_dir, 5, [handle(5)]), "before")
    anew = StateDir(state_dir.path, locked=False)
    for number in (6, 7, 8, 9):
        checkpoint(anew, number)
    assert handles_of(before) == [5]


def test_the_last_checkpoint_of_a_run_is_kept_without_what_its_sinks_have_committed(tmp_path):
    path = tmp_path / "state"
    state = RunState(StatePath(path, path), False, False, print)
    state.begin()
    with pytest.raises(UsageError, match="ended before its first checkpoint"):
        state.savepoint("none")
    held = StateDir(path, locked=False)
    checkpoint(held, 1, [handle(1)])
    assert handles_of(state.savepoint("last")) == []
    state.close()


def test_one_of_a_run_that_ended_before_its_sinks_had_begun_has_all_that_they_have_to_commit(tmp_path):
    path = tmp_path / "state"
    held = StateDir(path)
    checkpoint(held, 1, [handle(1)])
    held.close()
    state = RunState(StatePath(path, path), True, False, print)
    state.begin()
    assert handles_of(state.savepoint("last")) == [1]
    state.close()


def test_a_savepoint_is_named_by_its_topology_its_state_directory_or_its_folder(state_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = state_dir.savepoints.create(checkpoint(state_dir, 1), "first")
    for text in ("words/first", str(state_dir.path / "first"), str(path), f"{path}/"):
        assert checkpoint_place(text).resolve() == path
    assert checkpoint_place("words").resolve() == state_dir.path
    with pytest.raises(UsageError, match="has no savepoint 'second'; there are: first"):
        checkpoint_place("words/second")
    with pytest.raises(UsageError, match="other is no state directory"):
        checkpoint_place("other")


def test_one_to_go_on_from_may_be_that_of_a_topology_of_another_name(state_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = state_dir.savepoints.create(checkpoint(state_dir, 1), "first")
    new = tmp_path / ".esault" / "sentences"
    assert savepoint_place("first", new) == path
    assert savepoint_place("first", tmp_path / "elsewhere").resolve() == path
    assert savepoint_place("words/first", new).resolve() == path
    with pytest.raises(UsageError, match=r"there is no savepoint of that name in .*sentences \(there are: none\)"):
        savepoint_place("second", new)
    other = StateDir(tmp_path / ".esault" / "texts")
    other.savepoints.create(checkpoint(other, 1), "first")
    other.close()
    with pytest.raises(UsageError, match="several have that name"):
        savepoint_place("first", new)
    assert savepoint_place("first", state_dir.path) == path
