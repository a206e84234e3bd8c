"""A sink is told the identity of the state folder and, before any row comes, to let go of what earlier runs left."""

from __future__ import annotations

import pytest

from esault import Bolt, Sink, Topology, by_key
from esault.messages.settings import Settings
from esault.sources import Items
from esault.state.state_dir import StateDir
from esault.testing import LocalRuntime


class Noted(Sink):
    def __init__(self, calls):
        self.calls = calls

    def begin(self, run):
        self.calls.append(("begin", run.lineage, run.resumed))

    def open(self, context):
        self.lineage = context.lineage

    def write(self, rows):
        self.calls.append(("write", self.lineage))

    def prepare(self, epoch):
        return epoch

    def commit(self, epoch, handle):
        self.calls.append(("commit", handle))


class Staged(Noted):
    def forget_staged(self, kept):
        self.calls.append(("forget_staged", kept))


class Before(Noted):
    """As it was written for earlier versions."""

    def forget_staged(self):
        self.calls.append(("forget_staged",))


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def run(sink, folder=None, **options):
    calls = []
    t = Topology("staged")
    t.spout("items", Items([(i, i) for i in range(40)])).bolt("same", Same, by_key()).sink("out", sink(calls))
    delivery = "alo" if folder is None else "eo"
    lineage = "" if folder is None else StateDir(folder, locked=False).lineage()
    settings = Settings(delivery=delivery, max_pending=2, root_rows=4)
    local = LocalRuntime(t, real=True, run="run-1", settings=settings, state_dir=folder, lineage=lineage, **options)
    return local, calls, lineage


def test_without_checkpoints_the_lineage_is_the_run_and_nothing_is_kept():
    local, calls, _ = run(Staged)
    local.run_until_drained()
    assert calls[:3] == [("begin", "run-1", False), ("forget_staged", ()), ("write", "run-1")]
    assert calls.count(("forget_staged", ())) == 1


def test_a_run_that_goes_on_is_told_the_handles_that_were_committed_for_it(tmp_path):
    local, calls, lineage = run(Staged, tmp_path)
    local.run_until(lambda: local.driver.phase == "running")
    number = local.checkpoint()
    local.run_until(lambda: ("commit", number) in calls)
    kept, _ = StateDir(tmp_path, locked=False).newest()
    again, later, _ = run(Staged, tmp_path, kept=kept, last_number=number)
    again.run_until_drained()
    assert calls[:2] == [("begin", lineage, False), ("forget_staged", ())]
    assert later[:3] == [("begin", lineage, True), ("commit", number), ("forget_staged", (number,))]
    assert {call for call in later if call[0] == "write"} == {("write", lineage)}


@pytest.mark.parametrize("sink", [Staged, Before])
def test_after_a_death_before_the_first_checkpoint_it_is_told_again(sink, tmp_path):
    local, calls, _ = run(sink, tmp_path)
    local.run_until(lambda: any(call[0] == "write" for call in calls))
    local.kill(local.sub_units("same")[0])
    local.run_until_drained()
    told = [call for call in calls if call[0] == "forget_staged"]
    assert told == ([("forget_staged", ())] * 2 if sink is Staged else [("forget_staged",)])


def test_a_sink_of_before_is_told_no_more_often_than_before():
    local, calls, _ = run(Before)
    local.run_until_drained()
    assert ("forget_staged",) not in calls


def test_a_folder_keeps_its_identity_when_a_run_begins_anew(tmp_path):
    folder = StateDir(tmp_path / "one")
    first = folder.lineage()
    folder.clear()
    folder.close()
    again, other = StateDir(tmp_path / "one"), StateDir(tmp_path / "two")
    assert again.lineage() == first != other.lineage()
    again.close()
    other.close()
