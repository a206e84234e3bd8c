"""The commit log: entries, snapshots, versions, damage."""

from __future__ import annotations

import errno
import json
import os
import time
from typing import Any

import pytest

from esault.errors import SinkError
from esault.sinks.landing import state as state_module
from esault.sinks.landing.disk import LocalDisk
from esault.sinks.landing.entry import Entry, Part, Txn
from esault.sinks.landing.log import CommitLog, Conflict, probe
from esault.sinks.landing.schema import Column
from esault.sinks.landing.vacuum import vacuum

SCHEMA = (Column("word", "string"), Column("total", "long"))


def rows(log: CommitLog, app: str, epoch: int) -> int | None:
    return log.append(Entry("rows", txn=Txn(app, epoch), add=(Part(f"{app}-{epoch}", 1, 1),)))


@pytest.fixture
def log(tmp_path: Any) -> CommitLog:
    table = tmp_path / "t"
    LocalDisk().make_folder(str(table / "_esault_log"))
    made = CommitLog(str(table))
    made.append(Entry("create", schema=SCHEMA, run="r"))
    return made


def test_entries_are_numbered_without_gaps_and_an_epoch_counts_once(log: CommitLog) -> None:
    other = CommitLog(log.table, keep_files=False)
    assert [rows(log, "a", 0), rows(other, "b", 0), rows(log, "a", 0), rows(other, "a", 1)] == [1, 2, None, 3]
    assert [part.path for part in CommitLog(log.table).files()] == ["a-0", "b-0", "a-1"]
    assert sorted(os.listdir(log.folder)) == [f"{version:020d}.json" for version in range(4)]


def test_an_epoch_that_comes_late_is_no_replay(log: CommitLog) -> None:
    assert [rows(log, "a", epoch) for epoch in (0, 5, 3, 4, 3, 5, 1)] == [1, 2, 3, 4, None, None, 5]


def test_an_earlier_version_can_be_read(log: CommitLog) -> None:
    for epoch in range(3):
        rows(log, "a", epoch)
    log.append(Entry("compact", add=(Part("c", 3, 1),), remove=("a-0", "a-1", "a-2")))
    assert [part.path for part in log.files(2)] == ["a-0", "a-1"]
    assert [part.path for part in log.files()] == ["c"]
    with pytest.raises(SinkError, match="has no version 9; its versions are 0 to 4"):
        log.files(9)


def test_a_part_can_be_removed_once(log: CommitLog) -> None:
    rows(log, "a", 0)
    log.append(Entry("compact", add=(Part("c", 1, 1),), remove=("a-0",)))
    with pytest.raises(Conflict, match="part a-0 is no longer visible"):
        CommitLog(log.table).append(Entry("compact", add=(Part("d", 1, 1),), remove=("a-0",)))
    with pytest.raises(Conflict, match="exists already"):
        log.append(Entry("create", schema=SCHEMA))


def test_a_damaged_entry_is_named(log: CommitLog) -> None:
    rows(log, "a", 0)
    with open(log.entry_path(1), "rb") as file:
        data = file.read()
    for damage in (data[:-20], b"", b"\xff" + data, data.replace(b'"rows":1', b'"rows":7')):
        with open(log.entry_path(1), "wb") as file:
            file.write(damage)
        with pytest.raises(SinkError, match=r"0001\.json is damaged: (it is no JSON|its checksum does not match)"):
            CommitLog(log.table).refresh()


def test_a_missing_entry_is_named(log: CommitLog) -> None:
    for epoch in range(3):
        rows(log, "a", epoch)
    os.unlink(log.entry_path(2))
    with pytest.raises(SinkError, match="entry 2 of its log is missing, while 3 is there"):
        CommitLog(log.table).refresh()
    os.unlink(log.entry_path(0))
    with pytest.raises(SinkError, match="its log begins with entry 1, and no snapshot stands for those before"):
        CommitLog(log.table).refresh()


def test_a_newer_format_and_a_foreign_file_are_refused(log: CommitLog) -> None:
    with open(log.entry_path(1), "w") as file:
        json.dump({"format": 3, "whatever": 1}, file)
    with pytest.raises(SinkError, match=r"newer eSault \(format 3; this one knows up to 2\): pip install -U esault"):
        CommitLog(log.table).refresh()
    with open(log.entry_path(1), "w") as file:
        json.dump({"commitInfo": {}}, file)
    with pytest.raises(SinkError, match="was not written by eSault"):
        CommitLog(log.table).refresh()


def test_a_part_outside_the_folder_is_refused(log: CommitLog) -> None:
    log.append(Entry("rows", txn=Txn("a", 0), add=(Part("../../etc/passwd", 1, 1),)))
    with pytest.raises(SinkError, match=r"'\.\./\.\./etc/passwd' is no name of a part"):
        CommitLog(log.table).refresh()


def test_a_guard_sees_the_state_the_entry_would_follow(log: CommitLog) -> None:
    other = CommitLog(log.table)
    seen = []

    def guard(state: Any) -> None:
        seen.append(state.version)
        if len(seen) == 1:
            rows(other, "b", 0)  # wins the race

    assert log.append(Entry("rows", txn=Txn("a", 0), add=(Part("a-0", 1, 1),)), guard) == 2
    assert seen == [0, 1]


