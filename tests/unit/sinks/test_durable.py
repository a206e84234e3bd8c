from __future__ import annotations

import errno
import os

import pytest

from esault.sinks import durable
from esault.sinks.durable import replace_file, unwritable, write_fully


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "state"
    replace_file(str(path), b"one")
    replace_file(str(path), b"two!")
    assert path.read_bytes() == b"two!"
    assert os.listdir(tmp_path) == ["state"]


def test_a_failed_replacement_leaves_the_old_content_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "state"
    path.write_bytes(b"one")

    def full(fd, data):
        os.write(fd, data[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(durable, "write_fully", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(str(path), b"two")
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["state"]


def test_all_is_written_even_if_the_system_takes_little_at_a_time(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    fd = os.open(tmp_path / "x", os.O_WRONLY | os.O_CREAT)
    write_fully(fd, b"0123456789")
    os.close(fd)
    assert (tmp_path / "x").read_bytes() == b"0123456789"


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, r"out/x: cannot be written \(No space left on device\); the disk is full: make room, or write"),
        (errno.EFBIG, "the largest size of a file is reached"),
        (errno.EACCES, r"out/x: cannot be written \(Permission denied\); no permission: allow it"),
        (errno.EROFS, "the disk is read-only: write elsewhere"),
        (errno.EIO, "see that the folder exists and can be written"),
    ],
)
def test_an_error_of_the_system_is_said_with_path_and_remedy(number, remedy):
    import re

    assert re.search(remedy, str(unwritable("out/x", OSError(number, os.strerror(number)))))
