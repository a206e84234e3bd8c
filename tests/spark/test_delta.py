"""A Delta table of a run is read by Spark, with the jar that Delta Lake has for it."""

from __future__ import annotations

import delta_spark
import depth
import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'esault[delta]'")

from deltalake import DeltaTable

from esault import Topology, run
from esault.sinks import DeltaSink
from esault.sources import Items

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not delta_spark.is_there(), reason="no Spark that Delta Lake has a jar for: python tests/shared/delta_spark.py"
    ),
    depth.deep("a JVM of another Spark; three other readers are in tests/unit/sinks/delta/test_delta_sink.py"),
]
SALES = [("tea", {"shop": "north", "n": 3}), ("cup", {"shop": "south", "n": 1}), ("tea", {"shop": "süd, 2", "n": None})]
LATER = [("pot", {"shop": "north", "n": 4, "paid": 1.5})]


def sales(out: str, later: bool) -> Topology:
    t = Topology("to-delta")
    columns = {"item": str, "shop": str, "n": int | None, **({"paid": float} if later else {})}
    sink = DeltaSink(out, columns, mode="append", partition_by="shop", schema_mode="merge")
    t.spout("sales", Items(LATER if later else SALES)).sink("table", sink)
    return t


def test_spark_reads_partitions_a_column_that_came_later_and_the_versions_before(tmp_path):
    out = tmp_path / "sales"
    for later in (False, True):
        run(sales, params={"out": str(out), "later": later}, checkpoint=30.0)
    first = DeltaTable(out).version() - 1
    now, before = delta_spark.answers(
        out,
        [
            "select * from delta.`{path}` order by item, shop",
            f"select count(*) as rows from delta.`{{path}}` version as of {first}",
        ],
    )
    assert now == [
        {"item": "cup", "shop": "south", "n": 1, "paid": None},
        {"item": "pot", "shop": "north", "n": 4, "paid": 1.5},
        {"item": "tea", "shop": "north", "n": 3, "paid": None},
        {"item": "tea", "shop": "süd, 2", "n": None, "paid": None},
    ]
    assert before == [{"rows": len(SALES)}]
