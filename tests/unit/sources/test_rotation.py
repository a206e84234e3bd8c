"""Logs that are rotated while they are followed, and while nobody follows them: each line comes once, in its order."""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import tempfile
from glob import glob
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from esault.sources.rotation import Mark, successors
from esault.sources.text_files import TextFiles
from esault.topology.context import Context


class Log:
    """A log, its writer and what rotates it. Each change is a second later, by the files' own times."""

    def __init__(self, name="a.log", packing=False):
        self.name, self.packing, self.count, self.tick = name, packing, 0, 1_000_000
        self.write(3)

    def touch(self, *names):
        self.tick += 1
        for name in names:
            os.utime(name, (self.tick, self.tick))

    def write(self, lines, name=None):
        with open(name or self.name, "a") as file:
            for _ in range(lines):
                file.write(f"line {self.count}\n")
                self.count += 1
        self.touch(name or self.name)

    def shift(self):
        """`a.log.1` becomes `a.log.2`, and so on; all but the newest are compressed where that is asked for."""
        for number in range(30, 0, -1):
            for suffix in ("", ".gz"):
                before = f"{self.name}.{number}{suffix}"
                if os.path.exists(before):
                    os.rename(before, f"{self.name}.{number + 1}{suffix}")
        if self.packing and os.path.exists(f"{self.name}.2"):
            self.pack(f"{self.name}.2")

    def pack(self, name):
        status = os.stat(name)
        Path(f"{name}.gz").write_bytes(gzip.compress(Path(name).read_bytes()))
        os.utime(f"{name}.gz", ns=(status.st_mtime_ns, status.st_mtime_ns))  # as gzip does
        os.unlink(name)

    def rename(self):
        self.shift()
        os.rename(self.name, f"{self.name}.1")
        Path(self.name).touch()
        self.touch(self.name)

    def copy_and_truncate(self):
        self.shift()
        shutil.copyfile(self.name, f"{self.name}.1")
        os.truncate(self.name, 0)
        self.touch(f"{self.name}.1", self.name)


class Run:
    """Follows the log from a position on, by a clock of its own."""

    def __init__(self, position=None, path="a.log"):
        self.now = 1000.0
        self.spout = TextFiles(path, follow=True)
        context = Context("lines", now=lambda: self.now, logger=logging.getLogger("test.rotation"))
        self.spout.open(context)
        if position is not None:
            self.spout.seek(position)

    def some(self, limit=2, seconds=0.2):
        self.now += seconds
        return [line for _, line in self.spout.read(limit)]

    def all(self):
        found = []
        for _ in range(12):
            found += self.some(1000, 1.0)
        return found


#: what happens: lines are written, the log is rotated, some are read, a checkpoint is cut, or the process dies and another goes on
ACTS = st.lists(
    st.sampled_from(["write", "write", "rename", "copy", "pack", "read", "read", "look", "cut", "die", "linger"]),
    max_size=40,
)


@settings(max_examples=120, deadline=None)
@given(acts=ACTS, packing=st.booleans())
@example(acts=["read", "cut", "write", "rename", "write", "rename", "write", "die"], packing=True)
@example(acts=["read", "cut", "write", "copy", "write", "copy", "write", "die", "copy", "write"], packing=True)
@example(acts=["look", "cut", "write", "rename", "pack", "die", "cut", "rename", "write", "die"], packing=False)
@example(acts=["look", "write", "copy", "write", "write", "write", "look", "cut", "die"], packing=False)
@example(
    acts=["look", "write", "rename", "write", "pack", "look", "rename", "write", "pack", "cut", "die"], packing=False
)
@example(acts=["cut", "die", "cut", "write", "rename", "die"], packing=False)
def test_whatever_is_rotated_and_whoever_dies_each_line_comes_once_in_its_order(acts, packing):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.log")
        log, run = Log(path, packing), Run(path=path)
        seen, kept = [], (run.spout.position(), 0)
        for act in [*acts, "die"]:
            if act == "write":
                log.write(2)
            elif act == "rename":
                log.rename()
            elif act == "copy":
                log.copy_and_truncate()
            elif act == "pack":
                if os.path.exists(f"{path}.1"):
                    log.pack(f"{path}.1")
            elif act == "read":
                seen += run.some()
            elif act == "look":
                seen += run.some(1000)
            elif act == "linger":
                run.now += 6
                seen += run.some(0)
            elif act == "cut":
                kept = (run.spout.position(), len(seen))
            else:
                run.spout.close()
                position, count = kept
                del seen[count:]
                run = Run(position, path)
        seen += run.all()
        run.spout.close()
        assert seen == [f"line {i}" for i in range(log.count)]


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = []

    def run(*arguments, **named):
        runs.append(Run(*arguments, **named))
        return runs[-1]

    yield run
    for each in runs:
        each.spout.close()


def numbers(lines):
    return [int(line.removeprefix("line ")) for line in lines]


