from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from esault.errors import SourceError, TopologyError
from esault.sources import file_list
from esault.sources.text_files import TextFiles
from esault.topology.context import Context
from esault.topology.spout import EndOfStream

SPOUTS = []


@pytest.fixture(autouse=True)
def inside_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    while SPOUTS:
        SPOUTS.pop().close()


def write(**files):
    for name, content in files.items():
        Path(f"{name}.txt").write_bytes(content.encode() if isinstance(content, str) else content)


def opened(path="*.txt", *, part=0, parts=1, run_dir=None, position=None, **arguments):
    spout = TextFiles(path, **arguments)
    spout.check()
    SPOUTS.append(spout)
    spout.open(Context("lines", part=part, parts=parts, run_dir=run_dir))
    if position is not None:
        spout.seek(position)
    return spout


def rest(spout, limit=1000):
    rows = []
    while True:
        try:
            rows += spout.read(limit)
        except EndOfStream:
            return rows


def test_each_line_comes_with_the_name_of_its_file():
    write(b="3\n4", a="1\r\n\n2\n", c="")
    assert rest(opened()) == [("a.txt", "1"), ("a.txt", ""), ("a.txt", "2"), ("b.txt", "3"), ("b.txt", "4")]


def test_nothing_is_opened_before_open_and_a_missing_file_is_found_by_check():
    spout = TextFiles("nowhere/*.txt")
    with pytest.raises(SourceError, match=r"nowhere/\*\.txt: no file fits this glob"):
        spout.check()
    with pytest.raises(SourceError, match="TextFiles: read before open"):
        spout.read(1)


def test_a_wrong_argument_names_the_source():
    with pytest.raises(TopologyError, match="TextFiles: errors='x': write"):
        TextFiles("a.txt", errors="x")
    with pytest.raises(TopologyError, match=r"TextFiles: path=\[\]: an empty list names no file"):
        TextFiles([])


def test_empty_files_end_at_once_and_go_on_ending():
    write(a="", b="")
    spout = opened()
    for _ in range(3):
        with pytest.raises(EndOfStream):
            spout.read(10)
    assert rest(opened(position=spout.position())) == []


def test_a_file_that_says_no_size_is_read_to_its_end(monkeypatch):
    write(a="1\n2\n3\n4\n")
    read = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: read(fd, min(size, 3)))  # as those of /proc have it
    monkeypatch.setattr(file_list, "_checked_size", lambda name: 0)
    assert rest(opened()) == [("a.txt", n) for n in "1234"]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_columns_are_the_rows_of_read(limit):
    write(a="1\n2\n", b="", c="3\n4\n5")
    columns, rows = opened(), opened()
    seen = 0
    while seen < 5:
        expected, found = rows.read(limit), columns.read_columns(limit)
        assert list(zip(found.keys, found.values)) == expected
        assert columns.position() == rows.position()
        seen += len(expected)
    with pytest.raises(EndOfStream):
        columns.read_columns(limit)


def test_what_check_has_found_is_not_looked_for_again_by_the_open_that_follows():
    write(a="1\n")
    spout = TextFiles("*.txt")
    spout.check()
    write(b="2\n")
    spout.open(Context("lines"))
    assert rest(spout) == [("a.txt", "1")]
    spout.close()
    spout.open(Context("lines"))
    assert rest(spout) == [("a.txt", "1"), ("b.txt", "2")]
    spout.close()


def test_a_folder_that_the_host_of_the_reader_does_not_have_is_told_where_it_is_followed():
    """The command has checked its own."""
    with pytest.raises(SourceError, match="the folder logs does not exist"):
        TextFiles("logs/*.txt", follow=True).open(Context("lines"))
    Path("logs").mkdir()
    spout = TextFiles("logs/*.txt", follow=True)
    spout.open(Context("lines"))  # files may come
    spout.close()


def test_compressed_files_are_unpacked():
    for name in "ab":
        with gzip.open(f"{name}.txt.gz", "wt") as file:
            file.write("one\ntwo\n")
    spout = opened("*.gz")
    assert spout.read(3) == [("a.txt.gz", "one"), ("a.txt.gz", "two"), ("b.txt.gz", "one")]
    again = opened("*.gz", position=spout.position())
    assert rest(again) == rest(spout) == [("b.txt.gz", "two")]
    done, total = spout.progress()
    assert done == total == sum(os.path.getsize(f"{name}.txt.gz") for name in "ab")


