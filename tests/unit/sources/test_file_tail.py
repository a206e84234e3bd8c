from __future__ import annotations

import gzip
import logging
import os
import socket
from pathlib import Path

import pytest

from esault.errors import SourceError
from esault.sources.text_files import TextFiles
from esault.topology.context import Context

SPOUTS = []


@pytest.fixture(autouse=True)
def inside_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    while SPOUTS:
        SPOUTS.pop().close()


class Follower:
    """A TextFiles that follows, and its clock."""

    def __init__(self, path="*.log", position=None, part=0, parts=1, **arguments):
        self.now = 1000.0
        self.spout = TextFiles(path, follow=True, **arguments)
        self.spout.check()
        SPOUTS.append(self.spout)
        logger = logging.getLogger("test.file_tail")
        self.spout.open(Context("lines", part=part, parts=parts, now=lambda: self.now, logger=logger))
        if position is not None:
            self.spout.seek(position)

    def later(self, seconds=2.0):
        """All lines that are there after so long."""
        self.now += seconds
        found = []
        while rows := self.spout.read(100):
            found += [line for _, line in rows]
        return found


def add(name, text):
    with open(name, "ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_lines_that_are_added_come_and_it_never_ends():
    add("a.log", "1\n2\n")
    follower = Follower()
    assert follower.later() == ["1", "2"]
    assert follower.later() == []
    add("a.log", "3\n")
    assert follower.later() == ["3"]
    assert follower.spout.progress() is None


def test_only_whole_lines_come():
    add("a.log", "1\n2")
    follower = Follower()
    assert follower.later() == ["1"]
    add("a.log", "2")
    assert follower.later() == []
    add("a.log", "2\n3")
    assert follower.later() == ["222"]
    assert [offset for _, offset, _ in follower.spout.position()] == [6]


def test_new_files_are_found():
    follower = Follower()
    assert follower.later() == []
    add("a.log", "1\n")
    add("b.log", "2\n")
    assert sorted(follower.later()) == ["1", "2"]


def test_files_that_had_nothing_new_are_not_looked_at_all_the_time(monkeypatch):
    add("a.log", "1\n")
    follower = Follower()
    follower.later()
    add("a.log", "2\n")
    looked = []
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda *a, **k: looked.append(a) or stat(*a, **k))
    for _ in range(100):
        assert follower.later(0.0) == []
    assert not looked
    assert follower.later(0.11) == ["2"]


def test_a_clock_that_was_set_back_does_not_stop_it():
    add("a.log", "1\n")
    follower = Follower()
    follower.later()
    add("a.log", "2\n")
    assert follower.later(-500) == ["2"]


def test_files_take_turns():
    add("a.log", "a" * 99 + "\n")
    add("b.log", "b" * 99 + "\n")
    for name in ("a", "b"):
        add(f"{name}.log", (name * 99 + "\n") * 10_000)
    follower = Follower()
    follower.now += 2
    order = []
    while rows := follower.spout.read(10_000):
        order.append(rows[0][0])
    assert order[:6] == ["a.log", "b.log"] * 3


def test_a_file_cut_short_is_read_from_its_start_with_a_warning(caplog):
    add("a.log", "1\n2\n")
    follower = Follower()
    follower.later()
    os.truncate("a.log", 0)
    add("a.log", "3\n")
    assert follower.later() == ["3"]
    assert "a.log was cut short; reading it from its start" in caplog.messages


def test_what_a_copy_holds_of_a_file_cut_short_is_read_first(caplog):
    """As `logrotate` does it with `copytruncate`, also with a file that waits behind it."""
    add("a.log", "1\n2\n")
    follower = Follower("a.log")
    assert follower.later() == ["1", "2"]
    add("a.log", "3\n")
    follower.now += 2
    assert follower.spout.read(0) == []
    Path("a.log.1").write_bytes(Path("a.log").read_bytes())
    os.truncate("a.log", 0)
    add("a.log", "4\n")
    assert follower.later() == ["3", "4"]
    assert "a.log was cut short; what it held is read in a.log.1, and then it from its start" in caplog.messages


def test_where_nothing_was_read_nothing_is_the_last():
    add("a.log", "")
    follower = Follower()
    follower.now += 2
    assert follower.spout.read(1) == []
    assert follower.spout.row_ids() in (None, [])
    with pytest.raises(SourceError, match="nothing has been read yet"):
        _ = follower.spout._reader.last


def test_a_position_of_a_file_that_is_followed_no_more_is_told_of(caplog):
    for name in ("a.log", "b.log"):
        add(name, "1\n")
    follower = Follower()
    follower.later()
    add("a.log", "2\n")
    assert Follower("a.log", position=follower.spout.position()).later() == ["2"]
    assert caplog.messages == ["b.log is none of the files to follow any more"]


