"""What sinks have landed, read back; and what is said where there is nothing to read."""

from __future__ import annotations

import json
import sys
from concurrent.futures import Future

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from esault.errors import SinkError, UsageError
from esault.sinks.landing import table_log
from esault.sinks.parquet import Parquet
from esault.sinks.results import read
from esault.sinks.spark_table import SparkTable
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo

ROWS = pa.table({"n": [1, 2]})


def over(outcome):
    """The outcome of a hook, also of one that goes on in the background."""
    return outcome.result(60) if isinstance(outcome, Future) else outcome


def table(path, *epochs, kind=Parquet, **options):
    """A table of two columns with these rows, a commit for each list."""
    run = RunInfo("r1", "t", "out")
    sink = kind(path, {"key": str, "n": int}, **options)
    sink.check()
    sink.begin(run)
    sink.context = Context("out", run="r1")
    sink.open(sink.context)
    for epoch, rows in enumerate(epochs, 1):
        sink.write([Row(key, n, 0.0, f"{epoch}.{i}") for i, (key, n) in enumerate(rows)])
        over(sink.commit(epoch, over(sink.prepare(epoch))))
    sink.close()
    sink.end(True)


def test_the_rows_of_plain_files_come_as_one_table(tmp_path):
    for name in "ab":
        pq.write_table(ROWS, tmp_path / f"{name}.parquet")
    assert read(tmp_path).column("n").to_pylist() == [1, 2, 1, 2]
    assert read(tmp_path / "a.parquet", ["n"]).num_rows == 2
    assert read(tmp_path / "[a].parquet").num_rows == 2


def test_a_pattern_reaches_all_folders_and_a_folder_may_have_any_name(tmp_path):
    for place in (".", "x", "x/y", "[1]"):
        (tmp_path / place).mkdir(exist_ok=True)
        pq.write_table(ROWS, tmp_path / place / "a.parquet")
    assert read(tmp_path / "**/*.parquet").num_rows == 8
    assert read(tmp_path / "[1]").num_rows == 2


def test_lines_are_read_up_to_the_last_commit(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps({"key": key, "value": {"n": n}}) + "\n" for key, n in [("a", 1), ("b", 2)]))
    assert read(path).to_pylist() == [{"key": "a", "value": {"n": 1}}, {"key": "b", "value": {"n": 2}}]
    path.write_text("\n")
    assert read(path).num_rows == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": \n', "holds no JSON lines"),
        ('{"a": 1}\n{"a": "x"}\n', "a field has values of several types"),
        ('{"a": 0.5}\n{"a": "NaN"}\n', "NaN and Infinity are texts there"),
        (
            '{"a": 1}\n{"a": [{"b": -9223372036854775809}]}\n',
            "-9223372036854775809, and columns have whole numbers of 64 bits",
        ),
        ('{"a": "9223372036854775808"}\n{"a": 9223372036854775808}\n', "holds 9223372036854775808"),
    ],
)
def test_lines_that_are_no_table_are_said(tmp_path, text, said):
    (tmp_path / "out.jsonl").write_text(text)
    with pytest.raises(SinkError, match=said):
        read(tmp_path / "out.jsonl")


def test_texts_and_floats_of_many_digits_are_no_whole_numbers(tmp_path):
    rows = [{"a": 1e22, "b": "9223372036854775808", "c": 9223372036854775807}] * 2
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(tmp_path / "out.jsonl").to_pylist() == rows


def test_where_nothing_is_the_error_says_what_there_is(tmp_path):
    with pytest.raises(SinkError, match=r"holds no table of eSault and no \*.parquet"):
        read(tmp_path)
    with pytest.raises(SinkError, match="is not there"):
        read(tmp_path / "none")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SinkError, match="cannot be read"):
        read(tmp_path / "bad.parquet")
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(SinkError, match="Delta table .* cannot be read at version 3"):
        read(tmp_path, version=3)
    with pytest.raises(SinkError, match="is a Delta Lake table, and no table of eSault"):
        table_log(tmp_path)


def test_a_column_or_a_version_that_is_not_there_is_refused(tmp_path):
    pq.write_table(ROWS, tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="has no column 'x'; its columns are n"):
        read(tmp_path / "a.parquet", ["x"])
    with pytest.raises(UsageError, match="is no table, so it has no version 1"):
        read(tmp_path / "a.parquet", version=1)


