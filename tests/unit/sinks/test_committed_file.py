from __future__ import annotations

import errno
import json
import os

import pytest

from esault.errors import SinkError
from esault.sinks import committed_file
from esault.sinks.committed_file import CommittedFile
from esault.sinks.durable import write_fully


class Table:
    """A committed file in a folder, and what is around it."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "out", "x.jsonl")
        self.folder = os.path.join(folder, "out", ".x.jsonl.esault")
        self.file = CommittedFile(self.path)

    def begin(self, mode="error", run="r1", resumed=False):
        self.file.begin(run, mode, resumed)

    def log(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    @property
    def content(self):
        with open(self.path, "rb") as file:
            return file.read()

    @property
    def state(self):
        with open(os.path.join(self.folder, "state.json")) as file:
            return json.load(file)


@pytest.fixture
def table(tmp_path):
    table = Table(tmp_path)
    yield table
    if table.file._run_lock is not None:
        os.close(table.file._run_lock)


def put(table, text):
    os.makedirs(os.path.dirname(table.path), exist_ok=True)
    with open(table.path, "w") as file:
        file.write(text)


def test_commits_are_appended_each_once_and_in_any_process(table):
    table.begin()
    table.log("a.log", b"1\n2\n3\n")
    table.log("b.log", b"x\n")
    table.file.commit("a.log", 2)
    table.file.commit("b.log", 2)
    CommittedFile(table.path).commit("a.log", 6)
    for _ in range(2):
        table.file.commit("a.log", 2)
        table.file.commit("b.log", 2)
        CommittedFile(table.path).commit("a.log", 6)
    assert table.content == b"1\nx\n2\n3\n"
    table.file.end(True, False)
    assert table.content == b"1\nx\n2\n3\n"
    assert sorted(os.listdir(table.folder)) == ["commit.lock", "run.lock", "state.json"]


def test_logs_that_are_gone_are_not_remembered_for_ever(table, monkeypatch):
    monkeypatch.setattr(committed_file, "_REMEMBERED", 3)
    table.begin()
    for number in range(20):
        table.log(f"{number}.log", b"x\n")
        table.file.commit(f"{number}.log", 2)
        table.file.forget_logs()
        table.file.commit(f"{number}.log", 2)  # may come again
    assert table.content == b"x\n" * 20
    assert 3 <= len(table.state["copied"]) <= 7
    table.file.end(True, remove_if_empty=True)


def test_a_commit_without_begin_keeps_what_is_there(table):
    put(table, "old")
    os.makedirs(table.folder)
    table.log("a.log", b"1\n")
    table.file.commit("a.log", 2)
    assert table.content == b"old\n1\n"


def test_rows_that_are_gone_are_not_taken_for_committed(table):
    table.begin()
    with pytest.raises(
        SinkError, match=r"the rows to commit are gone: a\.log is not in .*; on several hosts the folder must"
    ):
        table.file.commit("a.log", 2)
    table.log("a.log", b"1\n")
    with pytest.raises(SinkError, match=r"the rows to commit are gone: a\.log in .* is cut short"):
        table.file.commit("a.log", 5)
    assert table.content == b""


def test_the_modes_refuse_keep_or_empty_what_is_there(table):
    put(table, "old\n")
    with pytest.raises(
        SinkError, match=r"x\.jsonl: exists already; remove it, or say mode=\"append\" to add to it, mode=\"repl"
    ):
        table.begin("error")
    with pytest.raises(SinkError, match="exists already"):
        CommittedFile(table.path).check("error")
    assert table.content == b"old\n"
    table.begin("append")
    table.log("a.log", b"1\n")
    table.file.commit("a.log", 2)
    table.file.end(True, False)
    assert table.content == b"old\n1\n"
    table.begin("replace")
    assert table.content == b""
    table.log("a.log", b"2\n")
    table.file.commit("a.log", 2)
    assert table.content == b"2\n"


def test_appending_does_not_go_on_in_somebodys_last_line(table):
    put(table, "no newline")
    table.begin("append")
    table.log("a.log", b"1\n")
    table.file.commit("a.log", 2)
    assert table.content == b"no newline\n1\n"


def test_check_refuses_what_a_run_has_ended_and_leaves_to_begin_what_can_be_resumed(table):
    table.begin("error")
    table.log("a.log", b"1\n")
    table.file.commit("a.log", 2)
    table.file.end(False, True)
    CommittedFile(table.path).check("error")
    with pytest.raises(SinkError, match="exists already"):
        table.begin("error", "r2")
    table.begin("error", "r2", resumed=True)
    table.file.end(True, True)
    with pytest.raises(SinkError, match="exists already"):
        CommittedFile(table.path).check("error")
    CommittedFile(table.path).check("append")


def test_old_content_stays_until_begin(table):
    put(table, "old\n")
    table.file.check("replace")
    assert table.content == b"old\n"


def die_while_appending(table, log, end, after):
    """In another process that ends without a word when `after` bytes of the commit were written."""
    pid = os.fork()
    if pid == 0:
        try:

            def die(fd, data):
                os.write(fd, data[:after])
                os._exit(9)

            vars(committed_file)["write_fully"] = die
            CommittedFile(table.path).commit(log, end)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


def test_a_commit_that_was_cut_off_is_undone_by_the_next_and_can_be_repeated(table):
    table.begin()
    table.log("a.log", b"first row\nsecond row\n")
    table.log("b.log", b"other\n")
    table.file.commit("a.log", 10)
    die_while_appending(table, "a.log", 21, after=4)
    assert table.content == b"first row\nseco"
    table.file.commit("b.log", 6)
    assert table.content == b"first row\nother\n"
    CommittedFile(table.path).commit("a.log", 21)
    assert table.content == b"first row\nother\nsecond row\n"


def test_a_process_that_dies_before_it_notes_the_commit_has_not_committed(table):
    table.begin()
    table.log("a.log", b"first row\n")
    die_while_appending(table, "a.log", 10, after=10)
    assert table.content == b"first row\n"
    table.file.commit("a.log", 10)
    assert table.content == b"first row\n"
    assert table.state["length"] == 10


def test_the_end_of_a_failed_run_removes_half_lines_and_keeps_what_could_still_be_committed(table):
    table.begin()
    table.log("a.log", b"first row\n")
    table.log("b.log", b"done\n")
    table.file.commit("b.log", 5)
    die_while_appending(table, "a.log", 10, after=3)
    table.file.end(False, True)
    assert table.content == b"done\n"
    table.begin("error", "r2", resumed=True)
    assert "b.log" not in os.listdir(table.folder)
    table.file.commit("a.log", 10)
    table.file.commit("b.log", 5)
    assert table.content == b"done\nfirst row\n"


def test_a_run_after_a_crash_removes_half_lines(table):
    table.begin()
    table.log("a.log", b"first row\n")
    die_while_appending(table, "a.log", 10, after=3)
    os.close(table.file._run_lock)  # as when the driver dies
    table.file._run_lock = None
    table.begin("append", "r2")
    assert table.content == b""
    assert [name for name in os.listdir(table.folder) if name.endswith(".log")] == []


def test_what_others_wrote_is_never_cut_off(table):
    table.begin()
    table.log("a.log", b"first row\n")
    with open(table.path, "ab") as file:
        file.write(b"by hand\n")
    with pytest.raises(
        SinkError, match=r"holds 8 bytes behind byte 0 that no run has committed: another program has written"
    ):
        table.file.commit("a.log", 10)
    assert table.content == b"by hand\n"


def test_a_file_that_somebody_edits_after_the_run_is_as_it_is(table):
    table.begin()
    table.log("a.log", b"first row\n")
    table.file.commit("a.log", 10)
    table.file.end(True, False)
    put(table, "edited, and longer than before\n")
    table.begin("append", "r2")
    assert table.content == b"edited, and longer than before\n"
    table.file.end(True, False)
    os.unlink(table.path)
    table.begin("error", "r3")
    assert table.content == b""


def test_a_file_that_others_shorten_or_remove_while_the_run_writes_is_an_error(table):
    table.begin()
    table.log("a.log", b"first row\nsecond row\n")
    table.file.commit("a.log", 10)
    os.truncate(table.path, 5)
    with pytest.raises(
        SinkError, match=r"is shorter than what was written \(5 bytes of 10\): another program has changed or"
    ):
        table.file.commit("a.log", 21)
    os.unlink(table.path)
    with pytest.raises(SinkError, match=r"is shorter than what was written \(0 bytes of 10\)"):
        table.file.commit("a.log", 21)


def test_two_runs_on_one_file_are_refused(table):
    table.begin(run="r1")
    other = CommittedFile(table.path)
    message = rf"another run, or another sink of this one, writes to it \(process {os.getpid()}, run r1\); wait until"
    with pytest.raises(SinkError, match=message):
        other.check("append")
    with pytest.raises(SinkError, match=message):
        other.begin("r2", "replace", False)
    other.end(False, True)  # it never had the file: nothing happens
    assert table.state["ended"] is None
    table.log("a.log", b"1\n")
    table.file.commit("a.log", 2)
    table.file.end(True, False)
    other.check("append")
    other.begin("r2", "append", False)
    other.end(True, False)
    assert table.content == b"1\n"


def test_the_lock_is_given_back_although_a_child_process_holds_a_copy(table):
    table.begin()
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(sending)
        os.read(receiving, 1)
        os._exit(0)
    table.file.end(True, False)
    table.begin("append", "r2")
    table.file.end(True, False)
    os.close(sending)
    os.close(receiving)
    os.waitpid(pid, 0)


def test_a_resumed_run_goes_on_where_the_earlier_one_was(table):
    table.begin("replace", "r1")
    table.log("a.log", b"1\n2\n")
    table.file.commit("a.log", 2)
    table.file.end(True, False)
    table.begin("replace", "r2", resumed=True)
    assert table.content == b"1\n"
    table.file.commit("a.log", 2)  # the last checkpoint's commit comes again, its log is gone
    assert table.content == b"1\n"


def test_a_resumed_run_whose_output_is_gone_is_refused(table):
    with pytest.raises(
        SinkError, match=r"what the run that is to go on has written is gone; put .* back, or start anew"
    ):
        table.begin("append", "r2", resumed=True)
    table.begin("append", "r1")
    table.log("a.log", b"1\n")
    table.file.commit("a.log", 2)
    table.file.end(False, False)
    os.unlink(table.path)
    with pytest.raises(SinkError, match="start anew"):
        table.begin("append", "r2", resumed=True)


def test_a_failed_run_without_rows_leaves_no_empty_file_and_can_be_resumed(table):
    table.begin("error", "r1")
    assert table.content == b""
    table.file.end(False, True)
    assert not os.path.exists(table.path)
    table.begin("error", "r2", resumed=True)
    assert table.content == b""


def test_a_full_disk_while_appending_leaves_whole_rows(table, monkeypatch):
    table.begin()
    table.log("a.log", b"first row\nsecond row\n")
    table.file.commit("a.log", 10)

    def full(fd, data):
        write_fully(fd, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(committed_file, "write_fully", full)
    with pytest.raises(
        SinkError, match=r"x\.jsonl: cannot be written \(No space left on device\); the disk is full: make"
    ):
        table.file.commit("a.log", 21)
    assert table.content == b"first row\n"
    monkeypatch.setattr(committed_file, "write_fully", write_fully)
    table.file.commit("a.log", 21)
    assert table.content == b"first row\nsecond row\n"


def test_a_damaged_state_is_named_with_the_remedy(table):
    table.begin()
    table.file.end(True, False)
    for damage in ("{", '{"what": 1}', "[]"):
        with open(os.path.join(table.folder, "state.json"), "w") as file:
            file.write(damage)
        with pytest.raises(SinkError, match=r"state\.json: is damaged .*; remove .*\.x\.jsonl\.esault to take"):
            table.begin("append")


def test_check_finds_what_can_be_found_and_leaves_no_trace(tmp_path, monkeypatch):
    with pytest.raises(SinkError, match=r"is a folder; write the name of a file in it, such as .*/rows\.jsonl"):
        CommittedFile(str(tmp_path)).check("append")
    (tmp_path / "file").write_text("x")
    with pytest.raises(SinkError, match=r"file/x\.jsonl: .*/file is a file, not a folder; write elsewhere"):
        CommittedFile(str(tmp_path / "file" / "x.jsonl")).check("append")
    with pytest.raises(SinkError, match="exists already"):
        CommittedFile(str(tmp_path / "file")).check("error")
    CommittedFile(str(tmp_path / "new" / "deep" / "x.jsonl")).check("error")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write everywhere
    with pytest.raises(SinkError, match="no permission to write in"):
        CommittedFile(str(tmp_path / "x.jsonl")).check("append")
    assert os.listdir(tmp_path) == ["file"]


def test_a_name_without_folder_is_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = CommittedFile("x.jsonl")
    file.check("error")
    file.begin("r1", "error", False)
    file.end(True, False)
    assert sorted(os.listdir(tmp_path)) == [".x.jsonl.esault", "x.jsonl"]


def test_what_is_no_file_on_a_disk_is_refused_and_nothing_is_left_there(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("/dev/stdout", "/dev/null", "/dev/fd/1", f"/proc/{os.getpid()}/fd/1", str(pipe)):
        with pytest.raises(SinkError, match=r"is no file on a disk.*end with a step: \.map\(print\)"):
            CommittedFile(path).check("append")
    assert os.listdir(tmp_path) == ["pipe"]
