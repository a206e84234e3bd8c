"""Lines of the objects of a bucket that gets objects, each of them a split, to objects of JSON lines and to a table."""

from __future__ import annotations

from a_folder import InOrder

from esault import Topology, by_key
from esault.sinks import JsonLines, Parquet
from esault.sources import Directory


def topology(endpoint: str, name: str = "from_s3") -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    options = {"endpoint_url": endpoint}
    source = Directory("s3://bucket/in", every=0.3, storage_options=options)
    lines = t.spout("lines", source, max_parallelism=8)
    ordered = lines.bolt("ordered", InOrder, grouping=by_key(), parallelism=2)
    ordered.sink("rows", JsonLines("s3://bucket/out", storage_options=options))
    ordered.sink("table", Parquet("s3://bucket/table", {"file": str, "line": str}, storage_options=options))
    return t
