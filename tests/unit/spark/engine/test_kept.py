"""What a run on Spark finds of the one before."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint
from esault.payload.codec import Codec
from esault.spark.engine.journal import Journal, Record
from esault.spark.engine.kept import open_kept
from esault.spark.engine.query import Epochs
from esault.spark.engine.tally import Tally
from esault.state.last_run import LastRun, last_run, note_run
from esault.state.run_state import RunState
from esault.state.state_dir import StateDir
from esault.state.state_path import StatePath
from esault.topology.locate import locate

FLOWS = str(Path(__file__).with_name("flows.py"))


def plan(name: str = "words"):
    return locate(f"{FLOWS}:{name}").build({}).plan()


def opened(tmp_path, resume=False, restart=False, exactly=True, said=None, state="state"):
    place = None if state is None else tmp_path / state
    notices = said if said is not None else []
    return open_kept(plan(), exactly, place, resume, restart, tmp_path / "temporary", notices.append)


def begun(tmp_path, ended=False):
    with opened(tmp_path) as kept:
        kept.lay_out(plan(), {}, 2)
        kept.begin("r1")
        if ended:
            kept.ended()


def test_a_run_goes_on_only_where_it_is_told_to(tmp_path):
    begun(tmp_path)
    with pytest.raises(UsageError, match="did not finish: go on with --resume"), opened(tmp_path):
        pass
    with opened(tmp_path, resume=True) as kept:
        assert kept.resumed and kept.before.layout.tasks == {"count": 2}
    with opened(tmp_path, restart=True) as kept:
        assert not kept.resumed and not (kept.folder / "checkpoint").exists()


def test_a_run_that_ended_is_over(tmp_path):
    begun(tmp_path, ended=True)
    with pytest.raises(UsageError, match="has ended: there is nothing to go on with"), opened(tmp_path, resume=True):
        pass
    with opened(tmp_path) as kept:
        assert not kept.resumed


def test_nothing_to_resume_is_said(tmp_path):
    said: list[str] = []
    with opened(tmp_path, resume=True, said=said) as kept:
        assert not kept.resumed
    assert "the run begins from the start" in said[0]


def test_one_run_at_a_time(tmp_path):
    refused = pytest.raises(UsageError, match="another run uses the state directory")
    with opened(tmp_path), refused, opened(tmp_path):
        pass


def test_state_without_checkpoints_is_wrong_use(tmp_path):
    with pytest.raises(UsageError, match="say how often with --checkpoint"), opened(tmp_path, exactly=False):
        pass
    with opened(tmp_path, exactly=False, state=None) as kept:
        assert not kept.exactly and kept.folder.parent == tmp_path / "temporary"


def test_the_actor_engine_leaves_an_unfinished_run_of_spark_alone(tmp_path):
    begun(tmp_path)
    with pytest.raises(UsageError, match="holds a run of the Spark engine that did not finish"):
        RunState(StatePath(tmp_path / "state", tmp_path / "state"), False, False, print)
    state = RunState(StatePath(tmp_path / "state", tmp_path / "state"), False, True, print)
    state.begin()
    state.close()
    with opened(tmp_path) as kept:
        assert not kept.resumed


@pytest.mark.parametrize(
    ("name", "chosen", "text"),
    [
        ("words", {"lines": 2}, "spout 'lines' was read in 1 parts in .* leave --parallelism lines=2 out"),
        ("everything", {}, "the spouts of the run in .* are others than the topology's \\(without 'numbers'\\)"),
        ("angry", {}, "units with state .* \\(without 'angry', with 'count'\\)"),
    ],
)
def test_a_topology_that_became_another_one_cannot_go_on(tmp_path, name, chosen, text):
    begun(tmp_path)
    with opened(tmp_path, resume=True) as kept, pytest.raises(UsageError, match=text):
        kept.lay_out(plan(name), chosen, 4)


def test_a_resumed_run_follows_the_cores_that_there_are_unless_it_was_told_how_many(tmp_path):
    begun(tmp_path)
    with opened(tmp_path, resume=True) as kept:
        assert kept.lay_out(plan(), {}, 2).tasks == {"count": 2} and not kept.rescaled
        kept.begin("r2")
    with opened(tmp_path, resume=True) as kept:
        assert kept.lay_out(plan(), {}, 16).tasks == {"count": 16} and kept.rescaled
        assert kept.checkpoint.name == "checkpoint-1" and kept.generation.first == 0
        kept.begin("r3")
    with opened(tmp_path, resume=True) as kept:
        assert kept.lay_out(plan(), {"count": 3}, 16).tasks == {"count": 3} and kept.rescaled
        kept.begin("r4")
    with opened(tmp_path, resume=True) as kept:
        assert kept.lay_out(plan(), {}, 16).tasks == {"count": 3} and not kept.rescaled


def test_a_state_of_0_1_goes_on_with_its_tasks(tmp_path):
    begun(tmp_path)
    path = tmp_path / "state" / "spark" / "layout.json"
    old = json.loads(path.read_text())
    path.write_text(json.dumps({name: old[name] for name in ("run", "parts", "tasks", "levels", "partitions")}))
    with opened(tmp_path, resume=True) as kept:
        assert kept.lay_out(plan(), {}, 16).tasks == {"count": 2} and not kept.rescaled


@pytest.mark.parametrize("done", [True, False])
def test_what_the_last_life_committed_to_the_end_has_ended(tmp_path, done):
    journal = Journal(tmp_path / "epochs")
    for epoch in range(2):
        journal.write(epoch, Record((), (), {}, epoch == 1))
        if epoch == 0 or done:
            journal.finish(epoch)
    epochs = Epochs((), Journal(tmp_path / "epochs"), Tally({}), SimpleNamespace(shared=""))
    epochs.again()
    assert epochs.ended.is_set()
    assert journal.done == 1


def test_the_journal_keeps_what_is_needed(tmp_path):
    journal = Journal(tmp_path / "epochs")
    assert (journal.done, journal.newest(), journal.read(0)) == (-1, -1, None)
    for epoch in range(5):
        record = Record(
            (("sink", ("log", epoch)),),
            ({"count": (1, 2)},),
            {("lines", 0): (epoch, b"p")},
            epoch == 4,
            (("dead.jsonl", "{}"),),
            (b"frame",),
        )
        journal.write(epoch, record)
        assert journal.read(epoch) == record
        assert journal.done == epoch - 1
        journal.finish(epoch)
    assert (journal.done, journal.newest()) == (4, 4)
    assert [epoch for epoch in range(5) if journal.read(epoch) is not None] == [3, 4]
    (tmp_path / "epochs" / "00000004.epoch").write_bytes(b"\xc1")
    with pytest.raises(CheckpointError, match="is damaged"):
        journal.read(4)


def test_a_record_of_its_own_that_a_store_says_was_there_is_its_own(tmp_path, monkeypatch):
    """A client that got no answer puts again, and the store refuses what is there by then."""

    def twice(place, data):
        if not place.exists():
            place.write_bytes(data)
        return False

    monkeypatch.setattr("esault.spark.engine.journal.put_absent", twice)
    mine, other = (Journal(tmp_path / "epochs") for _ in range(2))
    record = Record((("sink", b"handle"),), (), {}, False)
    mine.write(0, record)
    mine.write(0, record)
    with pytest.raises(CheckpointError, match="another run has written epoch 0"):
        other.write(0, record)  # the same by its content


def test_a_record_without_a_writer_is_read(tmp_path):
    journal = Journal(tmp_path / "epochs")
    record = Record((), (), {("lines", 0): (1, b"p")}, True)
    (tmp_path / "epochs" / "00000000.epoch").write_bytes(Codec().pack_value(tuple(record)))
    assert journal.read(0) == record


def test_a_run_that_begins_anew_forgets_which_run_of_the_actor_engine_was_last(tmp_path):
    path = tmp_path / "state"
    held = StateDir(path)
    held.keep(CompletedCheckpoint(1, "r1", {}))
    note_run(path, LastRun("r1"))
    held.close()
    with opened(tmp_path, restart=True):
        pass
    assert last_run(path) is None