def test_a_broken_compressed_file_is_named_with_the_remedy():
    Path("a.gz").write_bytes(b"plain text\n")
    with pytest.raises(SourceError, match=r"a\.gz: is no readable gzip file .*; check it with gzip -t, or rename it"):
        rest(opened("a.gz"))
    Path("b.gz").write_bytes(gzip.compress(os.urandom(100_000))[:50_000])
    with pytest.raises(SourceError, match=r"b\.gz: the gzip file ends in the middle; copy it again"):
        rest(opened("b.gz", errors="replace"))


def test_a_line_of_ten_megabytes_is_one_row():
    write(a="x" * 10_000_000 + "\nshort\n")
    assert [len(line) for _, line in rest(opened())] == [10_000_000, 5]


def test_long_lines_make_small_batches():
    write(a=("x" * 100_000 + "\n") * 50)
    spout = opened()
    sizes = []
    while True:
        try:
            sizes.append(sum(len(line) for _, line in spout.read(1000)))
        except EndOfStream:
            break
    assert sum(sizes) == 5_000_000
    assert max(sizes) < 1_100_000


def test_a_file_that_vanished_stops_behind_the_lines_before_it():
    write(a="1\n2\n", b="3\n", c="4\n")
    spout = opened()
    Path("b.txt").unlink()
    assert spout.read(10) == [("a.txt", "1"), ("a.txt", "2")]
    position = spout.position()
    for _ in range(2):
        with pytest.raises(SourceError, match=r"b\.txt"):
            spout.read(10)
        assert spout.position() == position
    write(b="3\n")
    assert rest(opened(position=position)) == [("b.txt", "3"), ("c.txt", "4")]
    spout.seek(position)
    assert spout.read(10) == [("b.txt", "3"), ("c.txt", "4")]


def test_small_files_share_a_batch_and_large_ones_do_not():
    write(**{f"f{i:02}": f"{i}\n" * 10 for i in range(30)}, g="x" * 40_000 + "\n", h="1\n", i="2\n")
    spout, sizes = opened(), []
    while True:
        try:
            sizes.append([name for name, _ in spout.read(256)])
        except EndOfStream:
            break
    assert [len(names) for names in sizes] == [256, 45, 2]  # a full one is what makes the next ones larger
    names = [name for read in sizes for name in read]
    assert names == sorted(names)
    assert sizes[1][-1] == "g.txt"


def test_a_line_without_end_does_not_keep_the_caller():
    write(a="x" * 40_000_000)
    spout = opened(max_line=1000, on_long_line="truncate")
    assert spout.read(1) == []
    assert [line for _, line in rest(spout)] == ["x" * 1000]
    assert spout.counters()["long_lines_truncated"] == 1


def test_a_line_that_is_no_text_is_named_by_file_and_number_after_the_good_ones_came():
    write(a="1\n2\n", b=b"3\n\xff\n5\n")
    spout = opened()
    assert spout.read(10) == [("a.txt", "1"), ("a.txt", "2"), ("b.txt", "3")]
    position = spout.position()
    for _ in range(2):
        with pytest.raises(SourceError, match=r"b\.txt, line 2: byte 2 cannot be decoded as utf-8"):
            spout.read(10)
    assert spout.position() == position
    # once the file has been corrected, nothing is missing
    write(b="3\n4\n5\n")
    assert rest(opened(position=position)) == [("b.txt", "4"), ("b.txt", "5")]


def test_a_binary_file_is_not_taken_for_text():
    write(a=b"\x7fELF\0\0\0\n")
    with pytest.raises(SourceError, match=r"a\.txt, line 1: a NUL byte at byte 4, which text does not hold"):
        rest(opened())


def test_counters_say_what_was_left_out():
    write(a=b"1\n\xff\n" + b"x" * 50 + b"\n2\n")
    spout = opened(errors="skip", max_line=20, on_long_line="skip")
    assert [line for _, line in rest(spout)] == ["1", "2"]
    assert spout.counters() == {
        "undecodable_lines_skipped": 1,
        "long_lines_skipped": 1,
        "long_lines_truncated": 0,
        "bad_lines_skipped": 0,
    }


