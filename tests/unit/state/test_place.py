"""Places of state: folders, and prefixes of an object store."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from esault.object_store.object_path import ObjectPath
from esault.state.place import link, place_of, put, remove_tree


@pytest.fixture
def store(request):
    return ObjectPath(f"memory://place/{abs(hash(request.node.nodeid))}", ValueError)


def test_an_address_is_one_of_a_store_and_a_path_a_folder():
    assert isinstance(place_of("memory://bucket/a"), ObjectPath)
    for text in ("a/b", "/a b", "ü", Path("s3:/x"), "file:///a/b"):
        assert isinstance(place_of(text), Path)
    assert place_of("file:///a/b") == Path("/a/b")


def test_a_file_of_a_folder_gets_a_second_name(tmp_path):
    put(tmp_path / "a", b"data")
    (tmp_path / "b").write_bytes(b"old")
    link(tmp_path / "a", tmp_path / "b")
    (tmp_path / "a").unlink()
    assert (tmp_path / "b").read_bytes() == b"data"


def test_where_links_cannot_be_it_is_copied_for_this_user_alone(tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(18, "another file system")

    put(tmp_path / "a", b"data")
    monkeypatch.setattr(os, "link", refuse)
    link(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"data"
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600
    assert (tmp_path / "b").stat().st_ino != (tmp_path / "a").stat().st_ino


def test_what_is_not_there_has_no_second_name(tmp_path):
    with pytest.raises(FileNotFoundError):
        link(tmp_path / "none", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_between_a_folder_and_a_store_files_go_as_they_are(tmp_path, store):
    put(tmp_path / "a", b"\0data")
    link(tmp_path / "a", store / "a")
    link(store / "a", store / "b")
    link(store / "b", tmp_path / "b")
    assert (store / "a").read_bytes() == (store / "b").read_bytes() == (tmp_path / "b").read_bytes() == b"\0data"
    put(store / "c", b"more")
    assert (store / "c").read_bytes() == b"more"
    remove_tree(store)
    assert not (store / "a").exists()


def test_a_folder_is_removed_with_all_in_it_also_when_it_is_gone(tmp_path):
    folder = tmp_path / "x"
    (folder / "y").mkdir(parents=True)
    put(folder / "y" / "a", b"")
    remove_tree(folder)
    remove_tree(folder)
    assert os.listdir(tmp_path) == []
