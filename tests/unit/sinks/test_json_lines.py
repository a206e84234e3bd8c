from __future__ import annotations

import errno
import json
import os
import resource
from datetime import datetime

import pytest

from esault.errors import SinkError, TopologyError
from esault.sinks import row_file, row_log
from esault.sinks.durable import write_fully
from esault.sinks.json_lines import JsonLines
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo, commits

RUN = RunInfo("run-1", "t", "sink")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "out" / "x.jsonl")


def opened(path, sub_unit=0, **arguments):
    sink = JsonLines(path, **arguments)
    context = Context("sink", sub_unit=sub_unit, run="run-1")
    sink.context = context
    sink.open(context)
    return sink


def begun(path, **arguments):
    driver = JsonLines(path, **arguments)
    driver.check()
    driver.begin(RUN)
    return driver


def write(sink, *pairs):
    sink.write([Row(key, value, 5.0) for key, value in pairs])


def commit(sink, epoch=0):
    sink.commit(epoch, sink.prepare(epoch))


def rows(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def logs(path):
    folder = os.path.join(os.path.dirname(path), ".x.jsonl.esault")
    return [name for name in os.listdir(folder) if name.endswith(".log")]


def test_a_row_is_an_object_with_key_and_value(path):
    driver, sink = begun(path), opened(path)
    write(sink, (("a", 1), {"x": (1, 2)}), (b"k", datetime(2026, 1, 2)))
    sink.write_columns(["c"], [None], 5.0, None)
    commit(sink)
    sink.close()
    driver.end(True)
    assert rows(path) == [
        {"key": ["a", 1], "value": {"x": [1, 2]}},
        {"key": "aw==", "value": "2026-01-02T00:00:00"},
        {"key": "c", "value": None},
    ]


def test_the_time_can_be_added(path):
    driver, sink = begun(path, with_time=True), opened(path, with_time=True)
    write(sink, ("a", 1))
    sink.write_columns(["b"], [2], 6.0, None)
    commit(sink)
    driver.end(True)
    sink.close()
    assert rows(path) == [{"key": "a", "value": 1, "time": 5.0}, {"key": "b", "value": 2, "time": 6.0}]


def test_a_round_without_rows_leaves_no_trace(path):
    driver, sink = begun(path), opened(path)
    assert sink.prepare(0) is None
    sink.commit(0, None)
    write(sink, ("a", 1))
    commit(sink)
    assert sink.prepare(1) is None
    sink.close()
    driver.end(True)
    assert rows(path) == [{"key": "a", "value": 1}]
    assert commits(sink)


def test_an_epoch_that_was_given_up_is_part_of_the_next(path):
    driver, sink = begun(path), opened(path)
    write(sink, ("a", 1))
    given_up = sink.prepare(1)
    write(sink, ("b", 2))
    commit(sink, 2)
    assert rows(path) == [{"key": "a", "value": 1}, {"key": "b", "value": 2}]
    sink.commit(1, given_up)
    assert len(rows(path)) == 2
    sink.close()
    driver.end(True)


def test_what_was_staged_behind_the_checkpoint_that_all_went_back_to_goes(path):
    driver, sink = begun(path), opened(path)
    write(sink, ("a", 1))
    kept = sink.prepare(1)
    write(sink, ("b", 2))
    sink.prepare(2)
    # the process dies here; the driver commits what the checkpoint holds
    driver.commit(1, kept)
    driver.forget_staged()
    assert logs(path) == []
    driver.commit(1, kept)  # all go back to the same checkpoint once more
    driver.forget_staged()
    later = opened(path, 7)
    write(later, ("b", 2))
    commit(later, 2)
    driver.end(True)
    assert [(row["key"], row["value"]) for row in rows(path)] == [("a", 1), ("b", 2)]


def test_a_run_that_was_killed_before_it_committed_leaves_nothing_in_the_way(path):
    driver, sink = begun(path), opened(path)
    write(sink, ("a", 1))
    sink.prepare(1)
    os.close(driver._place.file._run_lock)  # as the death of its process does
    driver._place.file._run_lock = None
    later = begun(path)
    commit(opened(path))
    later.end(True)
    assert not os.path.getsize(path)


def test_a_log_gives_way_to_a_new_one_so_that_long_runs_do_not_fill_the_disk(path, monkeypatch):
    monkeypatch.setattr(row_file, "LOG_SIZE", 1000)
    driver, sink = begun(path), opened(path)
    handles = []
    for epoch in range(20):
        write(sink, ("k", "x" * 400))
        handles.append(sink.prepare(epoch))
        sink.commit(epoch, handles[-1])
        assert len(logs(path)) <= 1
    assert len({name for handle in handles for name, _ in handle}) == 7
    for epoch, handle in enumerate(handles):
        sink.commit(epoch, handle)
    assert len(rows(path)) == 20
    sink.close()
    driver.end(True)
    assert logs(path) == []


def test_a_log_gives_way_although_rows_come_between_prepare_and_commit(path, monkeypatch):
    monkeypatch.setattr(row_file, "LOG_SIZE", 1000)
    driver, sink = begun(path), opened(path)
    for epoch in range(20):
        write(sink, ("k" * 400, epoch))
        handle = sink.prepare(epoch)
        write(sink, ("k" * 400, epoch + 0.5))
        if epoch % 3:  # every third one is given up, and stands in the next
            sink.commit(epoch, handle)
        assert len(logs(path)) <= 3
    commit(sink, 20)
    assert sorted(row["value"] for row in rows(path)) == [n / 2 for n in range(40)]
    sink.close()
    driver.end(True)


def test_a_value_that_is_no_json_is_refused_before_anything_of_its_batch_is_written(path):
    driver, sink = begun(path), opened(path)
    with pytest.raises(
        SinkError, match=r"x\.jsonl: the value of key 'b' cannot be written as JSON: value is of type object; map it"
    ):
        write(sink, ("a", 1), ("b", object()))
    write(sink, ("c", 3))
    commit(sink)
    assert rows(path) == [{"key": "c", "value": 3}]
    sink.close()
    driver.end(True)


def test_many_processes_write_one_file_of_whole_lines(path):
    driver = begun(path)
    children = []
    for sub_unit in range(3):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                sink = opened(path, sub_unit)
                for epoch in range(20):
                    write(sink, *((sub_unit, (epoch, i, "x" * 100)) for i in range(50)))
                    handle = sink.prepare(epoch)
                    sink.commit(epoch, handle)
                    sink.commit(epoch, handle)
                sink.close()
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0, 0]
    driver.end(True)
    found = rows(path)
    assert len(found) == 3000
    for sub_unit in range(3):
        own = [row["value"][:2] for row in found if row["key"] == sub_unit]
        assert own == [[epoch, i] for epoch in range(20) for i in range(50)]


