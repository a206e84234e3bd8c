"""Reports on the elasticity of runs, from the tables that `esault run --land-metrics` writes.

The demand of a bolt in a window is the fewest sub-units that would be busy for at most 80 % of their time with what was
offered: what came, times what sources had due for what they read of it, times the seconds that a tuple took one
sub-unit. Accuracy, timeshare and jitter are those of the SPEC Research Group (Herbst et al., ICAC 2013, and TOMPECS
2016), relative to the demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from esault.sinks.landing import table_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BUSY", "demanded", "elasticity", "is_of_runs", "reports"]

#: share of its time that a sub-unit may be busy where the demand is drawn
BUSY = 0.8
#: units whose parallelism is drawn over time
_UNITS = 6
_TABLES = {
    "windows": {"unit", "kind", "t", "seconds", "sub_units", "parallelism", "arrivals", "emitted", "lag", "service"},
    "changes": {"unit", "t", "before", "after", "policy", "reason"},
    "runs": {"run", "ended", "seconds"},
}


def is_of_runs(tables: Mapping[str, str]) -> bool:
    """Return whether tables, by name, are those of a run's metrics."""
    return set(_TABLES) == set(tables) and all(
        columns <= {column.name for column in table_log(tables[name]).state.schema} for name, columns in _TABLES.items()
    )


