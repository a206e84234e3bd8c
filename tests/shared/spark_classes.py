"""Keeps the classes of Spark in the user's cache before tests start dozens of JVMs, each in two thirds of its processor time.

A test's own session could write them too, but then each that runs beside it goes without, and none is where a test expects its end.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from esault.errors import EsaultError
from esault.spark import session


def main() -> int:
    """Run one small session, which writes them if they are not there. 0: they are there; 1: they cannot be had."""
    if importlib.util.find_spec("pyspark") is None:
        return 1
    said: list[str] = []
    os.environ["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    try:
        with session("local[1]", conf={"spark.driver.memory": "512m"}, say=said.append) as spark:
            spark.range(10).selectExpr("id % 3 as k").groupBy("k").count().collect()
    except EsaultError as error:
        print(f"Spark starts without kept classes: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
