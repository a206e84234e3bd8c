"""Tables that a pipeline declares: only what is new, by key, with expectations; compared with plain Python and DuckDB."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import depth
import pyarrow as pa
import pytest

import esault
from esault.errors import EsaultError, UsageError
from esault.sinks.landing import parts, table_log
from esault.sinks.spark_table import SparkTable
from esault.spark.pipeline import Pipeline
from esault.spark.settings import settings
from esault.spark.tables.contract import check_contract
from esault.spark.tables.declared import Tables
from esault.spark.tables.expectations import Expectations
from esault.spark.tables.runs import checked, steps_of
from esault.topology.context import Context
from esault.topology.sink import RunInfo

duckdb = pytest.importorskip("duckdb")

SALES = {"shop": str, "pieces": int, "day": str}
CHANGES = {"customer": int, "city": str | None, "at": int, "op": str}


class Shop:
    """Landed sales and changes of customers, and a pipeline over them."""

    def __init__(self, folder: Path, declare: Callable[[Any], None]) -> None:
        self.folder, self.declare = folder, declare
        self.said: list[str] = []
        self.epoch = 0
        self.land("sales", SALES)
        self.land("changes", CHANGES)

    def land(self, name: str, columns: dict[str, Any], *rows: tuple[Any, ...]) -> None:
        """Rows of one run."""
        path = self.folder / "landed" / name
        self.epoch += 1
        driver = SparkTable(path, columns, "append")
        driver.check()
        driver.begin(RunInfo(f"r{self.epoch}", "topology", name))
        sink = SparkTable(path, columns, "append")
        sink.open(Context("u", run=f"r{self.epoch}"))
        if rows:
            ids = [f"{self.epoch}-{i}" for i in range(len(rows))]
            sink.write_columns([r[0] for r in rows], [r[1:] for r in rows], 1_700_000_000.0, ids)
            sink.commit(0, sink.prepare(0))
        driver.end(True)

    def sales(self, *rows: tuple[Any, ...]) -> None:
        self.land("sales", SALES, *rows)

    def changes(self, *rows: tuple[Any, ...]) -> None:
        self.land("changes", CHANGES, *rows)

    @property
    def pipeline(self) -> Pipeline:
        """As a new process would have it."""
        landed = {name: str(self.folder / "landed" / name) for name in ("sales", "changes")}
        tables = Tables(landed)
        self.declare(tables)
        into = str(self.folder / "into")
        return Pipeline(landed, into, say=self.said.append, steps=steps_of(tables, into))

    def run(self, **arguments: Any) -> dict[str, Any]:
        self.said.clear()
        arguments.setdefault("job", "tables")
        return self.pipeline.run(**arguments).updated

    def path(self, table: str) -> Path:
        return self.folder / "into" / "tables" / table

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """What another engine reads of it."""
        arrow = esault.read(self.path(table), columns or None)  # noqa: F841 - DuckDB finds it by name
        return sorted(duckdb.sql("select * from arrow").fetchall(), key=str)


def shops(tables: Any) -> None:
    from pyspark.sql import functions as f

    @tables.table(
        expect_all={"a known shop": "shop <> '?'"},
        expect_all_or_drop={"a day": "day <> ''"},
        expect_all_or_quarantine={"some pieces": "pieces > 0"},
        partition_cols=["day"],
        schema="shop string, pieces bigint, day string",
    )
    def sold(sales):
        return sales.select("shop", "pieces", "day")

    @tables.temporary_view
    def large(sold):
        return sold.where("pieces >= 5")

    @tables.materialized_view(comment="of all sales")
    def by_shop(large, sold):
        return (
            sold.groupBy("shop")
            .agg(f.sum("pieces").alias("pieces"))
            .join(large.groupBy("shop").agg(f.count("*").alias("large")), "shop", "left")
        )

    @tables.table(keys=["day"], merge={"pieces": "sum", "best": "max", "rows": "sum"})
    def by_day(sold):
        return sold.groupBy("day").agg(
            f.sum("pieces").alias("pieces"), f.max("pieces").alias("best"), f.count("*").alias("rows")
        )

    @tables.table(keys=["customer"], sequence_by="at", apply_as_deletes="op = 'd'", except_column_list=["op"])
    def customers(changes):
        return changes.select("customer", "city", "at", "op")

    @tables.table(
        keys=["customer"],
        sequence_by="at",
        apply_as_deletes="op = 'd'",
        except_column_list=["op"],
        stored_as_scd_type=2,
    )
    def moves(changes):
        return changes.select("customer", "city", "at", "op")


def scd(changes: list[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """What customers and their moves must be, by a plain loop over all changes in order."""
    now: dict[int, tuple[Any, ...]] = {}
    moves: list[list[Any]] = []
    for customer, city, at, op in sorted(set(changes), key=lambda one: one[2]):
        for move in moves:
            if move[0] == customer and move[4] is None:
                move[4] = at
        now.pop(customer, None)
        if op != "d":
            now[customer] = (customer, city, at)
            moves.append([customer, city, at, at, None])
    return sorted(now.values(), key=str), sorted(map(tuple, moves), key=str)


@pytest.mark.timeout(900)
def test_tables_are_those_of_plain_python_whatever_comes_late_and_only_what_is_new_is_read(
    spark: Any, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, shops)
    first = [("a", 1, "1"), ("b", 7, "1"), ("a", 5, "2"), ("?", 2, "2"), ("b", -1, "2"), ("b", 0, ""), ("a", -4, "1")]
    changes = [(1, "x", 10, "u"), (2, "y", 11, "u"), (3, "d", 5, "u"), (2, None, 20, "d")]
    changes += [(5, None, 40, "d"), (5, None, 50, "d")]  # of what comes late
    shop.sales(*first)
    shop.changes(*changes)
    done = shop.run()
    assert {name: one.why for name, one in done.items()} == dict.fromkeys(done, "it is the first time")
    assert done["sold"].expectations == {
        "a known shop": ("warn", 1),
        "a day": ("drop", 1),
        "some pieces": ("quarantine", 3),
    }
    assert done["sold"].quarantined == 2  # what is dropped is not put aside
    aside = esault.read(shop.folder / "into/quarantine/sold").to_pylist()
    assert sorted((r["shop"], r["pieces"], r["_reason"]) for r in aside) == [
        ("a", -4, "some pieces"),
        ("b", -1, "some pieces"),
    ]
    assert sorted(name for name in os.listdir(shop.path("sold")) if "=" in name) == ["day=1", "day=2"]
    kept = {path: os.stat(path).st_mtime_ns for path in parts(shop.path("sold"))}

    second = [("c", 9, "2"), ("a", 2, "3")]
    late = [
        (1, "w", 4, "u"),
        (2, "z", 15, "u"),
        (2, "q", 25, "u"),
        (3, None, 7, "d"),
        (3, "e", 6, "u"),
        (4, "n", 1, "u"),
        (5, "m", 30, "u"),
    ]
    shop.sales(*second)
    shop.changes(*late)
    again = shop.run()
    assert {name: (one.read, one.why) for name, one in again.items() if one.why is None} == {
        "sold": (2, None),
        "by_day": (2, None),
        "customers": (7, None),
        "moves": (7, None),
    }
    assert again["by_shop"].why == "sold changed"
    assert {path: os.stat(path).st_mtime_ns for path in kept} == kept  # nothing was written again
    shop.changes((2, "late", 23, "u"), (3, None, 9, "d"), (1, "v", 30, "u"), (3, "back", 8, "u"))
    every = [*changes, *late, (2, "late", 23, "u"), (3, None, 9, "d"), (1, "v", 30, "u"), (3, "back", 8, "u")]
    assert shop.run()["sold"] is None
    now, moves = scd(every)
    assert shop.rows("customers") == now
    assert shop.rows("moves", "customer", "city", "at", "__START_AT", "__END_AT") == moves

    good = [row for row in [*first, *second] if row[1] > 0 and row[2]]
    assert shop.rows("sold") == sorted(good, key=str)
    pieces, large = Counter[str](), Counter[str]()
    for name, count, _ in good:
        pieces[name] += count
        large[name] += count >= 5
    assert shop.rows("by_shop") == sorted(((n, c, large[n] or None) for n, c in pieces.items()), key=str)
    rows = duckdb.sql(f"select * from (values {', '.join(map(str, good))}) as t(shop, pieces, day)")  # noqa: F841
    wanted = duckdb.sql(
        "select day, sum(pieces)::bigint, max(pieces)::bigint, count(*) from rows group by day"
    ).fetchall()
    assert shop.rows("by_day", "day", "pieces", "best", "rows") == sorted(
        ((d, p, b, n) for d, p, b, n in wanted), key=str
    )

    assert set(shop.run().values()) == {None}
    assert not [line for line in shop.said if "table:" in line]
    # a range made anew: the code counts double now, for one day alone
    table_of = shop.declare

    def doubled(tables: Any) -> None:
        table_of(tables)
        sold = tables.declared["sold"]
        tables.declared["sold"] = type(sold)(
            **{
                **{name: getattr(sold, name) for name in sold.__dataclass_fields__},
                "function": lambda sales: sales.selectExpr("shop", "2 * pieces as pieces", "day"),
            }
        )

    shop.declare = doubled
    step = shop.pipeline.steps["table:sold"]
    step.backfill(lambda: spark, shop.said.append, "day = '2'")  # type: ignore[attr-defined]
    assert shop.rows("sold") == sorted(((s, p * (2 if d == "2" else 1), d) for s, p, d in good), key=str)
    assert len(esault.read(shop.folder / "into/quarantine/sold").to_pylist()) == 2


@pytest.mark.timeout(900)
def test_a_range_of_a_table_that_has_no_rows_is_made_anew(spark: Any, tmp_path: Path) -> None:
    few = [100]

    def declare(tables: Any) -> None:
        @tables.table(expect_all_or_drop={"many": f"pieces > {few[0]}"})
        def sold(sales):
            return sales.select("shop", "pieces")

    shop = Shop(tmp_path, declare)
    shop.sales(("a", 1, "1"), ("b", -2, "1"))
    shop.run()
    assert shop.rows("sold") == []
    few[0] = 0
    step: Any = shop.pipeline.steps["table:sold"]
    with pytest.raises(EsaultError, match=r"UNRESOLVED_COLUMN.*peces"):
        step.backfill(lambda: spark, shop.said.append, "peces > 0")
    step.backfill(lambda: spark, shop.said.append, "pieces > 0")
    assert shop.rows("sold") == [("a", 1)]


@pytest.mark.timeout(900)
def test_what_must_not_come_fails_the_run_and_a_contract_is_kept(spark: Any, tmp_path: Path) -> None:
    def strict(tables: Any) -> None:
        @tables.table(expect_all_or_fail={"some pieces": "pieces > 0"}, on_schema_change="fail")
        def sold(sales):
            return sales.drop("_id", "_run", "_time")

        @tables.materialized_view(schema="shop string, n bigint")
        def shops(sold):
            return sold.groupBy("shop").count().withColumnRenamed("count", "n")

    shop = Shop(tmp_path, strict)
    shop.sales(("a", 1, "1"))
    shop.run()
    before = shop.rows("sold")
    shop.sales(("b", 0, "1"))
    with pytest.raises(
        EsaultError, match=r"rows came that must not .*: some pieces \(pieces > 0\): 1 row. Nothing was"
    ):
        shop.run()
    assert shop.rows("sold") == before
    assert len(list(shop.path("sold").glob("part-*"))) == 1  # what was staged is gone

    def wider(tables: Any) -> None:
        strict(tables)
        del tables.declared["sold"], tables.declared["shops"]

        @tables.table(on_schema_change="fail")
        def sold(sales):
            return sales.drop("_id", "_run", "_time")

        @tables.materialized_view(schema="shop string, n int, day string")
        def shops(sold):
            return sold.groupBy("shop").count().withColumnRenamed("count", "n")

    shop.declare = wider
    with pytest.raises(
        UsageError, match="breaks its contract.*column 'n' is bigint, not int; column 'day' .string. is"
    ):
        shop.run()
    shop.land("sales", {**SALES, "colour": str}, ("c", 1, "1", "red"))
    with pytest.raises(UsageError, match=r'on_schema_change is "fail": colour \(str \| None\)'):
        shop.run(job="table:sold")


def test_a_dry_run_tells_what_columns_of_a_table_by_key_must_not_become(spark: Any, tmp_path: Path) -> None:
    def declare(tables: Any) -> None:
        @tables.table(keys=["shop"], sequence_by="pieces", on_schema_change="fail")
        def newest(sales):
            return sales.drop("_id", "_run", "_time")

    shop = Shop(tmp_path, declare)
    shop.sales(("a", 1, "1"))
    shop.run()
    landed = {name: str(tmp_path / "landed" / name) for name in ("sales", "changes")}
    steps: Any = list(shop.pipeline.steps.values())
    assert [column.name for column in checked(spark, steps, landed)["newest"]] == ["shop", "pieces", "day"]
    shop.land("sales", {**SALES, "colour": str}, ("c", 1, "1", "red"))
    with pytest.raises(UsageError, match=r'table newest: .* on_schema_change is "fail": colour \(str \| None\)'):
        checked(spark, steps, landed)


def test_a_contract_is_of_columns_and_types_alone(spark: Any) -> None:
    there = spark.createDataFrame([], "shop string, n bigint").schema
    check_contract("sold", "n bigint, shop string", there)
    with pytest.raises(UsageError, match=r"says NOT NULL of 'n', .* expect_all_or_fail=\{\"a n\": \"n IS NOT NULL\"\}"):
        check_contract("sold", "shop string, n bigint NOT NULL", there)


@pytest.mark.timeout(900)
def test_rows_that_spark_reads_again_are_counted_once(spark: Any, tmp_path: Path) -> None:
    folder = Path(spark.sparkContext.getConf().get("spark.local.dir"))
    lost = tmp_path / "lost"

    def declare(tables: Any) -> None:
        @tables.table(
            expect_all={"one": "pieces <> 1"},
            expect_all_or_drop={"two": "pieces <> 2"},
            expect_all_or_quarantine={"three": "pieces <> 3"},
            partition_cols=["day"],
        )
        def sold(sales):
            before = set(folder.glob("blockmgr-*/*/shuffle_*.data"))

            def lose(batches):  # what another task has made for the next stage
                for batch in batches:
                    if batch["shop"][0].as_py() == "slow" and not lost.exists():
                        lost.touch()
                        while not (found := set(folder.glob("blockmgr-*/*/shuffle_*.data")) - before):
                            time.sleep(0.01)
                        for file in found:
                            file.unlink()
                    yield batch

            apart = sales.where("shop = 'a'").unionByName(sales.where("shop <> 'a'"))
            return apart.select("shop", "pieces", "day").mapInArrow(lose, "shop string, pieces bigint, day string")

    shop = Shop(tmp_path, declare)
    shop.sales(*((name, pieces, "1") for name in ("a", "slow") for pieces in range(5)))
    # as Spark before 4.3 counts
    with settings(spark, {"spark.sql.legacy.observeMetricsAggregateAllAttempts": "true"}):
        done = shop.run()["sold"]
    assert lost.exists()
    assert (done.checked, done.quarantined) == (10, 2)
    assert done.expectations == {"one": ("warn", 2), "two": ("drop", 2), "three": ("quarantine", 2)}
    assert shop.rows("sold") == [(name, pieces, "1") for name in ("a", "slow") for pieces in (0, 1, 4)]


def test_a_row_is_kept_or_put_aside_also_where_it_is_another_each_time(spark: Any, tmp_path: Path) -> None:
    def declare(tables: Any) -> None:
        @tables.table(expect_all_or_quarantine={"head": "toss"})
        def tossed(sales):
            def toss(batches):
                for batch in batches:
                    yield batch.append_column("toss", pa.array([random.random() < 0.5 for _ in range(batch.num_rows)]))

            return sales.select("shop", "pieces").mapInArrow(toss, "shop string, pieces bigint, toss boolean")

    shop = Shop(tmp_path, declare)
    shop.sales(*((str(i), i, "1") for i in range(200)))
    done = shop.run()["tossed"]
    aside = esault.read(shop.folder / "into/quarantine/tossed", ["shop", "pieces"]).to_pylist()
    rows = [*shop.rows("tossed", "shop", "pieces"), *(tuple(row.values()) for row in aside)]
    assert sorted(rows, key=str) == sorted(((str(i), i) for i in range(200)), key=str)
    assert done.expectations == {"head": ("quarantine", len(aside))}


def test_no_row_stays_where_what_is_expected_is_never_so(spark: Any, tmp_path: Path) -> None:
    def declare(tables: Any) -> None:
        @tables.table(expect_all={"a shop": "shop <> 'b'"}, expect_all_or_drop={"open": "false"})
        def sold(sales):
            return sales.select("shop", "pieces")

    shop = Shop(tmp_path, declare)
    shop.sales(("a", 1, "1"), ("b", -1, "1"))
    done = shop.run()["sold"]
    assert (done.checked, done.written) == (2, 0)
    assert done.expectations == {"a shop": ("warn", 1), "open": ("drop", 2)}


def test_a_quarantine_that_is_asked_for_no_more_has_no_rows(spark: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"expect_all_or_quarantine": {"some": "pieces > 0"}}

    def declare(tables: Any) -> None:
        @tables.table(**asked)
        def sold(sales):
            return sales.select("shop", "pieces")

    shop = Shop(tmp_path, declare)
    shop.sales(("a", 1, "1"), ("b", -1, "1"))
    shop.run()
    asked.clear()
    assert shop.run()["sold"].why == "what it is to do has changed"
    assert shop.rows("sold") == [("a", 1), ("b", -1)]
    assert esault.read(shop.folder / "into/quarantine/sold").num_rows == 0


def test_what_is_no_condition_on_a_row_is_said_without_plans_of_spark(spark: Any) -> None:
    frame = spark.createDataFrame([], "k string, _reason string")
    for condition in ("count(k) > 0", "k >< 3", "kk > 0", "size(k) > 0"):
        with pytest.raises(UsageError, match="expectation 'x' is no condition on a row") as raised:
            Expectations("sold", {"x": ("quarantine", condition)}).counts(frame)
        assert "Relation" not in str(raised.value)
    with pytest.raises(UsageError, match="has a column _reason of its own"):
        Expectations("sold", {"x": ("quarantine", "k > ''")}).decided(frame)


def test_parts_of_a_table_by_key_that_did_not_change_are_not_written(spark: Any, tmp_path: Path) -> None:
    def by_day(tables: Any) -> None:
        @tables.table(keys=["shop"], sequence_by="pieces", partition_cols=["day"])
        def newest(sales):
            return sales.select("shop", "pieces", "day")

        @tables.materialized_view(expect_all={"a city": "city IS NOT NULL"})
        def cities(changes):
            return changes.groupBy("city").count()

    shop = Shop(tmp_path, by_day)
    shop.sales(("a", 1, "1"), ("b", 1, "2"), ("c", 1, "3"))
    shop.run()
    assert shop.rows("cities") == []  # a table without rows is one, too
    before = set(parts(shop.path("newest")))
    shop.sales(("b", 2, "4"), ("d", 1, "5"), ("c", 0, "6"))
    done = shop.run()["newest"]
    assert shop.rows("newest") == [("a", 1, "1"), ("b", 2, "4"), ("c", 1, "3"), ("d", 1, "5")]
    assert len(before & set(parts(shop.path("newest")))) == 1  # that of a
    assert (done.written, done.rows) == (3, 4)
    assert len(esault.read(shop.path("newest"), version=1)) == 3  # as it was
    assert table_log(shop.path("newest")).state.inputs


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.timeout(900)
def test_a_pipeline_that_is_killed_at_any_write_makes_the_same_tables(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from esault.sinks.landing.disk import LocalDisk

    shop = Shop(tmp_path, shops)
    shop.sales(("a", 1, "1"), ("b", -7, "1"))
    shop.changes((1, "x", 10, "u"))
    shop.run()
    shop.sales(("a", 4, "2"), ("b", 0, "2"), ("b", 6, "1"))
    shop.changes((1, None, 12, "d"), (2, "y", 11, "u"))
    left = [0]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(disk: Any, *arguments: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return real(disk, *arguments)

        return operation

    deaths = 0
    for after in depth.chosen((3, 9, 14, 19, 24, 30, 80), (3, 14, 30)):
        left[0] = after
        with monkeypatch.context() as patch:
            for name in ("write_new", "link", "rename", "sync_folder"):
                patch.setattr(LocalDisk, name, counted(getattr(LocalDisk, name)))
            try:
                shop.run()
            except Killed:
                deaths += 1
        if after == 14:  # more lands between a death and the next try
            shop.sales(("c", 2, "2"), ("c", -1, "2"))
    shop.run()
    assert deaths > 2
    assert shop.rows("sold") == [("a", 1, "1"), ("a", 4, "2"), ("b", 6, "1"), ("c", 2, "2")]
    assert shop.rows("by_day", "day", "pieces", "rows") == [("1", 7, 2), ("2", 6, 2)]
    assert shop.rows("customers") == [(2, "y", 11)]
    assert shop.rows("moves", "customer", "__START_AT", "__END_AT") == [(1, 10, 12), (2, 11, None)]
    aside = esault.read(shop.folder / "into/quarantine/sold")["pieces"].to_pylist()
    assert sorted(aside) == [-7, -1, 0]
