"""Rows of CSV, Parquet and Arrow's files, and of tables in memory."""

from __future__ import annotations

import gzip
from datetime import datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault import SourceError, Topology, TopologyError, TopologyFailed
from esault.sinks import Collect
from esault.sources import ArrowFiles, CsvFiles, ParquetFiles, Table
from esault.testing import LocalRuntime
from esault.testing.contract import check_spout

ROWS = pa.table({"id": range(40), "name": [f"n{i}" for i in range(40)], "x": [i / 2 for i in range(40)]})


def rows_of(spout, parallelism=1):
    t = Topology("read")
    t.spout("rows", spout, parallelism=parallelism).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    return local.emitted("rows")


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ('2,"open\n3,y\n4,z\n', "a quote is opened and never closed"),
        ('2,"open\n3,y\n4,"z"\n', r"',' expected after '\"' \(is a quote before it not closed\?\)"),
    ],
)
def test_a_quote_that_is_not_closed_is_said_with_file_and_line(tmp_path, rest, said):
    path = tmp_path / "rows.csv"
    path.write_text(f"a,b\n1,x\n{rest}")
    with pytest.raises(TopologyFailed, match=rf"rows\.csv, line 3: {said}; correct the line"):
        rows_of(CsvFiles(path))


def parquet(folder, files=2):
    for number in range(files):
        pq.write_table(ROWS, folder / f"{number}.parquet", row_group_size=7)


class TestParquetFiles:
    def test_each_row_group_is_read_once_whatever_the_stretches_are(self, tmp_path):
        parquet(tmp_path)
        for size in (1, 300, 32 << 20):
            assert check_spout(lambda size=size: ParquetFiles(tmp_path, key="id", split_size=size * 50 + 50)) == 80

    def test_a_file_that_appears_is_read(self, tmp_path):
        parquet(tmp_path)
        grow = lambda: pq.write_table(ROWS, tmp_path / "z.parquet")
        assert check_spout(lambda: ParquetFiles(tmp_path, every=1.0), grow=grow) == 80

    def test_only_the_columns_that_are_named_come(self, tmp_path):
        parquet(tmp_path, 1)
        assert rows_of(ParquetFiles(tmp_path, key="id", columns=["x"]), 3)[0] == (0, {"x": 0.0})
        assert rows_of(ParquetFiles(tmp_path, key=lambda row: row["name"], columns=["name"]))[1] == (
            "n1",
            {"name": "n1"},
        )

    def test_nanoseconds_come_in_microseconds_or_not_at_all(self, tmp_path):
        pq.write_table(pa.table({"at": pa.array([1_000], pa.timestamp("ns"))}), tmp_path / "a.parquet")
        assert rows_of(ParquetFiles(tmp_path))[0][1] == {"at": datetime(1970, 1, 1, 0, 0, 0, 1)}
        pq.write_table(pa.table({"at": pa.array([1], pa.timestamp("ns"))}), tmp_path / "a.parquet")
        with pytest.raises(Exception, match="column 'at': holds what"):
            rows_of(ParquetFiles(tmp_path))

    def test_what_cannot_be_read_is_told_before_the_run(self, tmp_path):
        parquet(tmp_path, 1)
        with pytest.raises(SourceError, match="there is no column 'no'; there are 'id'"):
            ParquetFiles(tmp_path, columns=["no"]).check()
        with pytest.raises(SourceError, match="column 'x': a pyarrow Array of double cannot be keys"):
            ParquetFiles(tmp_path, key="x").check()
        (tmp_path / "0.parquet").write_text("oops, this is text")
        with pytest.raises(SourceError, match="no readable Parquet file"):
            ParquetFiles(tmp_path).check()
        with pytest.raises(TopologyError, match="split_size=0"):
            ParquetFiles(tmp_path, split_size=0)


class TestArrowFiles:
    @pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
    def test_files_and_streams_keep_the_contract(self, tmp_path, new):
        for number in range(2):
            with new(str(tmp_path / f"{number}.arrow"), ROWS.schema) as out:
                out.write_table(ROWS, max_chunksize=9)
        assert check_spout(lambda: ArrowFiles(tmp_path, key="name", columns=["x"])) == 80
        assert rows_of(ArrowFiles(tmp_path, key="name", columns=["x"]))[3] == ("n3", {"x": 1.5})

    def test_what_is_none_is_told(self, tmp_path):
        (tmp_path / "a").write_text("oops, this is text")
        with pytest.raises(SourceError, match="no readable file of Arrow's"):
            ArrowFiles(tmp_path).check()