def test_many_commits_are_read_through_a_snapshot(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalDisk, "sync_folder", lambda *_: None)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for epoch in range(600):
        rows(log, "a", epoch)
    assert log.listing()[1] == [255, 511]
    reads = []
    read = LocalDisk.read
    monkeypatch.setattr(LocalDisk, "read", lambda self, path: reads.append(path) or read(self, path))
    fresh = CommitLog(log.table)
    assert len(fresh.files()) == 600
    assert len(reads) < 100
    assert fresh.refresh().txns["a"].ranges() == [[0, 599]]
    assert len(fresh.files(300)) == 300


def test_a_damaged_snapshot_is_left_out(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "SNAPSHOT_EVERY", 4)
    for epoch in range(10):
        rows(log, "a", epoch)
    with open(log.snapshot_path(7), "r+b") as file:
        file.write(b"!")
    assert len(CommitLog(log.table).files()) == 10
    os.unlink(log.entry_path(0))
    assert len(CommitLog(log.table).files()) == 10  # by the one before it
    os.unlink(log.snapshot_path(3))
    with pytest.raises(SinkError, match=r"0007\.snapshot\.json is damaged"):
        CommitLog(log.table).files()


def test_epochs_that_a_snapshot_stands_for_are_still_known(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "SNAPSHOT_EVERY", 4)
    for epoch in (0, 1, 5, 9):
        rows(log, "a", epoch)
    assert log.listing()[1] == [3]
    for version in range(4):
        os.unlink(log.entry_path(version))
    fresh = CommitLog(log.table, keep_files=False)
    assert [rows(fresh, "a", epoch) for epoch in (0, 1, 5, 9, 2)] == [None, None, None, None, 5]


def test_vacuum_keeps_the_table_readable_and_prunes_the_rest(log: CommitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "SNAPSHOT_EVERY", 4)
    for epoch in range(10):
        rows(log, "a", epoch)
    for name in (f"part-{'0' * 32}.parquet", ".00ff.tmp", "mine.parquet"):
        with open(os.path.join(log.table, name), "w") as file:
            file.write("x")
    assert vacuum(log.table).parts == 0  # nothing is old enough
    done = vacuum(log.table, now=lambda: time.time() + 8 * 86400)
    assert (done.parts, done.entries) == (2, 4)
    assert os.listdir(log.table) and "mine.parquet" in os.listdir(log.table)
    assert log.listing() == ([*range(4, 11)], [3, 7])
    assert len(CommitLog(log.table).files()) == 10
    with pytest.raises(SinkError, match="version 2 is no longer kept; the oldest entry of its log is 4"):
        log.files(2)
    with pytest.raises(SinkError, match="entry 2 of its log is no longer kept"):
        list(log.entries(1, 5))


def test_a_table_that_was_removed_under_a_writer_is_an_error(log: CommitLog, tmp_path: Any) -> None:
    import shutil

    shutil.rmtree(log.table)
    with pytest.raises(SinkError, match="it is gone, or a folder above it is"):
        rows(log, "a", 0)


def test_a_file_system_without_hard_links_is_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    probe(str(tmp_path), LocalDisk())
    monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(SinkError, match="file system without hard links"):
        probe(str(tmp_path), LocalDisk())
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_nothing_and_the_commit_can_be_tried_again(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(SinkError, match=r"writing .*_esault_log.*: the disk is full .* free space"):
            rows(log, "a", 0)
    assert sorted(os.listdir(log.folder)) == [f"{0:020d}.json"]
    assert rows(log, "a", 0) == 1


def test_rows_are_known_to_be_distinct_once_every_run_that_wrote_some_has_said_so(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "SNAPSHOT_EVERY", 1)  # each entry is read through a snapshot as well

    def seen() -> bool:
        (fresh,) = {CommitLog(log.table).refresh().distinct, log.state.distinct}
        return fresh

    assert seen()
    rows(log, "ra", 0)
    assert not seen()  # the run may still repeat them
    log.append(Entry("end", run="r", ok=True, distinct=True))
    assert seen()
    log.append(Entry("compact", add=(Part("c", 1, 1),), remove=("ra-0",)))
    assert seen()
    log.append(Entry("begin", run="s"))
    rows(log, "sa", 0)
    log.append(Entry("begin", run="s"))  # it goes on from its checkpoint
    rows(log, "sa", 1)
    log.append(Entry("end", run="s", ok=True, distinct=True))
    assert seen()
    log.append(Entry("begin", run="u"))
    rows(log, "ua", 0)
    log.append(Entry("begin", run="v"))  # u has not said how it was
    log.append(Entry("end", run="v", ok=True, distinct=True))
    assert not seen()
    log.append(Entry("replace", run="w", schema=SCHEMA))
    rows(log, "wa", 0)
    log.append(Entry("end", run="w", ok=True, distinct=False))
    assert not seen()
    log.append(Entry("replace", run="x", schema=SCHEMA))
    rows(log, "xa", 0)
    log.append(Entry("end", run="x", ok=True))  # written by an eSault that did not say
    assert not seen()
