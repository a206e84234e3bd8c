"""Landed reports: what is read of them to be shown, and names that would be one folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
pytest.importorskip("pyarrow")
import pyarrow as pa
from pyspark.sql import DataFrame

from esault.errors import UsageError
from esault.sinks.landing.arrow import parquet_bytes
from esault.sinks.landing.schema import Column
from esault.spark.derived import DerivedTable
from esault.spark.results import KEPT, Results, asked


class Frame(DataFrame):
    def __new__(cls, *_: Any) -> Frame:
        return object.__new__(cls)

    def __init__(self) -> None:
        """Without a session."""


def test_reports_that_would_be_one_folder_are_named() -> None:
    frame: Any = Frame()
    assert list(asked(lambda tables: {"most sold": frame, "most_sold": frame}, {})) == ["most sold", "most_sold"]
    with pytest.raises(UsageError, match="'most sold' and 'most-sold' would both be most-sold on disk; rename one"):
        asked(lambda tables: {"most sold": frame, "most-sold": frame}, {})


@pytest.mark.parametrize(("rows", "cut"), [([3, KEPT - 3], False), ([3, KEPT - 2], True), ([KEPT + 1, 5], True)])
def test_of_a_large_report_no_more_is_read_than_is_shown(tmp_path: Path, rows: list[int], cut: bool) -> None:
    table, parts, first = DerivedTable(str(tmp_path / "large")), [], 0
    with table.locked():
        for count in rows:
            numbers = pa.table({"n": pa.array(range(first, first + count), pa.int64())})
            parts.append(table.put(memoryview(parquet_bytes(numbers)), count))
            first += count
        table.commit(parts, (Column("n", "long"),), (), table.state(), True)
    said = '{"name": "large", "folder": "large", "columns": ["n"], "kinds": ["number"], "cut": false}'
    (tmp_path / "reports.json").write_text(f'{{"format": 1, "inputs": [], "reports": [{said}]}}')
    if rows[0] > KEPT:
        os.unlink(tmp_path / "large" / parts[1].path)
    report = Results(str(tmp_path)).load()["large"]
    assert report.rows == tuple((n,) for n in range(KEPT))
    assert report.cut == cut
