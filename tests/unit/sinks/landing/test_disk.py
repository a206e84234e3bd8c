"""The disk under a table: whole files, names that are taken once, and errors that say what to do."""

from __future__ import annotations

import errno
import os

import pytest

from esault.errors import SinkError
from esault.sinks.landing.disk import LocalDisk, explained, no_links, refusal

disk = LocalDisk()


@pytest.mark.parametrize("data", [b"", b"x", memoryview(b"abc"), os.urandom(3 << 20)])
def test_what_is_written_is_read(tmp_path, data):
    path = str(tmp_path / "ü")
    disk.write_new(path, data)
    assert disk.read(path) == data and disk.names(str(tmp_path)) == ["ü"]


def test_a_name_that_is_taken_stays_as_it_is(tmp_path):
    path = str(tmp_path / "a")
    disk.write_new(path, b"first")
    with pytest.raises(FileExistsError):
        disk.write_new(path, b"second")
    assert disk.read(path) == b"first"


def test_only_one_gets_a_second_name(tmp_path):
    one, two, target = (str(tmp_path / name) for name in ("one", "two", "target"))
    disk.write_new(one, b"1")
    disk.write_new(two, b"2")
    assert disk.link(one, target) and not disk.link(two, target)
    assert disk.link(one, target), "the answer to this very call was lost"
    assert disk.read(target) == b"1"


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="no space"):
        disk.write_new(str(tmp_path / "a"), b"x")
    monkeypatch.undo()
    assert disk.names(str(tmp_path)) == []


def test_folders_are_made_with_all_above_them_once(tmp_path):
    for _ in range(2):
        disk.make_folder(str(tmp_path / "a" / "b" / "c"))
    assert (tmp_path / "a" / "b" / "c").is_dir()
    disk.write_new(str(tmp_path / "file"), b"")
    for path in ("file", "file/below"):
        with pytest.raises(NotADirectoryError):
            disk.make_folder(str(tmp_path / path))


def test_what_is_gone_need_not_be_removed(tmp_path):
    path = str(tmp_path / "a")
    disk.remove(path)
    disk.write_new(path, b"")
    disk.rename(path, path + "b")
    disk.touch(path + "b")
    assert disk.modified(path + "b") > 0
    disk.remove(path + "b")
    assert disk.names(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EACCES, "not permitted"),
        (errno.EROFS, "not permitted"),
        (errno.ENOENT, "it is gone"),
        (errno.ESTALE, "it is gone"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_an_error_says_where_why_and_what_to_do(code, said):
    with pytest.raises(SinkError, match=r"writing /p: ") as error, explained("writing", "/p"):
        raise OSError(code, os.strerror(code))
    assert said in str(error.value)


def test_an_error_without_a_number_is_said_as_it_is():
    assert str(refusal("writing", "/p", OSError("odd"))) == "writing /p: odd"


def test_a_file_system_without_links_is_told_from_a_full_one():
    assert no_links(OSError(errno.EOPNOTSUPP, "")) and not no_links(OSError(errno.ENOSPC, ""))
