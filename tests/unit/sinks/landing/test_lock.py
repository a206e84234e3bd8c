"""One run at a time writes a table on a disk, and who holds it is named."""

from __future__ import annotations

import errno
import fcntl
import os

import pytest

from esault.errors import SinkError
from esault.sinks.landing.disk import LocalDisk, refusal
from esault.sinks.landing.lock import RunLock
from esault.sinks.landing.log import LOG_FOLDER


@pytest.fixture
def table(tmp_path):
    (tmp_path / LOG_FOLDER).mkdir()
    return tmp_path


def test_the_second_run_is_told_who_writes_the_table_and_the_next_one_gets_it(table):
    one, other = RunLock(str(table)), RunLock(str(table))
    other.check()  # there is no lock yet
    one.acquire("r1")
    for ask in (other.check, lambda: other.acquire("r2")):
        with pytest.raises(SinkError, match=rf"is being written by run r1 \(process {os.getpid()} on .*\)"):
            ask()
    one.release()
    one.release()
    other.check()
    other.acquire("r2")
    other.release()


def test_a_holder_that_could_not_write_its_name_is_another_run(table, monkeypatch):
    def full(descriptor, size):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "ftruncate", full)
    one = RunLock(str(table))
    one.acquire("r1")
    with pytest.raises(SinkError, match="is being written by another run"):
        RunLock(str(table)).acquire("r2")
    one.release()


def test_a_file_system_without_locks_is_no_place_for_a_table(table, monkeypatch):
    def none(descriptor, what):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(SinkError, match="the file system has no locks"):
        RunLock(str(table)).acquire("r1")


def test_where_the_folder_is_gone_the_error_says_so(tmp_path):
    with pytest.raises(SinkError, match="opening .*: it is gone, or a folder above it is"):
        RunLock(str(tmp_path / "none")).acquire("r1")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.ENOSPC, "the disk is full .* free space"),
        (errno.EACCES, "not permitted .* Give this user the right"),
        (errno.ESTALE, "it is gone"),
        (errno.EIO, "writing x: .*"),
    ],
)
def test_what_the_disk_refuses_is_said_with_a_remedy(code, said):
    assert isinstance(refusal("writing", "x", OSError(code, os.strerror(code))), SinkError)
    with pytest.raises(SinkError, match=said):
        raise refusal("writing", "x", OSError(code, os.strerror(code)))


def test_a_file_where_a_folder_is_to_be_is_refused(tmp_path):
    disk = LocalDisk()
    disk.make_folder(str(tmp_path / "a" / "b"))
    disk.make_folder(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        disk.make_folder(str(tmp_path / "file"))
    before = disk.modified(str(tmp_path / "file"))
    os.utime(tmp_path / "file", (0, 0))
    disk.touch(str(tmp_path / "file"))
    assert disk.modified(str(tmp_path / "file")) >= before
