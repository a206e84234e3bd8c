"""A folder that gets files: each file is a split."""

from __future__ import annotations

import gzip
import os

import pytest

from esault import SourceError, Topology, TopologyError
from esault.messages.settings import Settings
from esault.sinks import JsonLines
from esault.sources import Directory, MicroBatches, Paced
from esault.spark.engine.refusals import refusals
from esault.testing import LocalRuntime
from esault.testing.contract import check_spout


def put(folder, name, text):
    """A whole file, all at once."""
    data = text.encode()
    (folder / f".{name}").write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (folder / f".{name}").rename(folder / name)


def filled(folder, files=4, lines=9):
    for number in range(files):
        put(folder, f"{number}.txt", "".join(f"{number}-{i}\n" for i in range(lines)))


class TestDirectory:
    def test_each_file_is_read_once_also_one_that_appears(self, tmp_path):
        filled(tmp_path)
        put(tmp_path, "a.gz", "one\ntwo\nthree")
        put(tmp_path, "empty.txt", "")
        grow = lambda: put(tmp_path, "z.txt", "new\nlines\n")
        assert check_spout(lambda: Directory(tmp_path), grow=grow) == 4 * 9 + 3

    def test_a_run_ends_when_those_are_read_that_were_there_at_the_start(self, tmp_path):
        filled(tmp_path, files=40)  # more than are open at a time
        t = Topology("inbox")
        t.spout("lines", Directory(tmp_path, every=None), parallelism=3).sink("out", JsonLines(tmp_path / ".out"))
        local = LocalRuntime(t)
        local.run_until_drained()
        assert sorted(value for _, value in local.emitted("lines")) == sorted(
            f"{number}-{i}" for number in range(40) for i in range(9)
        )

    def test_files_that_appear_are_found_and_a_finished_one_may_be_taken_away(self, tmp_path):
        filled(tmp_path, files=2)
        t = Topology("inbox")
        t.spout("lines", Directory(tmp_path, every=1.0)).sink("out", JsonLines(tmp_path / ".out"))
        local = LocalRuntime(t, settings=Settings(delivery="eo", reload_state=True))
        local.run_for(1.5)
        assert len(local.emitted("lines")) == 18
        put(tmp_path, "new.txt", "more\n")
        local.run_for(1.5)
        assert local.emitted("lines")[18:] == [(str(tmp_path / "new.txt"), "more")]
        local.checkpoint()
        local.run_for(0.5)
        assert set(local.kept[-1].units["lines"].splits) == {str(tmp_path / n) for n in ("0.txt", "1.txt", "new.txt")}
        (tmp_path / "new.txt").unlink()
        local.run_for(1.5)
        local.checkpoint()
        local.run_for(0.5)
        assert set(local.kept[-1].units["lines"].splits) == {str(tmp_path / n) for n in ("0.txt", "1.txt")}
        put(tmp_path, "new.txt", "again\n")
        local.run_for(1.5)
        assert local.emitted("lines")[19:] == [(str(tmp_path / "new.txt"), "again")]

    def test_a_folder_that_is_missing_is_told(self, tmp_path):
        with pytest.raises(SourceError, match="does not exist"):
            Directory(tmp_path / "none" / "*.txt").check()
        with pytest.raises(SourceError, match="holds no file"):
            Directory(tmp_path, every=None).check()

    def test_an_interval_of_nothing_is_refused(self, tmp_path):
        with pytest.raises(TopologyError, match="every=0"):
            Directory(tmp_path, every=0)

    @pytest.mark.parametrize("wrapper", [MicroBatches, lambda spout: Paced(spout, 10)])
    def test_what_reads_a_spout_as_a_whole_refuses_it(self, tmp_path, wrapper):
        with pytest.raises(TopologyError, match="Directory is read in splits"):
            wrapper(Directory(tmp_path))

    def test_spark_refuses_it_by_name(self, tmp_path):
        t = Topology("inbox")
        t.spout("lines", Directory(tmp_path)).sink("out", JsonLines(tmp_path / ".out"))
        assert "Directory looks for new files" in refusals(t.plan())[0]


def test_a_pipe_that_appears_is_passed_over(tmp_path):
    """To open one waits for who writes to it."""
    filled(tmp_path, files=1)
    source = Directory(tmp_path)
    source.check()
    os.mkfifo(tmp_path / "pipe.txt")
    assert source.splits() == [str(tmp_path / "0.txt")]


def test_a_file_that_appears_with_a_name_that_is_no_text_is_said(tmp_path):
    filled(tmp_path, files=1)
    source = Directory(tmp_path)
    source.check()
    with open(os.fsencode(tmp_path) + b"/\xff.txt", "w"):
        pass
    with pytest.raises(SourceError, match=r"\\udcff\.txt': the file's name is no UTF-8, .*; rename it"):
        source.splits()
