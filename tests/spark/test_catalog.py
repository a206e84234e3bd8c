"""Tables in a catalog: other sessions read them in SQL, and what they read is a committed version, whole."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import depth
import pytest

from esault.errors import EsaultError, SinkError, UsageError
from esault.sinks.landing import parts, table_log, vacuum
from esault.sinks.spark_table import SparkTable
from esault.spark import metastore, read_table, register_table
from esault.spark.catalog import Catalog, catalog_of
from esault.spark.compact import compact
from esault.spark.jobs import Rules
from esault.spark.pipeline import Pipeline
from esault.spark.tables.declared import Tables
from esault.spark.tables.runs import steps_of
from esault.topology.context import Context
from esault.topology.sink import RunInfo

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(spark: Any) -> Iterator[Any]:
    """A session that is another one than that which registers; both have the catalog of the process."""
    Catalog("shop").make(spark)
    yield spark.newSession()
    spark.sql("DROP DATABASE shop CASCADE")


def asked(session: Any, query: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in session.sql(query).collect()), key=str)


def test_a_name_shows_what_was_committed_and_a_second_time_what_is_new(spark: Any, landed: Any, shop: Any) -> None:
    table = landed()
    table.land([1, 2])
    _, _, staged = table.prepare([99], sub_unit=1)  # durable, and not visible
    table.end(repeated=False)
    for _ in range(2):
        made = register_table(spark, "shop.totals", table.path, "it's `new` \\ so")
        assert (made.name, made.path, made.version) == (
            "shop.totals",
            str(table.path),
            table_log(table.path).state.version,
        )
        assert asked(shop, "SELECT word, total FROM shop.totals") == [("w1", 1), ("w2", 2)]
    told = {row[0]: row[1] for row in shop.sql("DESCRIBE TABLE EXTENDED shop.totals").collect()}
    assert told["Comment"] == "it's `new` \\ so"
    before = shop.table("shop.totals")
    again = landed(run="r2")
    again.land([3])
    again.end(repeated=False)
    assert asked(shop, "SELECT max(total) FROM shop.totals") == [(2,)]  # still that version
    register_table(spark, "shop.totals", table.path)
    assert asked(shop, "SELECT max(total) FROM shop.totals") == [(3,)]
    assert before.count() == 2  # who is at it goes on
    assert staged


def test_what_is_shown_stays_whatever_compaction_and_vacuum_do(spark: Any, landed: Any, shop: Any) -> None:
    table = landed()
    for total in range(3):
        table.land([total])
    table.end()
    register_table(spark, "shop.totals", table.path)
    compact(table.path)
    vacuum(str(table.path), -1.0)
    assert len(parts(table.path)) == 1
    assert asked(shop, "SELECT total FROM shop.totals") == [(0,), (1,), (2,)]
    register_table(spark, "shop.totals", table.path)
    assert asked(shop, "SELECT total FROM shop.totals") == [(0,), (1,), (2,)]


def test_snapshots_of_which_no_view_has_been_for_a_day_go(spark: Any, landed: Any, shop: Any) -> None:
    table = landed()
    versions = []
    for total in range(3):
        table.land([total])
        versions.append(register_table(spark, "shop.totals", table.path).version)
    snapshots = table.path / "_esault_catalog" / "shop.totals"
    assert {int(one.name) for one in snapshots.iterdir()} == set(versions)
    for one in versions[:2]:
        os.utime(snapshots / str(one), (0.0, 0.0))
    table.land([3])
    last = register_table(spark, "shop.totals", table.path).version
    assert {int(one.name) for one in snapshots.iterdir()} == {versions[2], last}


def test_repetitions_come_once_and_rows_without_an_id_all(spark: Any, landed: Any, shop: Any) -> None:
    table = landed()
    table.land([1, 2, 1], ["a", "b", "a"])
    table.land([7, 7], [None, None])
    table.land([2], ["b"])
    register_table(spark, "shop.totals", table.path)
    assert asked(shop, "SELECT total FROM shop.totals") == [(1,), (2,), (7,), (7,)]
    wanted = sorted(map(tuple, read_table(spark, table.path).collect()), key=str)
    assert asked(shop, "SELECT * FROM shop.totals") == wanted


def test_of_a_primary_key_the_newest_row_is_shown(spark: Any, tmp_path: Path, shop: Any) -> None:
    sink = SparkTable(tmp_path, {"word": str, "total": int}, "append", primary_key="word")
    sink.open(Context("table", run="r"))
    for epoch, (keys, values) in enumerate([(["a", "b"], [1, 2]), (["a", "b", "c"], [3, None, 4])]):
        sink.write_columns(keys, values, 1.0, None)
        sink.commit(epoch, sink.prepare(epoch))
    register_table(spark, "shop.newest", tmp_path)
    assert asked(shop, "SELECT word, total FROM shop.newest") == [("a", 3), ("c", 4)]
    assert shop.table("shop.newest").columns == read_table(spark, tmp_path).columns


def test_columns_that_came_later_and_wider_ones(spark: Any, tmp_path: Path, shop: Any) -> None:
    def land(run: str, columns: dict[str, Any], row: Any) -> None:
        driver = SparkTable(tmp_path, columns, "append")
        driver.check()
        driver.begin(RunInfo(run, "topology", "table"))
        sink = SparkTable(tmp_path, columns, "append")
        sink.open(Context("table", run=run))
        sink.write_columns(["x"], [row], 1.0, None)
        sink.commit(0, sink.prepare(0))
        driver.end(True)

    land("r1", {"word": str, "total": int}, 1)
    register_table(spark, "shop.totals", tmp_path)
    land("r2", {"word": str, "total": float, "share": float | None}, (0.5, 0.25))
    register_table(spark, "shop.totals", tmp_path)
    assert asked(shop, "SELECT word, total, share FROM shop.totals") == [("x", 0.5, 0.25), ("x", 1.0, None)]
    land("r3", {"word": str, "total": int, "share": float | None}, (7, 0.5))
    register_table(spark, "shop.totals", tmp_path)
    assert asked(shop, "SELECT sum(total) FROM shop.totals") == [(8.5,)]


def test_a_table_without_rows_has_its_columns(spark: Any, landed: Any, shop: Any) -> None:
    table = landed()
    register_table(spark, "shop.totals", table.path)
    assert asked(shop, "SELECT word, total FROM shop.totals") == []


def test_what_is_not_ours_is_never_replaced(spark: Any, landed: Any, shop: Any, tmp_path: Path) -> None:
    table, other = landed(), landed("other")
    spark.sql("CREATE VIEW shop.mine AS SELECT 1 AS n")
    with pytest.raises(UsageError, match=r"shop.mine is a table or view that eSault has not made: choose another name"):
        register_table(spark, "shop.mine", table.path)
    assert asked(shop, "SELECT * FROM shop.mine") == [(1,)]
    register_table(spark, "shop.totals", table.path)
    with pytest.raises(UsageError, match="shop.totals is a view of the table in "):
        register_table(spark, "shop.totals", other.path)


def test_what_cannot_be_registered_is_said(spark: Any, landed: Any, shop: Any, tmp_path: Path) -> None:
    table = landed()
    with pytest.raises(UsageError, match="of letters, digits and _"):
        register_table(spark, "shop.a-b", table.path)
    with pytest.raises(UsageError, match="of letters, digits and _"):
        Catalog("a.b")
    with pytest.raises(UsageError, match="in an object store is not registered"):
        register_table(spark, "shop.far", "s3://bucket/sales")
    with pytest.raises(SinkError, match="no table at"):
        register_table(spark, "shop.none", tmp_path / "none")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    with pytest.raises(UsageError, match="this Spark has no jar of it"):
        register_table(spark, "shop.delta", tmp_path / "delta")
    with pytest.raises(EsaultError, match="nowhere.totals is not registered"):
        register_table(spark, "nowhere.totals", table.path)


def test_a_pipeline_has_all_its_tables_in_the_catalog(spark: Any, landed: Any, shop: Any, tmp_path: Path) -> None:
    table = landed("sales-x")
    table.land([1, 2, -3])
    table.end()
    tables = Tables({"sales-x": str(table.path)})

    @tables.table(comment="sold", expect_all_or_quarantine={"some": "total > 0"})
    def sold(sales_x: Any) -> Any:
        return sales_x.select("word", "total")

    @tables.materialized_view
    def best(sold: Any) -> Any:
        return sold.groupBy().max("total").toDF("best")

    into = str(tmp_path / "into")

    def run() -> Any:
        pipeline = Pipeline({"sales-x": str(table.path)}, into, steps=steps_of(tables, into), catalog="shop")
        return pipeline.run("tables").registered

    names = ["sales_x", "sold", "best", "sales_x_quarantine", "sold_quarantine"]
    assert [one.name for one in run()] == [f"shop.{name}" for name in names]
    assert asked(shop, "SELECT best FROM shop.best") == [(2,)]
    assert asked(shop, "SELECT total FROM shop.sold_quarantine") == [(-3,)]
    assert asked(shop, "SELECT total FROM shop.sales_x") == [(-3,), (1,), (2,)]
    again = landed("sales-x", run="r2")
    again.land([9])
    again.end()
    assert len(run()) == 5
    assert asked(shop, "SELECT best FROM shop.best") == [(9,)]


def test_reports_are_in_the_catalog_as_long_as_they_are_made(
    spark: Any, landed: Any, shop: Any, tmp_path: Path
) -> None:
    table = landed("sales")
    table.land([1, 2, 2])
    table.end()

    def run(code: str, *names: str) -> list[str]:
        def reports(tables: Any) -> Any:
            return {name: tables["sales"].groupBy().sum("total") for name in names}

        rules = Rules(reports, code=code)
        made = Pipeline({"sales": str(table.path)}, str(tmp_path / "into"), rules, catalog="shop").run()
        return [one.name for one in made.registered][2:]

    assert run("1", "most sold", "sales") == ["shop.most_sold_report", "shop.sales_report"]
    assert asked(shop, "SELECT `sum(total)` FROM shop.most_sold_report") == [(5,)]
    told = {row[0]: row[1] for row in shop.sql("DESCRIBE TABLE EXTENDED shop.most_sold_report").collect()}
    assert told["Comment"] == "report 'most sold'"
    again = landed("sales", run="r2")
    again.land([9])
    again.end()
    spark.sql("CREATE VIEW shop.mine_report AS SELECT 1 AS n")
    with pytest.raises(UsageError, match="shop.mine_report is a table or view that eSault has not made"):
        run("2", "most sold", "mine")
    assert run("3", "most sold") == ["shop.most_sold_report"]
    assert asked(shop, "SELECT * FROM shop.most_sold_report") == [(14,)]
    views = {row["viewName"] for row in shop.sql("SHOW VIEWS IN shop").collect()}
    assert views == {"sales", "sales_quarantine", "most_sold_report", "mine_report"}
    with pytest.raises(UsageError, match="report 'a b' and report 'a_b' would both be shop.a_b_report there"):
        run("4", "a b", "a_b")
    assert asked(shop, "SELECT * FROM shop.most_sold_report") == [(14,)]


class TestSettings:
    def test_a_catalog_that_is_named_is_taken(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("SPARK_HOME", raising=False)
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
        hive = {"spark.sql.catalogImplementation": "hive"}
        assert catalog_of({}) is None
        assert catalog_of({"spark.executor.memory": "1g"}) is None
        assert catalog_of(hive) == {}
        assert catalog_of({"spark.hadoop.hive.metastore.uris": "thrift://h:9083"}) == hive
        assert catalog_of({"spark.sql.catalog.spark_catalog": "io.unitycatalog.spark.UCSingleCatalog"}) == {}
        delta = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        assert catalog_of({"spark.sql.catalog.spark_catalog": delta}) is None
        (tmp_path / "hive-site.xml").touch()
        assert catalog_of({}) == hive
        (tmp_path / "spark-defaults.conf").write_text("spark.sql.catalogImplementation in-memory\n")
        assert catalog_of({}) == {}


PROGRAM = """
import sys
from esault.spark import metastore, session

