"""Delta Lake's own jar in a session: is it there, and is the session set up for it?"""

from __future__ import annotations

from typing import Any

__all__ = ["DELTA_CATALOG", "has_delta"]

_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
#: what the session's catalog must be for its tables
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def has_delta(spark: Any) -> bool:
    """Return whether statements on tables of Delta Lake are known: the jar is there, and both of its settings are made."""
    extensions = spark.conf.get("spark.sql.extensions", "") or ""
    catalog = spark.conf.get("spark.sql.catalog.spark_catalog", "") or ""
    return _EXTENSION in extensions and catalog == DELTA_CATALOG
