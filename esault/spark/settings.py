"""Settings of a session of Spark for a while, also of one that is the user's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from esault.spark.failure import gone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["settings"]


@contextlib.contextmanager
def settings(spark: SparkSession, chosen: Mapping[str, str]) -> Iterator[None]:
    """Have a session's settings be these for the time of the block; as before afterwards."""
    before = {name: spark.conf.get(name, None) for name in chosen}
    try:
        for name, value in chosen.items():
            spark.conf.set(name, value)
        yield
    finally:
        with contextlib.suppress(*gone()):  # what has gone with its Java needs none
            for name, old in before.items():
                if old is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, old)