with session("local[1]", conf=metastore(sys.argv[1])) as spark:
    print([tuple(row) for row in spark.sql(sys.argv[2]).collect()])
    print("open", flush=True)
    sys.stdin.read()
"""


@depth.deep("three JVMs with Derby; the other tests show what a view has")
@pytest.mark.timeout(900)
def test_another_process_reads_what_the_command_has_registered(landed: Any, tmp_path: Path, young: Any) -> None:
    table = landed("sales")
    table.land([1, 2])
    table.end()
    command = [sys.executable, "-m", "esault", "analyze", str(table.path), "--into", str(tmp_path / "into")]
    command += ["--job", "tables", "--catalog", "shop"]

    def run(**options: Any) -> Any:
        return subprocess.run(command, cwd=tmp_path, env=young, capture_output=True, text=True, check=False, **options)

    done = run()
    assert done.returncode == 0, done.stderr
    assert "in the catalog: shop.sales, shop.sales_quarantine" in done.stderr
    own = str(tmp_path / "into" / "metastore")
    query = "SELECT sum(total) FROM shop.sales"
    reader = [sys.executable, "-c", PROGRAM, own, query]
    with subprocess.Popen(
        reader, env=young, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as other:
        assert other.stdout and other.stdin
        assert [other.stdout.readline() for _ in range(2)] == ["[(3,)]\n", "open\n"]
        refused = run(timeout=300)
        assert refused.returncode == 2
        assert "--catalog shop: the catalog is open in another process" in refused.stderr
        other.stdin.close()
    assert not (tmp_path / "derby.log").exists()
    assert metastore(own)["spark.sql.warehouse.dir"] == f"{own}/warehouse"
