"""Whether a run may begin in a state directory, and from what it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from esault import Spout, Topology
from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Handle
from esault.sinks import Collect
from esault.sources import Items
from esault.state import manifest, run_state
from esault.state.run_state import RunState
from esault.state.state_dir import StateDir
from esault.state.state_path import StatePath, state_path
from esault.state.state_store import FileStateStore


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(run_state, "LET_GO_WITHIN", 0.1)


def checkpoint(path, number, handles=()):
    file = FileStateStore(path).create(number, 3, True)
    file.add("a", b"1")
    unit = CompletedUnit(
        kind="bolt",
        objects="key",
        parallelism=2,
        chains=((file.finish({}).result(),),),
        table=((0, 0), (77, 1)),
        positions={},
        sources={},
        finished=False,
    )
    spout = CompletedUnit(
        kind="spout", objects="sub-unit", parallelism=1, chains=(), table=(), positions={0: b"\x93"}, sources={0: 1}
    )
    kept = CompletedCheckpoint(number, "r1", {"lines": spout, "count": unit}, tuple(handles), 9, 5.0, 6.0)
    state_dir = StateDir(path)
    state_dir.keep(kept)
    state_dir.close()
    return kept


def begin(path, resume=False, restart=False):
    told = []
    state = RunState(StatePath(path, path), resume, restart, told.append)
    state.begin()
    state.close()
    return state.kept, told


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


def test_a_manifest_says_all_that_it_was_told(path):
    kept = checkpoint(
        path, 7, [Handle("count", "table", 7, {"epochs": (1, ("a", b"\x00"))}), Handle("count", "out", 6, None)]
    )
    assert manifest.read(path / "checkpoint-00000007.json") == kept


def test_a_handle_that_cannot_travel_is_named(path):
    with pytest.raises(CheckpointError, match="what a sink said in prepare"):
        checkpoint(path, 1, [Handle("count", "table", 1, object())])


def test_a_new_directory_begins_anew_and_resume_says_so(path):
    assert begin(path) == (None, [])
    kept, told = begin(path, resume=True)
    assert kept is None
    assert "no checkpoint in" in told[0]


def test_a_run_that_did_not_finish_is_not_overwritten(path):
    checkpoint(path, 1)
    before = {p.name: p.read_bytes() for p in path.iterdir()}
    with pytest.raises(UsageError, match=r"did not finish \(checkpoint 1, .*--resume.*--restart.*--state"):
        begin(path)
    assert {p.name: p.read_bytes() for p in path.iterdir()} == before
    assert begin(path, resume=True)[0].number == 1
    assert begin(path, restart=True)[0] is None
    assert sorted(p.name for p in path.iterdir()) == ["begun", "lineage", "lock"]


def test_a_run_that_has_ended_makes_room(path):
    checkpoint(path, 4)
    state = RunState(StatePath(path, path), True, False, print)
    assert state.last_number == 4
    state.ended(in_order=True)
    state.close()
    with pytest.raises(UsageError, match="has ended: there is nothing to go on with"):
        begin(path, resume=True)
    assert begin(path)[0] is None


def test_a_damaged_one_stays_where_it_is_and_the_one_before_is_used(path):
    checkpoint(path, 1)
    checkpoint(path, 2)
    damaged = path / "checkpoint-00000002.json"
    damaged.write_bytes(damaged.read_bytes()[:-30])
    state = RunState(StatePath(path, path), True, False, (told := []).append)
    state.begin()
    assert state.kept.number == 1
    assert "going on from checkpoint 1 instead; rows that sinks committed after it will come once more" in told[0]
    assert state.last_number == 2  # so that the next one is number 3
    assert damaged.exists()
    assert state.kept.repeats  # rows may stand twice from here on, whoever goes on from what follows
    assert manifest.decode(manifest.encode(state.kept), damaged) == state.kept
    state.close()


def test_none_that_is_whole_is_no_reason_to_begin_anew(path):
    checkpoint(path, 1)
    (path / "00000001-3-base.state").write_bytes(b"")
    with pytest.raises(CheckpointError, match="no checkpoint in .* is whole"):
        begin(path, resume=True)


def test_the_lock_is_let_go_of_by_who_fails(path):
    checkpoint(path, 1)
    held = RunState(StatePath(path, path), True, False, print)
    with pytest.raises(UsageError, match="another run uses the state directory"):
        begin(path, resume=True)
    held.close()
    with pytest.raises(UsageError, match="say one of them"):
        begin(path, True, True)
    with pytest.raises(UsageError, match="did not finish"):
        begin(path)
    assert begin(path, resume=True)[0].number == 1


class Unseekable(Spout):
    def read(self, limit):
        return []


def test_an_object_store_takes_the_state_of_sources_that_can_seek():
    t = Topology("t")
    t.spout("rows", Items([(1, 1)])).sink("out", Collect())
    assert str(state_path(t.plan(), "s3://bucket/state").lies) == "s3://bucket/state"
    with pytest.raises(UsageError, match="a Path has one slash of an address: pass it as a str"):
        state_path(t.plan(), Path("gs://bucket/state"))
    t.spout("more", Unseekable()).sink("too", Collect())
    with pytest.raises(UsageError, match="spout 'more': Unseekable cannot seek, .* Name a folder with --state"):
        state_path(t.plan(), "s3://bucket/state")


def continued(path, run, **how):
    """What a run of this name goes on with."""
    state = RunState(StatePath(path, path), how.get("resume", False), how.get("restart", False), lambda text: None)
    try:
        state.begin(run=run)
    finally:
        state.close()
    return state.continues


def test_a_run_knows_which_one_it_goes_on_with_and_from_where(path):
    assert continued(path, "r0") is None
    assert continued(path, "r9", resume=True) == ("r0", 0)  # which had no checkpoint
    assert continued(path, "r1", restart=True) is None
    checkpoint(path, 4)
    assert continued(path, "r2", resume=True) == ("r1", 4)
    assert continued(path, "r3", resume=True) == ("r1", 4)  # in the place of one that wrote none of its own
    assert continued(path, "r4", restart=True) is None
    assert continued(path, "r5", resume=True) == ("r4", 0)
    assert continued(path, "r6", resume=True) == ("r4", 0)


def test_a_run_that_begins_anew_where_one_has_ended_goes_on_with_none(path):
    assert continued(path, "r1") is None
    checkpoint(path, 4)
    state = RunState(StatePath(path, path), True, False, print)
    state.ended(in_order=True)
    state.close()
    assert continued(path, "r2") is None


def test_where_an_older_version_did_not_say_which_run_was_last_it_is_that_of_the_checkpoint(path):
    (path / "begun").touch()
    checkpoint(path, 4)
    assert continued(path, "r2", resume=True) == ("r1", 4)


def test_where_an_older_version_has_begun_and_has_no_checkpoint_nothing_is_known(path):
    (path / "begun").touch()
    assert continued(path, "r2", resume=True) is None


def test_a_restart_that_is_killed_before_it_has_begun_is_not_taken_for_a_run_that_went_on(path, monkeypatch):
    continued(path, "r1")
    checkpoint(path, 4)

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(StateDir, "_remove", killed)
        continued(path, "r2", restart=True)
    assert continued(path, "r3", resume=True) == ("r1", 4)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run_state, "note_run", killed)
        continued(path, "r4", restart=True)
    assert continued(path, "r5", resume=True) is None