def reports(tables: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """The reports by name; those over time are of the run that began last."""
    windows, changes = tables["windows"], tables["changes"]
    wanted = demanded(windows)
    return {
        "runs": _runs(windows, tables["runs"]),
        "elasticity": elasticity(wanted),
        **_over_time(wanted),
        "rate against parallelism": _rates(windows),
        "changes": changes.orderBy("_run", "t").selectExpr(
            "_run as run",
            "round(t, 1) as t",
            "unit",
            "kind",
            "before as `from`",
            "after as to",
            "policy",
            "if(dropped = '', reason, concat('dropped: ', dropped)) as reason",
            "held_back_ms",
            "total_ms",
        ),
    }


def demanded(windows: DataFrame) -> DataFrame:
    """The windows of bolts, with the sub-units that each would have needed as `needed`."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = Window.partitionBy("_run", "unit").orderBy("t")
    # what a source has due and cannot hand on does not arrive at bolts, and is wanted all the same
    growth = f.coalesce(
        f.greatest(f.col("lag") - f.lag("lag", 1, 0).over(order), f.lit(0)) / f.col("seconds"), f.lit(0)
    )
    spouts = windows.where("kind = 'spout'").withColumn("due", f.col("emitted") + growth)
    share = spouts.groupBy("_run", "t").agg((f.sum("due") / f.nullif(f.sum("emitted"), f.lit(0.0))).alias("share"))
    bolts = windows.where("kind = 'bolt'").join(share, ["_run", "t"], "left")
    last = Window.partitionBy("_run", "unit").orderBy("t").rowsBetween(Window.unboundedPreceding, 0)
    # a window in which none was processed takes what a tuple took before
    service = f.last("service", ignorenulls=True).over(last)
    offered = f.col("arrivals") * f.coalesce("share", f.lit(1.0))
    # the last bit of a product must not make one sub-unit more
    needed = f.ceil(f.coalesce(offered * service, f.lit(0.0)) / f.lit(BUSY) - f.lit(1e-9))
    return bolts.withColumn("needed", f.greatest(f.lit(1), needed)).drop("share")


def elasticity(wanted: DataFrame) -> DataFrame:
    """For each run and bolt: sub-units, worker-seconds, and the SPEC metrics."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = Window.partitionBy("_run", "unit").orderBy("t")
    have, need, seconds = f.col("parallelism"), f.col("needed"), f.col("seconds")
    changed = (f.col("sub_units") != f.lag("sub_units").over(order)).cast("int")
    stepped = (need != f.lag("needed").over(order)).cast("int")
    marked = wanted.withColumn("changed", f.coalesce(changed, f.lit(0))).withColumn(
        "stepped", f.coalesce(stepped, f.lit(0))
    )
    zero, total = f.lit(0.0), f.sum(seconds)
    return (
        marked.groupBy("unit", "topology", f.col("_run").alias("run"))
        .agg(
            f.sum(have * seconds).alias("worker-seconds"),
            f.sum(need * seconds).alias("worker-seconds demanded"),
            total.alias("seconds"),
            (f.sum(have * seconds) / total).alias("sub-units on average"),
            f.max("sub_units").alias("most"),
            (f.sum(seconds * f.greatest(zero, need - have) / need) / total).alias("accuracy under"),
            (f.sum(seconds * f.greatest(zero, have - need) / need) / total).alias("accuracy over"),
            (f.sum(f.when(have < need, seconds).otherwise(zero)) / total).alias("timeshare under"),
            (f.sum(f.when(have > need, seconds).otherwise(zero)) / total).alias("timeshare over"),
            (60 * (f.sum("changed") - f.sum("stepped")) / total).alias("jitter per minute"),
        )
        .orderBy("run", "unit")
    )


def _runs(windows: DataFrame, runs: DataFrame) -> DataFrame:
    """The runs, the newest first; one that has no end was killed, or goes on."""
    from pyspark.sql import functions as f

    seen = windows.groupBy(f.col("_run").alias("run"), "topology").agg(
        f.min("_time").alias("began"),
        f.max("t").alias("flowed"),
        f.sum(f.when(f.col("kind") == "spout", f.col("emitted") * f.col("seconds"))).alias("emitted"),
    )
    said = runs.select("run", "ended", "engine", "deaths", "replayed", "p50_ms", "p99_ms", "max_ms")
    return (
        seen.join(said, "run", "left")
        .orderBy(f.desc("began"))
        .select(
            "run",
            "topology",
            f.coalesce("ended", f.lit("has not ended")).alias("ended"),
            f.round("flowed", 1).alias("seconds"),
            f.round("emitted").cast("long").alias("tuples emitted"),
            "deaths",
            "replayed",
            "p50_ms",
            "p99_ms",
            "max_ms",
        )
    )


def _over_time(wanted: DataFrame) -> dict[str, DataFrame]:
    """Parallelism and demand of each bolt of the newest run, over time."""
    from pyspark.sql import functions as f

    newest = wanted.groupBy("_run").agg(f.min("_time").alias("began")).orderBy(f.desc("began")).limit(1).collect()
    if not newest:
        return {}
    run = wanted.where(f.col("_run") == newest[0]["_run"])
    units = [row["unit"] for row in run.select("unit").distinct().orderBy("unit").limit(_UNITS).collect()]
    over = run.groupBy(f.col("_time").alias("time")).pivot("unit", units)
    made = {"parallelism over time": over.agg(f.first("parallelism")).orderBy("time")}
    if len(units) == 1:
        both = run.select(
            f.col("_time").alias("time"), f.col("parallelism").alias(units[0]), f.col("needed").alias("demand")
        )
        made["parallelism over time"] = both.orderBy("time")
    made["tuples a second over time"] = over.agg(f.first("processed")).orderBy("time")
    return made


def _rates(windows: DataFrame) -> DataFrame:
    """Return the rates of bolts with so many sub-units, over all runs: windows in which that did not change."""
    from pyspark.sql import functions as f

    steady = windows.where("kind = 'bolt' and parallelism = sub_units")
    return (
        steady.groupBy("topology", "unit", "sub_units")
        .agg(
            f.avg("processed").alias("tuples/s"),
            f.max("processed").alias("most tuples/s"),
            (f.sum("busy") / f.sum(f.col("seconds") * f.col("sub_units"))).alias("busy"),
            f.expr("percentile_approx(p99_ms, 0.5)").alias("p99 ms, median"),
            f.sum("seconds").alias("seconds"),
        )
        .orderBy("topology", "unit", "sub_units")
        .select(f.concat("unit", f.lit(" x "), f.col("sub_units").cast("string")).alias("unit x sub-units"), "*")
        .drop("unit", "sub_units")
    )
