from __future__ import annotations

import errno
import os

import pytest

from esault.errors import SinkError
from esault.sinks import row_log
from esault.sinks.durable import write_fully
from esault.sinks.row_log import RowLog


@pytest.fixture
def log(tmp_path):
    log = RowLog(str(tmp_path / "x.log"))
    yield log
    log.close()


def content(log):
    with open(log.path, "rb") as file:
        return file.read()


def test_what_was_written_is_in_the_file_after_flush(log):
    log.write(b"one\n")
    assert content(log) == b""
    assert log.size == 4
    assert log.flush() == 4
    log.write(b"two\n")
    assert log.flush() == log.size == 8
    assert content(log) == b"one\ntwo\n"


def test_much_is_written_before_flush_so_that_memory_stays_bounded(log):
    for _ in range(40):
        log.write(b"x" * 100_000)
    assert len(content(log)) > 2_000_000
    assert log.size == 4_000_000


def test_a_full_disk_leaves_whole_rows_and_what_is_in_memory_can_be_written_later(log, monkeypatch):
    log.write(b"one\n")
    log.flush()
    log.write(b"two\n")

    def full(fd, data):
        write_fully(fd, data[:2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(row_log, "write_fully", full)
    with pytest.raises(SinkError, match=r"x\.log: cannot be written \(No space left on device\); the disk is full"):
        log.flush()
    assert content(log) == b"one\n"
    monkeypatch.setattr(row_log, "write_fully", write_fully)
    assert log.flush() == 8
    assert content(log) == b"one\ntwo\n"


def test_a_log_is_never_taken_over(log):
    with pytest.raises(SinkError, match=r"x\.log: cannot be written \(File exists\)"):
        RowLog(log.path)
    with pytest.raises(SinkError, match=r"gone/x\.log: cannot be written \(No such file or directory\)"):
        RowLog(os.path.join(os.path.dirname(log.path), "gone", "x.log"))
