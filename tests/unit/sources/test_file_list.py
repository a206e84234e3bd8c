from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import SourceError, TopologyError
from esault.sources.csv_files import CsvFiles
from esault.sources.directory import Directory
from esault.sources.file_list import FILES_AT_ONCE, SMALL_AT_ONCE, FileList, deal, fingerprints, part_of


@pytest.fixture
def texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("texts/b.txt", "texts/a.txt", "texts/deep/c.txt", "texts/deep/d.log", "texts/.hidden"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("x\n")
    return tmp_path


def test_names_are_found_by_file_glob_folder_and_list_and_are_kept_as_given(texts):
    assert FileList("texts/a.txt").find() == ["texts/a.txt"]
    assert FileList(Path("texts/a.txt")).find() == ["texts/a.txt"]
    assert FileList("texts/*.txt").find() == ["texts/a.txt", "texts/b.txt"]
    assert FileList("texts/**/*.txt").find() == ["texts/a.txt", "texts/b.txt", "texts/deep/c.txt"]
    assert FileList("texts").find() == ["texts/a.txt", "texts/b.txt", "texts/deep/c.txt", "texts/deep/d.log"]
    assert FileList("texts", pattern="*.txt").find() == ["texts/a.txt", "texts/b.txt"]
    assert FileList(["texts/deep", "texts/a.txt"]).find() == ["texts/a.txt", "texts/deep/c.txt", "texts/deep/d.log"]
    assert FileList(str(texts / "texts/*.txt")).find() == [str(texts / "texts/a.txt"), str(texts / "texts/b.txt")]


def test_a_file_named_twice_is_found_once(texts):
    assert FileList(["texts/a.txt", "./texts/*.txt", str(texts / "texts/b.txt")]).find() == [
        "./texts/b.txt",
        "texts/a.txt",
    ]


@pytest.mark.parametrize("path", ["texts", "texts/*.txt", "texts/*/*.txt", "./texts//*.txt", "texts/a.txt"])
def test_files_of_one_path_are_measured_as_those_of_several(texts, path):
    alone = FileList(path).measure()
    assert list(alone) == FileList(path).find()
    assert list(alone.items()) == list(FileList([path, path]).measure().items())
    assert alone == {name: Path(name).stat().st_size for name in alone}


def test_a_file_that_one_glob_reaches_by_two_ways_is_measured_once(texts):
    for folder in ("texts/one", "texts/two"):
        Path(folder).mkdir()
    assert list(FileList("texts/*/../a.txt").measure()) == ["texts/deep/../a.txt"]


def test_a_file_whose_name_looks_like_a_glob_is_that_file(texts):
    Path("data[1].txt").write_text("x\n")
    Path("data1.txt").write_text("x\n")
    assert FileList("data[1].txt").find() == ["data[1].txt"]


def test_the_home_folder_can_be_named_by_its_sign(texts, monkeypatch):
    monkeypatch.setenv("HOME", str(texts))
    assert FileList("~/texts/a.txt").find() == [str(texts / "texts/a.txt")]


@pytest.mark.parametrize("path", [[], b"x", 3, None, {"a": 1}, "", ["a", ""], [3], [b"a"]])
def test_what_names_no_file_is_refused(path):
    with pytest.raises(TopologyError, match="path="):
        FileList(path)


def test_what_is_not_there_is_said_with_the_remedy(texts):
    with pytest.raises(SourceError, match=r"nowhere\.txt: there is no such file \(looked in /.*\); check the spelling"):
        FileList("nowhere.txt").measure(growing=False)
    with pytest.raises(
        SourceError, match=r"texts/\*\.csv: no file fits this glob \(looked in /.*\); check the spelling"
    ):
        FileList(["texts/a.txt", "texts/*.csv"]).measure(growing=False)
    Path("empty").mkdir()
    with pytest.raises(
        SourceError, match=r"empty: the folder holds no file that fits pattern='\*\*/\*'; put files there"
    ):
        FileList("empty").measure(growing=False)
    with pytest.raises(SourceError, match=r"x3://bucket/x: there is no object store x3://; write s3://, gs://, az://"):
        FileList("x3://bucket/x").measure(growing=False)
    os.symlink("gone", "link.txt")
    with pytest.raises(SourceError, match=r"link\.txt: there is no such file \(it is a link to a file that is gone\)"):
        FileList("link.txt").measure(growing=False)


def test_what_will_be_followed_may_be_missing_but_not_its_folder(texts):
    FileList("soon.txt").measure(growing=True)
    FileList("texts/*.csv").measure(growing=True)
    Path("empty").mkdir()
    FileList("empty").measure(growing=True)
    with pytest.raises(
        SourceError, match=r"logs/x\.log: nothing can be followed there, for the folder logs does not exist"
    ):
        FileList("logs/x.log").measure(growing=True)
    with pytest.raises(SourceError, match="the folder logs does not exist; create it"):
        FileList("logs/*/x-*.log").measure(growing=True)


def test_a_pipe_is_refused_and_not_opened_for_that_would_wait(texts):
    os.mkfifo("pipe")
    with pytest.raises(SourceError, match=r"pipe: is not a regular file; a pipe can be read as standard input"):
        FileList("pipe").measure(growing=False)


def test_a_file_without_permission_is_named_with_the_remedy(texts, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # the superuser may read everything
    FileList("texts/*.txt").measure(growing=False)  # all may read these
    os.chmod("texts/a.txt", 0o240)
    with pytest.raises(SourceError, match=r"texts/a\.txt: no permission to read it; allow it \(chmod \+r\)"):
        FileList("texts/*.txt").measure(growing=False)


def test_a_name_that_cannot_be_a_key_is_refused(texts):
    with open(b"texts/\xff.txt", "wb"):
        pass
    with pytest.raises(SourceError, match="the file's name is no UTF-8, so it cannot be the key of a tuple; rename it"):
        FileList("texts").measure(growing=False)


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(0, 1000), max_size=30), st.integers(1, 8))
def test_each_file_is_dealt_to_one_part_and_parts_are_about_equal(sizes, parts):
    hands = deal(sizes, parts)
    assert sorted(name for hand in hands for name in hand) == sorted(sizes)
    assert all(hand == sorted(hand) for hand in hands)
    assert hands == deal(dict(reversed(sizes.items())), parts)
    loads = [sum(sizes[name] + 1 for name in hand) for hand in hands]
    assert max(loads) - min(loads) <= max(sizes.values(), default=0) + 1