@pytest.mark.parametrize(
    "away",
    ["a.log.1", "a.log-20260131", "a.log.2026-01-31_10", "a-2026-01-31.log", "a.log.old", "a_1.log", "old/a.log.1"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_what_was_put_away_is_found_by_the_names_that_are_in_use(inside, away, packed):
    log = Log()
    run = inside()
    run.some()
    position = run.spout.position()
    Path("old").mkdir()
    os.rename("a.log", away)
    if packed:
        log.pack(away)
    log.write(2)
    assert numbers(inside(position).all()) == [2, 3, 4]


def test_rows_of_what_was_put_away_keep_the_name_that_they_had(inside):
    log = Log()
    run = inside()
    run.some()
    position = run.spout.position()
    log.rename()
    again = inside(position)
    again.now += 1
    assert again.spout.read(10) == [("a.log", "line 2")]


def test_another_log_beside_it_is_no_rotated_one(inside):
    log = Log()
    run = inside()
    run.some()
    position = run.spout.position()
    log.rename()
    for name in ("a-errors.log", "a.logs", "a.log2", "b.log.1", "a.log.txt"):
        log.write(2, name)
    assert numbers(inside(position).all()) == [2]


def test_where_rotated_ones_fit_what_is_followed_they_are_not_read_again(inside):
    log = Log("logs.d")
    os.mkdir("logs")
    log.name = "logs/a.log"
    log.write(3)
    run = inside(path="logs")
    seen = run.some(1000)
    for _ in range(3):
        log.rename()
        log.write(2)
        seen += run.all()
        log.pack("logs/a.log.1")
        seen += run.all()
    assert numbers(seen) == list(range(3, log.count))
    again = inside(run.spout.position(), path="logs")
    assert again.all() == []


def test_one_that_is_compressed_as_soon_as_it_was_renamed_is_not_read_again(inside):
    log, run, seen = _in_a_folder(inside)
    log.rename()
    seen += run.some(1000, 1.0)
    log.pack("logs/a.log.1")  # as logrotate does without delaycompress, while its writer may still add to it
    log.write(2)
    seen += run.all()
    assert numbers(seen) == list(range(log.count))
    assert inside(run.spout.position(), path="logs").all() == []


def test_one_that_is_being_compressed_is_left_alone(inside):
    log, run, seen = _in_a_folder(inside)
    log.rename()
    seen += run.all()
    whole = gzip.compress(Path("logs/a.log.1").read_bytes())
    Path("logs/a.log.1.gz").write_bytes(whole[: len(whole) // 2])
    seen += run.all()
    os.unlink("logs/a.log.1.gz")
    log.pack("logs/a.log.1")
    log.write(2)
    seen += run.all()
    assert numbers(seen) == list(range(log.count))


@pytest.mark.parametrize("copied", [0, 1])
def test_one_that_is_being_copied_is_not_read_beside_it(inside, copied):
    log, run, seen = _in_a_folder(inside)
    whole = Path("logs/a.log").read_bytes()
    Path("logs/a.log.1").write_bytes(whole * copied)
    seen += run.all()  # it looks for files before the log is cut short
    Path("logs/a.log.1").write_bytes(whole)
    os.truncate("logs/a.log", 0)
    log.touch("logs/a.log.1", "logs/a.log")
    seen += run.some(1000, 1.0)
    log.write(2)
    seen += run.all()
    assert numbers(seen) == list(range(log.count))


def test_a_log_that_begins_as_another_does_is_read_where_it_is_no_copy_of_it(inside):
    _, run, _ = _in_a_folder(inside)
    with open("logs/a.log", "a") as file:
        file.write("a banner\n" * 200)  # longer than what a file is known by
    run.all()
    whole = Path("logs/a.log").read_text()
    for name, content in [
        ("logs/b.log", whole),
        ("logs/a-1.log", whole[:-200] + "line 7\n"),
        ("logs/a-2.log", whole + "line 8\n"),
    ]:
        Path(name).write_text(content)
        assert len(run.all()) == content.count("\n")
    Path("logs/a-3.log").write_text(whole)
    assert run.all() == []
    with open("logs/a-3.log", "a") as file:
        file.write("line 9\n")
    assert len(run.all()) == whole.count("\n") + 1, "it was a copy of the other, until it grew beyond it"
    Path("logs/a.log.1").write_text(whole)
    assert len(inside(path="logs").all()) == sum(Path(each).read_text().count("\n") for each in glob("logs/*"))


def _in_a_folder(inside):
    os.mkdir("logs")
    log = Log("logs/a.log")
    run = inside(path="logs")
    return log, run, run.some(1000)


def test_a_file_of_another_with_an_inode_that_was_given_away_anew_is_not_taken_for_it(inside):
    log = Log()
    run = inside()
    run.some(1000)
    position = run.spout.position()
    run.spout.close()
    name, offset, mark = position[0]
    os.unlink("a.log")
    Path("a.log").write_text("another 1\nanother 2\nanother 3\nanother 4\n")
    log.touch("a.log")
    position = ((name, offset, (mark[0], os.stat("a.log").st_ino, *mark[2:])),)
    assert inside(position).all() == [f"another {i}" for i in range(1, 5)]


def test_a_file_cut_short_that_has_grown_past_what_was_read_is_noticed(inside):
    run = (Log(), inside())[1]
    run.some(1000)
    with open("a.log", "r+") as file:
        file.truncate(0)
        file.write("".join(f"again {i}\n" for i in range(10)))
    assert run.all() == [f"again {i}" for i in range(10)]


def test_a_position_of_before_goes_on_by_its_inode(inside):
    log = Log()
    inode = os.stat("a.log").st_ino
    log.write(2)
    assert numbers(inside((("a.log", 14, inode),)).all()) == [2, 3, 4]
    log.rename()
    log.write(1)
    assert numbers(inside((("a.log", 14, inode),)).all()) == [2, 3, 4, 5]


def test_a_compressed_file_that_is_damaged_is_none_that_is_looked_for(inside):
    log = Log()
    run = inside()
    run.some()
    position = run.spout.position()
    os.unlink("a.log")
    Path("a.log.1.gz").write_bytes(gzip.compress(b"line 0\nline 1\nline 2\n")[:-9])
    log.write(1)
    assert numbers(inside(position).all()) == [3]


def test_one_that_was_put_away_damaged_before_a_look_is_told_of(inside, caplog):
    log = Log()
    run = inside()
    run.some(1000)
    packed = gzip.compress(b"line 3\nline 4\n")[:-9]
    os.unlink("a.log")
    Path("a.log.1.gz").write_bytes(packed)
    log.count = 5
    log.write(1)
    log.touch("a.log.1.gz")
    log.touch("a.log")
    assert numbers(run.all()) == [5]
    assert any("a.log.1.gz is damaged, and what was in it is lost" in text for text in caplog.messages)


def test_a_folder_and_files_that_cannot_be_looked_at_hold_nothing(inside):
    log = Log()
    run = inside()
    run.some()
    position = run.spout.position()
    os.symlink("nowhere", "broken.log.1")
    os.mkdir("old")
    log.rename()
    assert numbers(inside(position).all()) == [2]


def test_names_that_come_and_go_are_not_kept_for_ever(inside):
    run = inside(path="*.log")
    for number in range(130):
        name = f"{number}.log"
        Path(name).write_text(f"{number}\n")
        assert run.some(10, 2.0) == [f"{number}"]
        os.unlink(name)
        run.some(10, 0.2)
        run.some(10, 6.0)
    assert len(run.spout.position()) <= 101


def test_ids_follow_from_where_rows_stand_and_no_two_rows_share_one(inside):
    """Files come in another order behind a position; a file cut short begins anew with the same inode."""
    logs = [Log(f"{name}.log") for name in "abc"]
    for number, log in enumerate(logs):
        log.write(4 + 3 * number)

    def read(run, limit, reads):
        for _ in range(reads):
            run.now += 0.3
            rows = run.spout.read(limit)
            ids = run.spout.row_ids() if rows else []
            assert len(ids) == len(rows)
            yield from zip(ids, rows)

    run = inside(path="?.log")
    seen = dict(read(run, 2, 2))
    position = run.spout.position()
    first = list(read(run, 3, 20))
    logs[0].copy_and_truncate()
    logs[0].write(9)
    logs[1].rename()
    logs[1].write(4)
    first += read(run, 3, 20)
    again = list(read(inside(position, path="?.log"), 1, 60))
    assert len(again) == len(first)
    for name, row in [*first, *again]:
        assert seen.setdefault(name, row) == row
    both = dict(first).keys() & dict(again).keys()
    assert len(both) >= len(first) // 2


def aged(names, name="a.log", **times):
    """Files that were put away, with one time of the last write for all but those that are said."""
    for each in names:
        Path(each).write_text(f"content of {each}\n")
        os.utime(each, ns=(1, times.get(each, 10**18)))
    return successors(os.path.abspath(name), Mark(0, 0, 0, 0, 0, 10**18 - 1), (), (), ())


@pytest.mark.parametrize(
    "oldest_first",
    [
        ["a.log.10", "a.log.9", "a.log.2", "a.log.1"],
        ["a.log-20260130", "a.log-20260131", "a.log-20260201"],
        ["a-2026-01-09.log", "a-2026-01-10.log", "a-2026-11-01.log"],
        ["a.log.3.gz", "a.log.2.gz", "a.log.1"],
    ],
)
def test_of_those_that_were_written_at_the_same_time_names_tell_which_is_older(tmp_path, monkeypatch, oldest_first):
    monkeypatch.chdir(tmp_path)
    found = aged(sorted(oldest_first))
    assert [os.path.basename(path) for path in found] == oldest_first


def test_times_of_the_last_write_come_before_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = aged(["a.log.1", "a.log.2"], **{"a.log.2": 10**18 + 5})
    assert [os.path.basename(path) for path in found] == ["a.log.1", "a.log.2"]
