"""Reports on landed tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from esault.errors import EsaultError, SinkError, UsageError
from esault.sinks.landing import parts
from esault.sinks.spark_table import SparkTable
from esault.spark.analyze import analyze, render, tables_in


def test_the_reports_of_a_topology_run_on_its_tables(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    table.land(range(20), [f"i{n}" for n in range(20)])
    table.land(range(20), [f"i{n}" for n in range(20)], sub_unit=1)  # a replay

    def reports(tables: dict[str, Any]) -> dict[str, Any]:
        words = tables["table"].groupBy("word").agg({"total": "max"}).toDF("word", "total")
        return {
            "top words": words.orderBy("total", ascending=False).limit(2),
            "rows": tables["table"].groupBy().count(),
        }

    said: list[str] = []
    results = analyze({"table": table.driver}, reports, plot_dir=str(tmp_path / "plots"), say=said.append)
    assert list(results) == ["top words", "rows"]
    assert results["top words"].rows == (("w4", 19), ("w3", 18))
    assert results["rows"].rows == ((20,),)
    assert render(results["top words"]).startswith(
        "top words\nword  total\n----  -----\nw4       19\nw3       18\nplot: "
    )
    assert os.listdir(tmp_path / "plots") == ["top-words.png"]
    assert said == ["report 'top words' ...", "report 'rows' ..."]


def test_without_reports_every_table_is_described(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    table.land(range(10), time=1_700_000_000)
    table.land(range(10), time=1_700_000_095)
    table.end()
    second = landed(run="r2")
    second.land(range(5), time=1_700_000_100)
    empty = landed("late")
    results = analyze({"table": str(table.path), "late": empty.path}, None, plot_dir=str(tmp_path / "plots"))
    assert list(results) == ["table", "table by run", "table rows per 5 seconds", "late", "late by run"]
    assert results["table"].columns == ("rows", "distinct keys", "runs", "first", "last")
    assert render(results["table"]).endswith("25              5     2  2023-11-14 22:13:20  2023-11-14 22:15:00")
    assert [row[:2] for row in results["table by run"].rows] == [("r1", 20), ("r2", 5)]
    assert [row[1] for row in results["table rows per 5 seconds"].rows] == [10, 10, 5]
    assert results["late"].rows[0][:2] == (0, 0)
    assert sorted(os.listdir(tmp_path / "plots")) == ["table-by-run.png", "table-rows-per-5-seconds.png"]


def test_many_small_parts_are_compacted_first(spark: Any, landed: Any) -> None:
    table = landed()
    for number in range(40):
        table.land([number])
    said: list[str] = []
    results = analyze({"table": table.path}, None, say=said.append)
    assert said[0].startswith("compacting 40 parts of ")
    assert results["table"].rows[0][0] == 40
    assert len(parts(table.path)) == 1


def test_mistakes_in_reports_are_named(spark: Any, landed: Any) -> None:
    table = landed()
    table.land([1])

    def broken(tables: dict[str, Any]) -> dict[str, Any]:
        return {"x": tables["tabel"]}

    with pytest.raises(KeyError, match="tabel"):
        analyze({"table": table.path}, broken)
    for returned, message in [
        (None, "must return a dict of DataFrames by name, .* got nothing; is there a `return`"),
        ({}, r"must return a dict of DataFrames by name, .* got \{\} of type dict"),
        ({"x": 7}, r"reports\(tables\): 'x' must be a str with a DataFrame of Spark, got 7 of type int"),
    ]:
        with pytest.raises(UsageError, match=message):
            analyze({"table": table.path}, lambda tables, returned=returned: returned)
    with pytest.raises(EsaultError, match="report 'x': .*DIVIDE_BY_ZERO"):
        analyze({"table": table.path}, lambda tables: {"x": tables["table"].selectExpr("total / 0")})


def test_nothing_to_report_on_is_named(landed: Any, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="there is no table to report on: give the topology a sink SparkTable"):
        analyze({})
    with pytest.raises(SinkError, match="no table at .*nowhere: there is no such folder. Run the topology"):
        analyze({"table": SparkTable(tmp_path / "nowhere", {"word": str})})
    table = landed()
    with pytest.raises(SinkError, match=r"no rows yet in table \(.*\): nothing was committed. Run the topology first"):
        analyze({"table": table.path})


def test_tables_are_found_in_a_folder(landed: Any, tmp_path: Path) -> None:
    first, second = landed("one"), landed("two")
    assert tables_in(tmp_path) == {"one": str(first.path), "two": str(second.path)}
    assert tables_in(first.path) == {"one": str(first.path)}
    with pytest.raises(SinkError, match="no tables in .*: neither it nor a folder right below it has a log"):
        tables_in(first.path / "_esault_log")
    with pytest.raises(SinkError, match="no tables at .*: there is no such folder"):
        tables_in(tmp_path / "nowhere")