def test_empty_files_are_dealt_round():
    assert [len(hand) for hand in deal(dict.fromkeys("abcdef", 0), 3)] == [2, 2, 2]


def test_the_part_that_follows_a_file_depends_on_its_name_alone():
    assert {part_of(f"log/{i}.txt", 4) for i in range(100)} == {0, 1, 2, 3}
    assert part_of("log/1.txt", 4) == 1


def test_a_fingerprint_stands_for_a_name_and_all_before_it():
    marks = fingerprints(["a", "b", "c"])
    assert fingerprints(["a", "b"]) == marks[:2]
    assert fingerprints(["ab", "c"])[1] != marks[2]
    assert fingerprints(["x", "b", "c"])[2] != marks[2]


@pytest.mark.parametrize("source", [CsvFiles, Directory])
def test_a_reader_has_many_files_at_once_where_all_are_small(tmp_path, source):
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text("a,b\n1,2\n")
    small = source(tmp_path, every=None)
    assert small.splits_at_once == FILES_AT_ONCE
    small.check()
    assert small.splits_at_once == SMALL_AT_ONCE
    (tmp_path / "3.csv").write_text("a,b\n" + "1,2\n" * 20_000)
    small.check()
    assert small.splits_at_once == FILES_AT_ONCE


@pytest.mark.parametrize("source", [CsvFiles, Directory])
def test_files_that_come_later_may_be_large(tmp_path, source):
    (tmp_path / "0.csv").write_text("a,b\n1,2\n")
    followed = source(tmp_path, every=1.0)
    followed.check()
    assert followed.splits_at_once == FILES_AT_ONCE
