"""Folders of runs: whose are removed, and whose never."""

from __future__ import annotations

import os
import shutil

import pytest

from esault.runtime.process import run_dir
from esault.runtime.process.owner import Owner
from esault.runtime.process.run_dir import RunDir, living_run_dirs, name_of, remove_stale

#: a process that this pid namespace does not have
ELSEWHERE = Owner(4_000_000, 12.0)


@pytest.fixture(autouse=True)
def parent(tmp_path, monkeypatch):
    monkeypatch.setattr(run_dir, "_parent", lambda: tmp_path)
    return tmp_path


@pytest.fixture
def make():
    made = []

    def one(owner=ELSEWHERE):
        made.append(RunDir(owner))
        return made[-1]

    yield one
    for each in made:
        each.close()


def test_the_folder_of_a_living_run_of_another_container_stays(make):
    folder = make()
    (folder.path / "1.data").touch()
    remove_stale()
    assert (folder.path / "1.data").exists()
    assert living_run_dirs() == [folder.path]


def test_the_folder_of_a_run_that_is_over_goes():
    folder = RunDir(ELSEWHERE)
    (folder.path / "1.data").touch()
    folder.close()
    assert living_run_dirs() == []
    remove_stale()
    assert not folder.path.exists()


def test_a_new_run_removes_what_is_over_and_nothing_else(make):
    living, over = make(), RunDir(ELSEWHERE)
    over.close()
    new = make()
    assert not over.path.exists()
    assert sorted(living_run_dirs()) == sorted([living.path, new.path])


def test_a_folder_without_a_lock_whose_owner_lives_stays(parent):
    owner = Owner.current()
    before = parent / f"esault-{owner.pid}-{owner.start_time:.0f}-old"
    before.mkdir()
    remove_stale()
    assert living_run_dirs() == [before]


def test_what_is_no_folder_of_a_run_is_left_alone(parent):
    (parent / "esault-4000000-12-file").touch()
    (parent / "esault-my-own-things").mkdir()
    remove_stale()
    assert len(list(parent.iterdir())) == 2
    assert living_run_dirs() == []


def test_a_folder_that_was_removed_is_noticed_and_made_again(make):
    folder = make()
    assert not folder.lost
    folder.path.rmdir()
    assert folder.lost
    folder.make_again()
    assert not folder.lost
    assert folder.path.stat().st_mode & 0o777 == 0o700
    remove_stale()
    assert living_run_dirs() == [folder.path]


def test_a_folder_that_was_replaced_is_lost_and_cannot_be_made_again(make):
    folder = make()
    os.rename(folder.path, f"{folder.path}-away")
    folder.path.mkdir()
    assert folder.lost
    with pytest.raises(FileExistsError):
        folder.make_again()


def test_a_folder_says_what_its_run_is_called_also_when_it_was_made_again(parent):
    folder, other = RunDir(ELSEWHERE, "words", "20261130-1"), RunDir(ELSEWHERE)
    try:
        assert (name_of(folder.path), name_of(other.path)) == (("words", "20261130-1"), None)
        shutil.rmtree(folder.path)
        folder.make_again()
        assert name_of(folder.path) == ("words", "20261130-1")
    finally:
        folder.close()
        other.close()