def test_without_pyarrow_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'esault\[parquet\]'"):
        read("x")


@pytest.mark.parametrize(
    ("options", "names"), [({}, ("_time", "_deleted")), ({"primary_key": "key"}, ("_time", "_run"))]
)
def test_columns_that_have_the_names_of_added_ones_are_the_users(tmp_path, options, names):
    sink = Parquet(tmp_path / "t", {"key": str, names[0]: float, names[1]: str}, **options)
    sink.begin(RunInfo("r1", "t", "out"))
    sink.context = Context("out", run="r1")
    sink.open(sink.context)
    sink.write([Row("a", (0.5, "x"), 0.0, "1")])
    over(sink.commit(1, over(sink.prepare(1))))
    row = {"key": "a", names[0]: 0.5, names[1]: "x"}
    assert read(tmp_path / "t").to_pylist() == [row]
    assert read(tmp_path / "t", list(row)).to_pylist() == [row]
    sink.end(True)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("none", "there is no such folder"),
        (".", r"the folder has no log of eSault"),
        ("memory://tables/none/", "no table at memory://tables/none: there is no log of eSault"),
    ],
)
def test_what_is_no_table_is_said(tmp_path, monkeypatch, place, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SinkError, match=said):
        table_log(place)


def test_the_rows_of_a_table_come_with_what_was_added_to_them_where_it_is_asked_for(tmp_path):
    table(tmp_path / "t", [("a", 1)], [("b", 2), ("c", 3)], kind=SparkTable)
    path = tmp_path / "t"
    assert read(path).sort_by("n").to_pylist() == [{"key": k, "n": n} for k, n in [("a", 1), ("b", 2), ("c", 3)]]
    assert read(path, ["n"]).schema.names == ["n"]
    assert set(read(path, added=True).schema.names) > {"key", "n"}
    assert read(path, version=1).num_rows == 1
    with pytest.raises(UsageError, match="has no column 'x'; its columns are key, n"):
        read(path, ["x"])
    for part in table_log(path).at(1).files or ():
        (path / part).unlink()  # as vacuum does
    with pytest.raises(SinkError, match="vacuum removed it. Read the table anew, without version= or with a newer one"):
        read(path, version=1)


def test_of_a_table_with_a_primary_key_the_newest_row_of_each_comes(tmp_path):
    table(tmp_path / "t", [("a", 1), ("b", 2)], [("a", 5)], primary_key="key")
    assert read(tmp_path / "t").sort_by("key").to_pylist() == [{"key": "a", "n": 5}, {"key": "b", "n": 2}]
    (part,) = table_log(tmp_path / "t").files()
    (tmp_path / "t" / part.path).unlink()
    with pytest.raises(SinkError, match="is gone: the table was compacted or replaced since"):
        read(tmp_path / "t")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": ""}, "path must be the name of a folder, got ''"),
        ({"path": 7}, "path must be the name of a folder, got 7"),
        ({"mode": "add"}, 'mode must be "error", "append" or "replace"'),
        ({"path": "s3://b/t", "primary_key": "key"}, "a table with primary_key rewrites its files"),
    ],
)
def test_what_no_table_can_be_is_refused(options, said):
    with pytest.raises(SinkError, match=said):
        Parquet(**{"path": "t", "columns": {"key": str}, **options})


def test_a_table_at_an_address_is_read_as_one_in_a_folder(tmp_path):
    pytest.importorskip("fsspec")
    table("memory://results/t", [("a", 1)], [("b", 2)], kind=SparkTable)
    rows = read("memory://results/t")
    assert rows.sort_by("n").to_pylist() == [{"key": "a", "n": 1}, {"key": "b", "n": 2}]
    assert read("memory://results/t/", ["n"], version=1).to_pylist() == [{"n": 1}]
    with pytest.raises(SinkError, match="no table at memory://results/none: there is no log of eSault"):
        read("memory://results/none")
    table(tmp_path / "u", [("a", 1)])
    assert read(f"file://{tmp_path}/u").to_pylist() == [{"key": "a", "n": 1}]
