"""Small files that are read together give what they give one by one, and may be gone on with behind each line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from esault.errors import SourceError
from esault.sources import file_sequence, small_files
from esault.sources.file_sequence import FileSequence
from esault.sources.line_file import LineFile
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally
from esault.sources.small_files import read_small
from esault.sources.text_files import TextFiles
from esault.topology.context import Context
from esault.topology.spout import EndOfStream

PIECES = [
    b"a",
    b"line\n",
    b"\n",
    b"\r\n",
    b"\r",
    "\u00e9\n".encode(),
    b"\xff",
    b"\0",
    b"\xef\xbb\xbf",
    b"longer than most\n" * 3,
    b"\xc3",
]
CONTENTS = st.lists(
    st.lists(st.sampled_from(PIECES[:6]), max_size=6) | st.lists(st.sampled_from(PIECES), max_size=6), min_size=1
)
FORMS = st.builds(
    LineFormat,
    st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "ascii", "gbk"]),
    st.sampled_from(["strict", "replace", "ignore", "skip"]),
)


@pytest.fixture
def few(monkeypatch):
    """Begin anew soon, so that files of a few bytes come in several groups, beside larger ones."""
    monkeypatch.setattr(small_files, "SMALL", 40)
    monkeypatch.setattr(small_files, "MOST", 5)
    monkeypatch.setattr(file_sequence, "ALONE", 2)


def written(folder, contents):
    for old in folder.glob("*"):
        old.unlink()
    names = []
    for i, content in enumerate(contents):
        path = folder / f"{i:03}.txt"
        path.write_bytes(b"".join(content))
        names.append(str(path))
    return {name: Path(name).stat().st_size for name in names}


def sequence(sizes, form, together, position=None):
    made = FileSequence(
        list(sizes), sizes, lambda name, at: LineFile(name, form, LineTally(), at), form if together else None
    )
    if position is not None:
        made.seek(position)
    return made


def step(reader, limit):
    """Rows of one look, or why there are none."""
    try:
        found = reader.take_small(limit)
        if found is not None:
            return list(zip(*found))
        lines = reader.take(limit)
        return [(reader.last.name, line) for line in lines]
    except EndOfStream:
        return "end"
    except SourceError as error:
        return str(error)


def rest(reader, limits):
    rows, positions = [], []
    for i in range(10_000):
        found = step(reader, limits[i % len(limits)])
        if isinstance(found, str):
            return rows, found, positions
        rows += found
        positions.append((len(rows), reader.position()))
        done, size = reader.progress()
        assert 0 <= done <= size
    raise AssertionError("it does not end")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(contents=CONTENTS, form=FORMS, limits=st.lists(st.integers(1, 9), min_size=1, max_size=3))
@example(contents=[[b"\r", b"\xff"]], form=LineFormat(errors="ignore"), limits=[1])
def test_together_and_one_by_one_are_the_same_and_go_on_behind_each_read(tmp_path, few, contents, form, limits):
    sizes = written(tmp_path, contents)
    wanted, told, _ = rest(sequence(sizes, form, together=False), [5])
    reader = sequence(sizes, form, together=True)
    rows, end, positions = rest(reader, limits)
    reader.close()
    assert (rows, end) == (wanted, told)
    for count, position in positions:
        for together in (True, False):
            again = sequence(sizes, form, together, position)
            assert rest(again, limits)[:2] == (wanted[count:], told)
            again.close()


def test_files_are_read_together_and_not_opened_again(tmp_path):
    sizes = written(tmp_path, [[b"one\ntwo\n"], [b""], [b"three"], [b"four\r\n"]])
    reader = sequence(sizes, LineFormat(), together=True)
    names, lines = reader.take_small(3)
    assert lines == ["one", "two", "three"]
    assert names == [list(sizes)[i] for i in (0, 0, 2)]
    for name in sizes:
        Path(name).unlink()
    assert reader.take_small(9) == ([list(sizes)[3]], ["four"])
    assert reader.progress()[0] == reader.progress()[1]
    assert reader.take_small(9) is None
    with pytest.raises(EndOfStream):
        reader.take(9)


@pytest.mark.parametrize("change", ["longer", "shorter", "gone", "packed", "larger"])
def test_what_is_odd_begins_no_group_and_ends_one(tmp_path, change):
    sizes = written(tmp_path, [[b"one\n"], [b"two\n"]])
    first, second = sizes
    if change == "gone":
        Path(second).unlink()
    elif change == "packed":
        Path(second).unlink()
        second = f"{second}.gz"
        Path(second).write_bytes(gzip.compress(b"two\n"))
        sizes = {first: 4, second: Path(second).stat().st_size}
    elif change == "larger":
        Path(second).write_bytes(b"two\n" * 10_000)
        sizes[second] = 40_000
    else:
        Path(second).write_bytes(b"two\nmore\n" if change == "longer" else b"two")
    found = read_small(list(sizes), list(sizes.values()), 0, LineFormat())
    assert (found.count, found.lines) == (1, ["one"])
    assert read_small(list(sizes), list(sizes.values()), 1, LineFormat()) is None
    rows, told, _ = rest(sequence(sizes, LineFormat(), together=True), [100])
    assert [line for _, line in rows][:2] == (["one"] if change == "gone" else ["one", "two"])
    assert ("no such file" in told) == (change == "gone")


def test_a_batch_of_a_source_has_lines_of_many_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for i in range(300):
        Path(f"{i:03}.txt").write_text("".join(f"{n} of {i}\n" for n in range(i % 7)))
    spout = TextFiles("*.txt")
    spout.check()
    spout.open(Context("lines"))
    wanted = [(f"{i:03}.txt", f"{n} of {i}") for i in range(300) for n in range(i % 7)]
    rows = spout.read(500)
    assert rows == wanted[:500]
    position = spout.position()
    with pytest.raises(EndOfStream):
        while True:
            rows += spout.read(500)
    assert rows == wanted
    spout.close()
    again = TextFiles("*.txt")
    again.check()
    again.open(Context("lines"))
    again.seek(position)
    assert again.read(10_000)[:3] == wanted[500:503]
    again.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    contents=CONTENTS,
    limits=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    refused=st.lists(st.booleans(), min_size=1, max_size=6),
)
def test_what_was_read_together_comes_again_file_by_file_where_it_is_not_taken(
    tmp_path, few, contents, limits, refused
):
    sizes = written(tmp_path, contents)
    form = LineFormat("utf-8", "replace")
    wanted, told, _ = rest(sequence(sizes, form, together=False), [5])
    reader = sequence(sizes, form, together=True)
    rows, looks = [], 0
    while True:
        limit = limits[looks % len(limits)]
        before = len(rows)
        try:
            found = reader.take_small(limit)
            looks += 1
            if found is not None and found[1] and refused[looks % len(refused)]:
                reader.one_by_one()
                again = sequence(sizes, form, False, reader.position())
                assert rest(again, limits)[:2] == (wanted[before:], told)
                again.close()
                found = None
            if found is None:
                found = [], reader.take(limit)
                found = [reader.last.name] * len(found[1]), found[1]
        except EndOfStream:
            break
        except SourceError as error:
            assert str(error) == told
            break
        rows += zip(*found)
    assert rows == wanted
    reader.close()


def test_a_file_of_which_all_was_taken_is_not_opened_again_to_read_the_next_one_by_itself(tmp_path):
    sizes = written(tmp_path, [[b"one\n"], [b"two\n"]])
    reader = sequence(sizes, LineFormat(), together=True)
    assert reader.take_small(1)[1] == ["one"]
    Path(next(iter(sizes))).unlink()
    assert reader.take_small(1)[1] == ["two"]
    reader.one_by_one()
    assert reader.take_small(1) is None
    assert reader.take(5) == ["two"]
    reader.close()
