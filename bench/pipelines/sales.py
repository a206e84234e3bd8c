"""One landed table and a report, for `bench/pipelines/speed.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from esault import Topology
from esault.sinks import SparkTable
from esault.sources import Items

__all__ = ["reports", "topology"]

expectations = {"sales": {"a price": "price >= 0"}}


def topology(folder: str) -> Topology:
    """`folder`: where the table is. It is not run."""
    t = Topology("speed")
    columns = {"user": int, "item": str, "price": float}
    t.spout("all", Items([])).sink("sales", SparkTable(Path(folder) / "landed", columns, "replace"))
    return t


def reports(tables: Any) -> Any:
    """The users who buy most."""
    from pyspark.sql import functions as f

    sold = tables["sales"].groupBy(f.col("user").alias("item")).agg(f.count("*").alias("n"))
    return {"best": sold.orderBy(f.desc("n"), "item").limit(100)}