class TestTable:
    @pytest.mark.parametrize("table", [ROWS, ROWS.to_pandas(), ROWS.to_batches()[0]])
    def test_tables_keep_the_contract(self, table):
        assert check_spout(lambda: Table(table, key="id")) == 40

    def test_a_table_of_polars_keeps_the_contract_and_its_values(self):
        polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
        table = polars.from_arrow(ROWS).with_columns(
            at=polars.lit(datetime(2026, 1, 2)),
            kind=polars.lit("a").cast(polars.Categorical),
            rank=polars.lit("low").cast(polars.Enum(["low", "high"])),
            many=polars.lit(["x", None]),
            both=polars.struct("id", "name"),
        )
        assert check_spout(lambda: Table(table, key="name")) == 40
        more = {"at": datetime(2026, 1, 2), "kind": "a", "rank": "low", "many": ["x", None]}
        both = {"both": {"id": 1, "name": "n1"}}
        assert rows_of(Table(table, key="name"))[1] == ("n1", {"id": 1, "name": "n1", "x": 0.5, **more, **both})

    def test_rows_are_dicts(self):
        assert rows_of(Table(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), key="b"))[1] == ("y", {"a": 2, "b": "y"})

    def test_columns_that_arrow_cannot_make_are_said(self):
        with pytest.raises(
            SourceError,
            match="^Table: Conversion failed for column a .*tried to convert to int64; give the column one type",
        ):
            Table(pd.DataFrame({"a": [1, "x"]})).check()

    def test_what_is_no_table_is_refused(self):
        with pytest.raises(TopologyError, match="list is no table"):
            Table([1])


FIELD = st.text('ab,"\n;ä ', max_size=4)


class TestCsvFiles:
    @settings(deadline=None, max_examples=40)
    @given(rows=st.lists(st.tuples(FIELD, FIELD), max_size=12), zipped=st.booleans())
    def test_what_csv_has_written_is_read(self, tmp_path_factory, rows, zipped):
        import csv
        import io

        folder, text = tmp_path_factory.mktemp("csv"), io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
        data = text.getvalue().encode()
        (folder / ("x.csv.gz" if zipped else "x.csv")).write_bytes(gzip.compress(data) if zipped else data)
        make = lambda: CsvFiles(folder, key="a")
        assert check_spout(make) == len(rows)
        assert rows_of(make()) == [(a, {"a": a, "b": b}) for a, b in rows]

    def test_types_are_made_and_an_empty_field_is_none(self, tmp_path):
        (tmp_path / "x.csv").write_text("\ufeffn;at;ok\n1;2026-01-02T03:04:05Z;true\n;;\n")
        spout = CsvFiles(tmp_path, delimiter=";", types={"n": int, "at": datetime, "ok": bool})
        first, second = (value for _, value in rows_of(spout))
        assert first["n"] == 1 and first["at"].year == 2026 and first["ok"] is True
        assert second == {"n": None, "at": None, "ok": None}

    def test_a_bad_line_is_told_or_left_out(self, tmp_path):
        (tmp_path / "x.csv").write_text('a,b\n1,2\n3\nx,4\n5,"6"7\n8,9\n"no end,1\n10,11\n')
        with pytest.raises(Exception, match="x.csv, line 3: has 1 fields, and the header has 2"):
            rows_of(CsvFiles(tmp_path, types={"a": int}))
        spout = lambda: CsvFiles(tmp_path, types={"a": int}, on_bad_line="skip")
        assert [value["a"] for _, value in rows_of(spout())] == [1, 8, 10]
        assert check_spout(spout) == 3

    def test_a_file_without_a_header_has_the_names_that_are_given(self, tmp_path):
        (tmp_path / "x.csv").write_text("1,2\n")
        assert rows_of(CsvFiles(tmp_path, key="a", header=["a", "b"])) == [("1", {"a": "1", "b": "2"})]
        with pytest.raises(TopologyError, match="no field 'c'"):
            CsvFiles(tmp_path, key="c", header=["a", "b"])
