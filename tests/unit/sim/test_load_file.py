"""Recorded loads from CSV files."""

from __future__ import annotations

import pytest

from esault import UsageError
from esault.sim.load_file import load_file, load_files
from esault.sim.loads import scaled


@pytest.fixture
def written(tmp_path):
    def write(text, name="load.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_lines_between_rows(written):
    load = load_file(written("time,rate\n100,0\n110,100\n130,50\n"))
    assert [load.rate(t) for t in (0, 5, 10, 20, 30, 49.9, 50)] == [0, 50, 100, 75, 50, 50, 0]
    assert (load.seconds, load.peak) == (50, 100)  # the last rate holds for 20 s, as the one before it


def test_steps(written):
    load = load_file(written("0,10\n10,20\n15,5"), shape="steps")
    assert [load.rate(t) for t in (0, 9.9, 10, 14.9, 15, 19.9, 20)] == [10, 10, 20, 20, 5, 5, 10]


def test_dates_and_counts(written):
    text = "timestamp,value\n2014-07-01 00:00:00,1800\n2014-07-01 00:30:00,3600\n2014-07-01T01:00:00Z,0\n"
    load = load_file(written(text), per=1800)
    assert [load.rate(t) for t in (0, 900, 1800, 3600)] == [1.0, 1.5, 2.0, 0.0]
    assert load.seconds == 5400


def test_dates_across_a_change_of_clocks_are_equally_far_apart(written):
    load = load_file(written("2014-03-30T00:00:00,1\n2014-03-30T12:00:00,2\n2014-03-31T00:00:00,3\n"))
    assert load.seconds == 3 * 12 * 3600
    assert load.rate(12 * 3600) == 2


def test_offsets_count(written):
    load = load_file(written("2014-03-30T00:00:00+01:00,1\n2014-03-30T00:00:00+00:00,2\n"))
    assert load.seconds == 7200


def test_an_empty_line_and_a_mark_at_the_start_do_no_harm(written):
    assert load_file(written("\ufefftime,rate\n0,1\n\n10,3\n")).rate(5) == 2


def test_it_can_be_fitted(written):
    load = scaled(load_file(written("0,10\n10,20\n")), peak=200, duration=40)
    assert load.rate(10) == 150


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0,1\n5,2\n3,1\n", "load.csv:3: the time '3' is not after the one before it"),
        ("0,1\n0,2\n", "load.csv:2: the time '0' is not after"),
        ("t,r\n0,1\n5,-2\n", "load.csv:3: the rate '-2' must be a number, 0 or more"),
        ("0,1\n5,much\n", "load.csv:2: the rate 'much'"),
        ("0,1\n5,nan\n", "load.csv:2: the rate 'nan'"),
        ("0,1\n5,inf\n", "load.csv:2: the rate 'inf'"),
        ("0,1\ninf,1\n", "load.csv:2: the time 'inf' must be finite"),
        ("0,1\nnoon,1\n", "load.csv:2: the time 'noon' is neither seconds nor a date like 2014-07-01 00:30:00"),
        ("0,1\n2014-07-01,1\n", "load.csv:2: the time '2014-07-01': either all times are seconds or all are dates"),
        ("0,1,2\n", "load.csv:1: 3 columns; there must be two"),
        ("0;1\n", "load.csv:1: 1 columns"),
        ("time,rate\n", "load.csv: 0 rows are no load"),
        ("0,1\n", "load.csv: 1 rows are no load: two are needed"),
        ("", "load.csv: 0 rows"),
    ],
)
def test_bad_files_are_refused_with_file_and_line(written, text, says):
    with pytest.raises(UsageError) as caught:
        load_file(written(text))
    assert says in str(caught.value)


def test_what_is_no_file_or_no_text(tmp_path):
    with pytest.raises(UsageError, match="cannot be read as CSV"):
        load_file(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe0,1\n")
    with pytest.raises(UsageError, match="cannot be read as CSV"):
        load_file(tmp_path / "b.csv")


def test_parameters_are_checked(written):
    path = written("0,1\n1,2\n")
    with pytest.raises(UsageError, match="shape='curve' must be one of: lines, steps"):
        load_file(path, shape="curve")
    with pytest.raises(UsageError, match="per=0 must be"):
        load_file(path, per=0)


def test_a_directory(written, tmp_path):
    written("0,1\n1,2\n", "b.csv")
    written("0,1\n1,4\n", "a.csv")
    written("no load", "README.md")
    loads = load_files(tmp_path)
    assert [(name, load.peak) for name, load in loads.items()] == [("a", 4), ("b", 2)]
    with pytest.raises(UsageError, match="is no directory"):
        load_files(tmp_path / "none")