def test_a_file_that_may_not_grow_leaves_whole_lines_and_says_so(path):
    driver, sink = begun(path), opened(path)
    write(sink, *((i, "x" * 90) for i in range(100)))
    commit(sink)
    write(sink, *((i, "x" * 90) for i in range(100, 200)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (15_000, before[1]))
    try:
        with pytest.raises(SinkError, match=r"\.log: cannot be written \(File too large\); the largest size of a file"):
            sink.prepare(1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    handle = sink.prepare(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (15_000, before[1]))
    try:
        with pytest.raises(SinkError, match=r"x\.jsonl: cannot be written \(File too large\)"):
            sink.commit(1, handle)
        assert len(rows(path)) == 100
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    sink.commit(1, handle)
    assert [row["key"] for row in rows(path)] == list(range(200))
    sink.close()
    driver.end(True)


def test_a_full_disk_while_writing_is_said_and_leaves_nothing_half(path, monkeypatch):
    driver, sink = begun(path), opened(path)

    def full(fd, data):
        write_fully(fd, data[:7])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(row_log, "write_fully", full)
    with pytest.raises(SinkError, match="the disk is full: make room"):
        write(sink, *((i, "x" * 1000) for i in range(2000)))
    monkeypatch.undo()
    commit(sink)
    assert [row["key"] for row in rows(path)] == list(range(2000))
    sink.close()
    driver.end(True)


def test_a_folder_that_may_not_be_written_is_said(path, monkeypatch):
    def refuse(path, exist_ok=False):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "makedirs", refuse)  # the superuser may write everywhere
    with pytest.raises(SinkError, match=r"x\.jsonl: cannot be written \(Permission denied\); no permission: allow it"):
        JsonLines(path).begin(RUN)
    with pytest.raises(SinkError, match=r"x\.jsonl: cannot be written \(Permission denied\)"):
        write(opened(path), ("a", 1))


def test_rows_that_were_not_committed_stay_in_their_log_when_the_sink_is_closed(path):
    driver, sink = begun(path), opened(path)
    write(sink, ("a", 1))
    handle = sink.prepare(0)
    sink.close()
    assert rows(path) == []
    opened(path, 1).commit(0, handle)
    assert rows(path) == [{"key": "a", "value": 1}]
    driver.end(True)


def test_the_second_run_is_refused_unless_the_mode_allows_it(path):
    for mode, expected in (("error", 1), ("append", 2), ("replace", 1)):
        driver, sink = begun(path, mode=mode), opened(path, mode=mode)
        write(sink, ("a", mode))
        commit(sink)
        sink.close()
        driver.end(True)
        assert len(rows(path)) == expected
    driver = JsonLines(path)
    with pytest.raises(SinkError, match="exists already"):
        driver.begin(RUN)
    driver.end(False)
    assert rows(path) == [{"key": "a", "value": "replace"}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("",), "JsonLines: path='': write the name of a file"),
        ((3,), "JsonLines: path=3: write the name"),
        ((b"x",), "JsonLines: path=b'x'"),
        (("x", "w"), 'JsonLines: mode=\'w\': write "error", "append" or "replace"'),
    ],
)
def test_a_wrong_argument_is_refused_with_the_remedy(arguments, message):
    with pytest.raises(TopologyError, match=message):
        JsonLines(*arguments)
