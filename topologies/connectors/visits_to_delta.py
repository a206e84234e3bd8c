"""Visits of a web site, from files of JSON lines into a table of Delta Lake, a folder for each day.

Shows `DeltaSink`: a version for each checkpoint. Out comes the table `out/visits`, which Delta's readers read while it grows: Polars,
DuckDB, Spark, or `esault.read`. Needs no server.

    mkdir -p in && echo '{"user": "ada", "page": "/tea", "at": "2026-02-03T04:05:06Z"}' > in/1.jsonl
    esault run topologies/connectors/visits_to_delta.py --checkpoint 1
    python -c "import polars; print(polars.read_delta('out/visits'))"
"""

from datetime import date, datetime

from esault import Topology
from esault.sinks import DeltaSink
from esault.sources import JsonFiles

__all__ = ["topology"]

COLUMNS = {"user": str, "page": str, "at": datetime, "day": date}


def visit(value):
    """The visit with its time as one, and its day."""
    at = datetime.fromisoformat(value["at"].replace("Z", "+00:00"))
    return {"page": value["page"], "at": at, "day": at.date()}


def topology(folder: str = "in", out: str = "out/visits", name: str = "visits") -> Topology:
    """Return it; it ends with the files that are there."""
    t = Topology(name)
    visits = t.spout("visits", JsonFiles(folder, key="user")).map(visit)
    visits.sink("table", DeltaSink(out, COLUMNS, mode="append", partition_by="day"))
    return t
