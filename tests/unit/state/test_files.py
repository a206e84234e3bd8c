"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from esault.state.files import private, sync_file, sync_folder, write_whole


@pytest.mark.parametrize("name", ["a", "ü b", "a" * 200, ".hidden"])
def test_a_file_is_put_in_its_place(tmp_path, name):
    path = tmp_path / name
    write_whole(path, b"one")
    write_whole(path, b"")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two" and os.listdir(tmp_path) == [name]


def test_only_this_user_may_read_it(tmp_path):
    before = os.umask(0)
    try:
        write_whole(tmp_path / "a", b"x")
        with open(tmp_path / "b", "wb", opener=private):
            pass
    finally:
        os.umask(before)
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"} == {0o600}


def test_what_stood_there_stands_where_it_fails(tmp_path):
    folder = tmp_path / "taken"
    folder.mkdir()
    (folder / "inside").write_bytes(b"x")
    with pytest.raises(OSError):
        write_whole(folder, b"y")
    assert (folder / "inside").read_bytes() == b"x" and os.listdir(tmp_path) == ["taken"]
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "none" / "a", b"x")


def test_what_a_crash_left_is_written_over(tmp_path):
    (tmp_path / ".a.part").write_bytes(b"half of something longer")
    write_whole(tmp_path / "a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x" and os.listdir(tmp_path) == ["a"]


def test_what_is_not_there_cannot_be_made_durable(tmp_path):
    sync_folder(tmp_path)
    (tmp_path / "a").write_bytes(b"")
    sync_file(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        sync_file(tmp_path / "none")
    with pytest.raises(NotADirectoryError):
        sync_folder(tmp_path / "a")
