"""CSV as a sink: what lines there are, what the first one says, and what is refused."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Topology, run
from esault.errors import SinkError, TopologyError
from esault.sinks import Collect, CsvFile
from esault.sources import CsvFiles, Items
from esault.testing import LocalRuntime
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo

RUN = RunInfo("run-1", "t", "sink")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "out" / "x.csv")


def landed(path, pairs, columns=("word", "total"), ok=True, **options):
    """Have one sub-unit write and commit; return the text of the file."""
    driver = CsvFile(path, columns, **options)
    driver.check()
    driver.begin(RUN)
    sink = CsvFile(path, columns, **options)
    sink.open(Context("sink", sub_unit=0, run="run-1"))
    sink.write([Row(key, value, 5.0) for key, value in pairs])
    sink.commit(0, sink.prepare(0))
    sink.close()
    driver.end(ok)
    with open(path, newline="") as file:
        return file.read()


def test_the_first_line_names_the_columns_and_each_row_is_a_line(path):
    assert landed(path, [("a", 1), ("b", 2.5), (None, None)]) == "word,total\na,1\nb,2.5\n,\n"


def test_values_fill_the_columns_as_in_a_table(path):
    @dataclass
    class Total:
        n: int
        ok: bool

    pairs = [("a", (1, True)), ("b", {"ok": False, "n": 2}), ("c", Total(3, True)), ("d", {"n": 4})]
    assert landed(path, pairs, ("word", "n", "ok")) == "word,n,ok\na,1,True\nb,2,False\nc,3,True\nd,4,\n"
    of_two = landed(path, [(("a", 1), 2), (("b", 3), None)], ("word", "day", "n"), mode="replace")
    assert of_two == "word,day,n\na,1,2\nb,3,\n"


def test_what_is_no_text_and_no_number_has_a_form(path):
    class Colour(Enum):
        RED = "red"

    at = datetime(2026, 11, 30, 12, 0, tzinfo=timezone.utc)
    values = [at, Decimal("1.50"), Colour.RED, b"ab", [1, "x"], {"a": None}, float("inf")]
    text = landed(path, [(n, {"value": value}) for n, value in enumerate(values)], ("n", "value"))
    assert [row[1] for row in csv.reader(text.splitlines())][1:] == [
        *(at.isoformat(), "1.50", "red", "YWI="),
        *('[1, "x"]', '{"a": null}', "inf"),
    ]


@given(
    st.lists(st.tuples(st.text(), st.one_of(st.text(), st.integers(), st.none())), max_size=5),
    st.sampled_from(",;\t| "),
)
def test_what_is_written_is_what_csv_reads(tmp_path_factory, pairs, delimiter):
    path = str(tmp_path_factory.mktemp("csv") / "x.csv")
    landed(path, pairs, delimiter=delimiter)
    with open(path, newline="") as file:
        found = list(csv.reader(file, delimiter=delimiter))
    assert found == [["word", "total"], *[[key, "" if value is None else str(value)] for key, value in pairs]]


def test_more_is_added_to_a_file_with_the_same_columns_and_to_no_other(path):
    landed(path, [("a", 1)])
    assert landed(path, [("b", 2)], mode="append") == "word,total\na,1\nb,2\n"
    with pytest.raises(SinkError, match=r"its first line is b'word,total', and that of this run would be b'word,sum'"):
        landed(path, [("b", 2)], ("word", "sum"), mode="append")
    assert landed(path, [("c", 3)], ("word", "sum"), mode="replace") == "word,sum\nc,3\n"
    with pytest.raises(SinkError, match="exists already"):
        landed(path, [("c", 3)])


def test_a_file_of_another_program_may_begin_with_a_mark_and_end_lines_its_own_way(path):
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as file:
        file.write(b"\xef\xbb\xbfword,total\r\na,1\r\nb,2")
    assert landed(path, [("c", 3)], mode="append").endswith("word,total\r\na,1\r\nb,2\nc,3\n")


def test_a_run_that_failed_before_its_first_row_leaves_no_file(path):
    driver = CsvFile(path, ["word", "total"])
    driver.begin(RUN)
    assert os.path.exists(path)
    driver.end(False)
    assert not os.path.exists(path)


def test_a_run_that_was_killed_before_its_first_row_keeps_no_other_from_writing(path):
    killed = CsvFile(path, ["other"])
    killed.begin(RUN)
    os.close(killed._place.file._run_lock)  # as the system does
    assert landed(path, [("a", 1)]) == "word,total\na,1\n"


def test_the_line_of_names_can_be_left_out(path):
    assert landed(path, [("a", 1)], header=False) == "a,1\n"
    assert landed(path, [("b", 2)], header=False, mode="append") == "a,1\nb,2\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": "word"}, "columns='word': write the names of the columns, that of the key first"),
        ({"columns": []}, "write the names of the columns"),
        ({"columns": ["a", 1]}, "write the names of the columns"),
        ({"columns": ["a", "b", "a"]}, "two columns are named 'a'"),
        ({"columns": ["a"], "delimiter": ";;"}, "delimiter=';;': write one character"),
        ({"columns": ["a"], "header": "yes"}, "header='yes': write True"),
        ({"columns": ["a"], "mode": "w"}, "CsvFile: mode='w': write \"error\""),
        ({"columns": ["a"], "path": 5}, 'CsvFile: path=5: write the name of a file, such as "out/rows.csv"'),
    ],
)
def test_a_mistake_is_told_where_it_is_made(options, said):
    with pytest.raises(TopologyError) as refused:
        CsvFile(**{"path": "x.csv", **options})
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (("a", (1, 2)), r"CsvFile .*x\.csv: the value of key 'a' must fill 1 columns \(total\), but it is \(1, 2\)"),
        (("a", {"n": 1}), "has 'n', which is no column"),
        (("a", {"total": object}), "column 'total', key 'a': .* cannot be written as JSON"),
        (("a", "\ud800"), "holds half a surrogate pair"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_key(path, pair, said):
    with pytest.raises(SinkError, match=said):
        landed(path, [pair])


def test_what_a_run_lands_another_reads(tmp_path):
    """The way of a stranger: written by one topology, read by the source of the same kind, and by `esault.read`."""
    path = str(tmp_path / "totals.csv")

    def totals() -> Topology:
        t = Topology("totals")
        t.spout("rows", Items([("a", (1, 'x "y", z')), ("b", (2, "line\nbreak"))])).sink(
            "out", CsvFile(path, ("word", "n", "text"))
        )
        return t

    run(totals, engine="local")
    t = Topology("again")
    t.spout("rows", CsvFiles(path, key="word", types={"n": int})).map(lambda row: row, name="again").sink(
        "out", Collect()
    )
    local = LocalRuntime(t)
    local.run_until_drained()
    assert sorted((row.key, row.value) for row in local.landed("out")) == [
        ("a", {"word": "a", "n": 1, "text": 'x "y", z'}),
        ("b", {"word": "b", "n": 2, "text": "line\nbreak"}),
    ]


def test_esault_read_takes_columns_from_the_first_line(path, tmp_path):
    pytest.importorskip("pyarrow")
    import esault

    landed(path, [("a", 1), ("b", None)])
    assert esault.read(path).to_pylist() == [{"word": "a", "total": 1}, {"word": "b", "total": None}]
    other = str(tmp_path / "x.tsv")
    landed(other, [("a", "1,5")], delimiter="\t")
    assert esault.read(other).to_pylist() == [{"word": "a", "total": "1,5"}]
