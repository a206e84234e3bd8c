"""Queries in plain Spark SQL, a batch: how they are timed."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

__all__ = ["CONF", "timed"]

CONF = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}


def timed(spark: Any, queries: Iterable[str]) -> tuple[float, float]:
    """Return when the queries began the second time, and how many seconds they took, one after the other, into Spark's sink that does nothing.

    The first time Spark compiles them.
    """
    begun = 0.0
    for _ in range(2):
        begun = time.time()
        for query in queries:
            spark.sql(query).write.format("noop").mode("overwrite").save()
    return begun, time.time() - begun
