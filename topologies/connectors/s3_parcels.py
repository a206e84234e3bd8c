"""Parcels from objects of JSON lines in a bucket of S3, the heavy ones to a table of Parquet in the bucket.

Shows object stores as a source and as a sink. Out comes a table, whose parts Spark, DuckDB, Polars and pandas read; with checkpoints
each parcel is there once.

    aws s3 mb s3://parcels; aws s3 cp parcels.jsonl s3://parcels/in/    # or any other store that speaks S3: AWS_ENDPOINT_URL
    esault run topologies/connectors/s3_parcels.py --checkpoint 1
    python -c "from esault.sinks.landing import parts; print(parts('s3://parcels/heavy'))"
"""

from esault import Topology
from esault.sinks import Parquet
from esault.sources import JsonFiles

__all__ = ["topology"]


def topology(url: str = "s3://parcels", name: str = "s3_parcels") -> Topology:
    """Return it. It ends with the last object."""
    t = Topology(name)
    parcels = t.spout("parcels", JsonFiles(f"{url}/in", key="id"), parallelism=2)
    heavy = parcels.filter(lambda parcel: parcel["grams"] > 2_000)
    heavy.sink("heavy", Parquet(f"{url}/heavy", {"id": int, "grams": int, "city": str}, mode="replace"))
    return t
