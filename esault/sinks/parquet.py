"""Plain Parquet files."""

from __future__ import annotations

from typing import ClassVar

from esault.sinks.landing.table import LandedTable

__all__ = ["Parquet"]


class Parquet(LandedTable):
    """Lands rows as Parquet with the declared columns and no others: for pandas, Polars, DuckDB and the like.

    Arguments and types as for `SparkTable`, and the same log, so rows become visible by whole epochs and a crash leaves
    none half. Without ids it costs the units before it nothing, and rows that a replay repeats stay repeated: use
    `SparkTable`, or a run with checkpoints, where that matters.

    Read the parts that the log names: `pandas.read_parquet(esault.sinks.landing.parts(path))`. Reading the whole folder
    also works as long as no process crashed and nothing was compacted or replaced.
    """

    delivery_guarantee: ClassVar[str] = "with checkpoints each row is there once"
    extra: ClassVar[str] = "parquet"
