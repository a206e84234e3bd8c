"""A shop's landed sales and customers, and a pipeline of all kinds of tables over them; for `bench/pipelines/trial.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from esault import Topology
from esault.sinks import SparkTable
from esault.sources import Items

__all__ = ["CHANGES", "SALES", "pipeline", "reports", "topology"]

SALES = {"shop": str, "pieces": int, "day": str}
CHANGES = {"customer": int, "city": str | None, "at": int, "op": str}
expectations = {"sales": {"a shop": "shop <> ''"}}


def topology(folder: str) -> Topology:
    """`folder`: where the tables are. It is not run: the bench lands the rows."""
    t = Topology("shop")
    for name, columns in (("sales", SALES), ("changes", CHANGES)):
        t.spout(f"all_{name}", Items([])).sink(name, SparkTable(Path(folder) / "landed" / name, columns, "append"))
    return t


def pipeline(tables: Any) -> None:
    """Rows that are added, totals, the newest of each key, all versions of each key, a view."""
    from pyspark.sql import functions as f

    @tables.table(expect_all_or_quarantine={"some pieces": "pieces > 0"}, partition_cols=["day"])
    def sold(sales: Any) -> Any:
        return sales.select("shop", "pieces", "day")

    @tables.table(keys=["shop"], merge={"pieces": "sum", "most": "max", "n": "sum"})
    def by_shop(sold: Any) -> Any:
        return sold.groupBy("shop").agg(
            f.sum("pieces").alias("pieces"), f.max("pieces").alias("most"), f.count("*").alias("n")
        )

    @tables.table(keys=["customer"], sequence_by="at", apply_as_deletes="op = 'd'", except_column_list=["op"])
    def customers(changes: Any) -> Any:
        return changes.select("customer", "city", "at", "op")

    @tables.table(
        keys=["customer"],
        sequence_by="at",
        apply_as_deletes="op = 'd'",
        except_column_list=["op"],
        stored_as_scd_type=2,
    )
    def moves(changes: Any) -> Any:
        return changes.select("customer", "city", "at", "op")

    @tables.materialized_view()
    def by_day(sold: Any) -> Any:
        return sold.groupBy("day").agg(f.sum("pieces").alias("pieces"), f.count("*").alias("n"))


def reports(tables: Any) -> Any:
    """The rows of the clean tables."""
    return {name: tables[name].groupBy().count() for name in ("sales", "changes")}