def test_a_file_that_vanishes_between_being_found_and_being_opened_is_passed_over(monkeypatch):
    add("a.log", "1\n")
    add("b.log", "2\n")
    follower = Follower()
    find = follower.spout._reader._find
    follower.spout._reader._find = lambda: (find(), os.unlink("b.log"))[0]
    assert follower.later() == ["1"]


def test_a_file_that_is_back_after_a_moment_is_gone_on_with():
    add("a.log", "1\n")
    follower = Follower()
    assert follower.later() == ["1"]
    os.rename("a.log", "away")
    assert follower.later() == []
    os.rename("away", "a.log")
    add("a.log", "2\n")
    assert follower.later() == ["2"]


def test_a_file_that_is_replaced_is_read_to_its_end_and_then_the_new_one(caplog):
    add("a.log", "1\n")
    follower = Follower()
    follower.later()
    add("a.log", "2\n3")
    os.rename("a.log", "a.old")
    add("a.log", "4\n")
    assert follower.later() == ["2", "4"]
    assert "a.log was replaced; going on with the new one" in caplog.messages
    add("a.old", "4")  # its writer has not heard of it yet
    add("a.old", "\n5")
    assert follower.later() == ["34"]
    assert follower.later() == []
    assert follower.later(6) == ["5"]
    assert [offset for _, offset, _ in follower.spout.position()] == [-1, 2]


def test_a_file_that_is_removed_is_read_to_its_end_and_forgotten(caplog):
    add("a.log", "1\n")
    follower = Follower()
    follower.later()
    add("a.log", "2\n")
    os.unlink("a.log")
    assert follower.later() == ["2"]
    assert follower.later(6) == []
    assert [offset for _, offset, _ in follower.spout.position()] == [-1]
    assert not follower.spout._reader._chains
    assert "a.log was removed" in caplog.messages


def test_a_position_goes_on_behind_what_was_read_of_each_file():
    add("a.log", "1\n2\n")
    add("b.log", "x\n")
    follower = Follower()
    follower.now += 2
    follower.spout.read(1)
    position = follower.spout.position()
    add("b.log", "y\n")
    again = Follower(position=position)
    assert sorted([*follower.later(), "1"]) == ["1", "2", "x", "y"]
    assert sorted(again.later()) == ["2", "x", "y"]


def test_at_a_resumption_files_that_were_replaced_cut_or_removed_are_told(caplog):
    for name in ("a", "b", "c", "d"):
        add(f"{name}.log", "1\n2\n")
    follower = Follower()
    follower.later()
    position = follower.spout.position()
    add("c.log", "3\n")
    follower.now += 2
    assert follower.spout.read(0) == []  # it has seen that there is more
    position = follower.spout.position()
    os.rename("a.log", "kept")
    os.unlink("kept")
    add("a.log", "new\n")
    os.truncate("b.log", 0)
    os.unlink("c.log")
    assert Follower(position=position).later() == ["new"]
    assert caplog.messages == [
        "a.log was replaced since the last run; reading it from its start",
        "b.log was cut short since the last run; reading it from its start",
        "c.log is gone since the last run; what was added to it meanwhile cannot be read; 2 bytes that were seen in it behind byte 4 are lost",
    ]


def test_a_compressed_file_is_read_once_and_whole():
    Path("a.log.gz").write_bytes(gzip.compress(b"1\n2"))
    follower = Follower("*.gz")
    assert follower.later() == ["1", "2"]
    assert follower.later() == []
    again = Follower("*.gz", position=follower.spout.position())
    assert again.later() == []


def test_a_bad_line_is_named():
    add("a.log", b"1\n\xff\n")
    follower = Follower()
    follower.now += 2
    assert follower.spout.read(10) == [("a.log", "1")]
    with pytest.raises(SourceError, match=r"a\.log, line 2: byte 2 cannot be decoded"):
        follower.spout.read(10)


def test_parts_follow_each_file_once():
    for index in range(10):
        add(f"{index}.log", f"{index}\n")
    found = [Follower(part=part, parts=3).later() for part in range(3)]
    assert sorted(line for lines in found for line in lines) == [str(i) for i in range(10)]
    assert all(found)


def test_close_closes_all_files():
    add("a.log", "1\n")
    follower = Follower()
    follower.later()
    raws = [chain[0].lines._raw for chain in follower.spout._reader._chains.values()]
    follower.spout.close()
    assert [raw.closed for raw in raws] == [True]


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_appears_and_is_no_file_is_passed_over(kind):
    add("a.log", "1\n")
    follower = Follower()
    assert follower.later() == ["1"]
    if kind == "pipe":
        os.mkfifo("b.log")
    else:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("b.log")
    add("c.log", "2\n")
    assert follower.later() == ["2"]
