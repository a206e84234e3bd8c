"""The state directory: what is complete is whole, what is damaged is found, nothing is overwritten."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit
from esault.state.last_run import LastRun, last_run, note_run
from esault.state.piece_file import FORMAT, check_piece, read_piece
from esault.state.place import place_of
from esault.state.state_dir import StateDir
from esault.state.state_store import FileStateStore

KEYS = st.one_of(st.text(), st.integers(), st.booleans(), st.binary(), st.tuples(st.text(), st.integers()))
STATES = st.one_of(st.none(), st.binary(max_size=200))


@pytest.fixture
def state_dir(tmp_path):
    made = StateDir(tmp_path / "state")
    yield made
    with contextlib.suppress(OSError):
        made.close()


def written(state_dir, number=1, incarnation=1, items=(("a", b"1"), ("b", None)), base=True):
    file = FileStateStore(state_dir.path).create(number, incarnation, base)
    for key, state in items:
        file.add(key, state)
    return file.finish({}).result()


def kept(state_dir, number, **more):
    piece = written(state_dir, number, **more)
    state_dir.keep(checkpoint(number, piece))
    return state_dir.path / piece.name


def checkpoint(number, *pieces):
    return CompletedCheckpoint(number, "run", {"count": CompletedUnit("bolt", "key", 1, (pieces,))})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(KEYS, STATES), max_size=50))
def test_what_was_written_is_read(state_dir, items):
    piece = written(state_dir, items=items)
    path = state_dir.path / piece.name
    check_piece(path, piece)
    assert [(type(key), key, state) for key, state in read_piece(path)] == [(type(k), k, s) for k, s in items]
    assert (piece.keys, piece.size, piece.base) == (len(items), path.stat().st_size, True)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_damaged_byte_is_found(state_dir, data):
    piece = written(state_dir, items=[(f"k{i}", bytes(20)) for i in range(20)])
    path = state_dir.path / piece.name
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[at] ^ data.draw(st.integers(1, 255))
    path.write_bytes(whole[:at] + bytes([flipped]) + whole[at + 1 :])
    with pytest.raises(CheckpointError, match=str(path)):
        check_piece(path, piece)
    with pytest.raises(CheckpointError, match=str(path)):
        list(read_piece(path))


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.99])
def test_half_a_file_is_found(state_dir, part):
    path = kept(state_dir, 1, items=[(f"k{i}", bytes(20)) for i in range(100)])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(CheckpointError, match=f"{path}.*(ends in the middle|no state file)"):
        list(read_piece(path))


def test_what_a_foreign_program_or_a_newer_esault_wrote_is_refused(state_dir):
    path = kept(state_dir, 1)
    path.write_bytes(b"PK\x03\x04 something else altogether")
    with pytest.raises(CheckpointError, match="no state file of eSault"):
        list(read_piece(path))
    path.write_bytes(struct.pack(">8sH", b"eSaultST", FORMAT + 1))
    with pytest.raises(CheckpointError, match=f"format {FORMAT + 1}, written by a newer eSault"):
        list(read_piece(path))


def test_the_newest_whole_checkpoint_is_used_and_what_is_amiss_is_said(state_dir):
    kept(state_dir, 1)
    newer = kept(state_dir, 2)
    manifest, amiss = state_dir.newest()
    assert (manifest.number, manifest.run, amiss) == (2, "run", [])
    newer.write_bytes(newer.read_bytes()[:-1])
    manifest, amiss = state_dir.newest()
    assert manifest.number == 1
    assert len(amiss) == 1
    assert str(newer) in amiss[0]


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(path.read_bytes()[:20]),
        lambda path: path.write_bytes(path.read_bytes().replace(b'"number"', b'"numbeR"')),
        lambda path: path.write_text("{}"),
        lambda path: path.write_bytes(b"\xff\xfe"),
    ],
)
def test_a_damaged_manifest_counts_as_none(state_dir, harm):
    kept(state_dir, 1)
    kept(state_dir, 2)
    harm(state_dir.manifests()[0])
    manifest, amiss = state_dir.newest()
    assert manifest.number == 1
    assert "checkpoint-00000002.json" in amiss[0]


def test_where_none_is_whole_nothing_begins_anew_by_itself(state_dir):
    path = kept(state_dir, 1)
    path.unlink()
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* is whole: .* is missing.*choose another directory"):
        state_dir.newest()
    assert state_dir.manifests()


def test_an_empty_directory_has_no_checkpoint(state_dir):
    assert state_dir.newest() == (None, [])


def test_old_ones_are_removed_with_what_only_they_need(state_dir):
    base = written(state_dir, 1)
    state_dir.keep(checkpoint(1, base))
    for number in range(2, 6):
        later = written(state_dir, number, base=False)
        state_dir.keep(checkpoint(number, base, later))
    (state_dir.path / "notes.state").write_text("not ours")
    waiting = written(state_dir, 6, base=False)
    state_dir.prune()
    names = {path.name for path in state_dir.path.iterdir()}
    assert names == {
        "lock",
        "notes.state",
        base.name,
        "00000004-1.state",
        "00000005-1.state",
        waiting.name,
        "checkpoint-00000004.json",
        "checkpoint-00000005.json",
    }
    assert state_dir.newest()[0].number == 5


def test_two_runs_cannot_use_one_directory(state_dir):
    with pytest.raises(UsageError, match="another run uses the state directory"):
        StateDir(state_dir.path)
    state_dir.close()
    StateDir(state_dir.path).close()


def test_what_a_killed_run_left_half_written_is_removed(state_dir):
    (state_dir.path / ".00000001-1-base.state.part").write_bytes(b"eSaultST")
    state_dir.close()
    again = StateDir(state_dir.path)
    again.tidy()
    assert [path.name for path in again.path.iterdir()] == ["lock"]
    again.close()


def test_a_full_disk_is_said_and_harms_nothing(state_dir):
    kept(state_dir, 1)
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, before[1]))
    try:
        file = FileStateStore(state_dir.path).create(2, 1, True)
        with pytest.raises(CheckpointError, match=r"cannot be written to .*; free space or mend permissions"):
            for i in range(5000):
                file.add(f"k{i}", bytes(100))
            file.finish({}).result()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(state_dir.path.glob(".*.part"))
    assert state_dir.newest()[0].number == 1


def test_a_place_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"the state directory .*file.* cannot be used: .*--state"):
        StateDir(tmp_path / "file" / "state")


def test_state_is_for_its_owner_alone_whatever_the_mask_says(tmp_path):
    before = os.umask(0)
    try:
        made = StateDir(tmp_path / "state")
        kept(made, 1)
        made.close()
    finally:
        os.umask(before)
    found = [made.path, *made.path.rglob("*")]
    assert len(found) >= 4  # folder, lock, piece, manifest
    assert [path.name for path in found if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("place", ["disk", "store"])
def test_the_last_run_is_known_until_one_begins_anew(tmp_path, place):
    held = StateDir(tmp_path / "state" if place == "disk" else place_of(f"memory://{tmp_path.name}/state"))
    assert last_run(held.path) is None
    for last in (LastRun("r1"), LastRun("r2", ("r1", 7))):
        note_run(held.path, last)
        assert last_run(held.path) == last
    held.clear()
    assert last_run(held.path) is None and (held.path / "begun").exists()
    held.close()
