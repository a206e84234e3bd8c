"""What a run on Spark finds of the one before."""

from __future__ import annotations

from pathlib import Path

import pytest

from esault.errors import CheckpointError, UsageError
from esault.spark.engine.journal import Journal
from esault.spark.engine.kept import open_kept
from esault.state.run_state import RunState, StatePath
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
        kept.begin(kept.lay_out(plan(), {}, 2), "r1")
        if ended:
            kept.ended()


def test_a_run_goes_on_only_where_it_is_told_to(tmp_path):
    begun(tmp_path)
    with pytest.raises(UsageError, match="did not finish: go on with --resume"), opened(tmp_path):
        pass
    with opened(tmp_path, resume=True) as kept:
        assert kept.resumed and kept.layout.tasks == {"count": 2}
    with opened(tmp_path, restart=True) as kept:
        assert not kept.resumed and not kept.checkpoint.exists()


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
        ("words", {"count": 3}, "unit 'count' has 2 tasks .* leave --parallelism count=3 out"),
        ("words", {"lines": 2}, "unit 'lines' has 1 tasks"),
        ("everything", {}, "the spouts of the run in .* are others than the topology's \\(without 'numbers'\\)"),
        ("angry", {}, "units with state .* \\(without 'angry', with 'count'\\)"),
    ],
)
def test_a_topology_that_became_another_one_cannot_go_on(tmp_path, name, chosen, text):
    begun(tmp_path)
    with opened(tmp_path, resume=True) as kept, pytest.raises(UsageError, match=text):
        kept.lay_out(plan(name), chosen, 4)


def test_a_resumed_run_has_the_tasks_it_had_whatever_there_are_cores(tmp_path):
    begun(tmp_path)
    with opened(tmp_path, resume=True) as kept:
        assert kept.lay_out(plan(), {}, 16).tasks == {"count": 2}


def test_the_journal_keeps_what_is_needed(tmp_path):
    journal = Journal(tmp_path / "epochs")
    assert (journal.done, journal.newest(), journal.read(0)) == (-1, -1, None)
    for epoch in range(5):
        record = ((("sink", ("log", epoch)),), ({"count": (1, 2)},), {("lines", 0): (epoch, b"p")}, epoch == 4)
        journal.write(epoch, record)
        assert journal.read(epoch) == record
        assert journal.done == epoch - 1
        journal.finish(epoch)
    assert (journal.done, journal.newest()) == (4, 4)
    assert [epoch for epoch in range(5) if journal.read(epoch) is not None] == [3, 4]
    (tmp_path / "epochs" / "00000004.epoch").write_bytes(b"\xc1")
    with pytest.raises(CheckpointError, match="is damaged"):
        journal.read(4)