def test_progress_counts_bytes_over_all_files():
    write(a="1\n2\n", b="3\n4\n5\n")
    spout = opened()
    assert spout.progress() == (0, 10)
    spout.read(1)
    assert spout.progress() == (2, 10)
    spout.read(1)
    spout.read(1)
    assert spout.progress() == (6, 10)
    rest(spout)
    assert spout.progress() == (10, 10)


def test_parts_read_each_file_once():
    write(a="1\n" * 10, b="2\n", c="3\n", d="4\n" * 5)
    found = [rest(opened(part=part, parts=3)) for part in range(3)]
    assert sorted(row for rows in found for row in rows) == sorted(rest(opened()))
    assert {name for name, _ in found[0]} == {"a.txt"}
    assert {name for name, _ in found[1]} == {"d.txt"}


def test_a_part_without_a_file_ends_at_once_and_has_a_position():
    write(a="1\n")
    spout = opened(part=1, parts=2)
    with pytest.raises(EndOfStream):
        spout.read(1)
    again = opened(part=1, parts=2)
    again.seek(spout.position())
    with pytest.raises(EndOfStream):
        again.read(1)


def test_parts_agree_on_the_files_even_while_files_come_and_grow(tmp_path):
    write(a="1\n2\n", b="3\n")
    run_dir = str(tmp_path / "run")
    first = opened(part=0, parts=2, run_dir=run_dir)
    write(b="3\n" * 100, aa="new\n")
    second = opened(part=1, parts=2, run_dir=run_dir)
    assert {name for name, _ in rest(first)} == {"a.txt"}
    assert {name for name, _ in rest(second)} == {"b.txt"}
    assert json.loads((tmp_path / "run/sources/lines.json").read_text()) == {"a.txt": 4, "b.txt": 2}


def position_in_b():
    write(a="1\n", b="2\n3\n", c="4\n")
    spout = opened()
    spout.read(1)
    spout.read(1)
    return spout.position()


def test_a_position_whose_file_is_gone_is_refused():
    position = position_in_b()
    os.unlink("b.txt")
    with pytest.raises(
        SourceError, match=r"b\.txt: an earlier run stopped in this file, and it is gone; put it back, or"
    ):
        opened(position=position)


def test_a_position_is_refused_where_a_file_would_be_left_out():
    position = position_in_b()
    write(aa="new\n")
    with pytest.raises(
        SourceError, match=r"b\.txt: the files before this one are not those that an earlier run has read"
    ):
        opened(position=position)


def test_a_position_is_refused_where_another_part_has_its_file():
    position = position_in_b()
    with pytest.raises(SourceError, match=r"b\.txt: an earlier run stopped in this file, and now another reader would"):
        opened(position=position, part=1, parts=2)
    with pytest.raises(SourceError, match=r"a\.txt: an earlier run had no file for this reader"):
        opened().seek(None)


def test_a_position_behind_the_end_of_its_file_is_refused():
    position = position_in_b()
    write(b="2")
    with pytest.raises(
        SourceError, match=r"b\.txt: is shorter than what an earlier run has read of it \(up to byte 2\)"
    ):
        rest(opened(position=position))


def test_new_files_behind_the_position_are_read():
    position = position_in_b()
    write(d="5\n")
    assert [line for _, line in rest(opened(position=position))] == ["3", "4", "5"]


def test_a_file_that_vanishes_before_its_turn_is_named():
    write(a="1\n", b="2\n")
    spout = opened()
    os.unlink("b.txt")
    with pytest.raises(SourceError, match=r"b\.txt: there is no such file; put it back, or name another"):
        rest(spout)


def test_close_closes_the_file():
    write(a="1\n2\n" * 10_000)  # a small one is closed at once
    spout = opened()
    spout.read(1)
    raw = spout._reader._file._raw
    spout.close()
    assert raw.closed
    TextFiles("a.txt").close()


def test_a_folder_can_be_read_and_is_the_start_of_the_names():
    Path("texts").mkdir()
    write(a="1\n")
    shutil.move("a.txt", "texts/a.txt")
    assert rest(opened("texts")) == [("texts/a.txt", "1")]
