"""Spark for a JVM that lives for seconds: no compiler of queries, no second plan, one piece, and Java's quick compiler.

Tests that start commands give them these by files and variables that the commands know; sessions in a test's own process
take them as `conf`.
"""

from __future__ import annotations

import os
from pathlib import Path

#: to plan, compile and cut small tables takes longer than to read them
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "512m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
#: its best compiler, and a collector of garbage for many cores, are not worth it either
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def environment(folder: Path) -> dict[str, str]:
    """The environment of a command that starts Spark; `folder` is there, and gets Spark's settings."""
    settings = folder / "spark-defaults.conf"
    settings.write_text("".join(f"{key} {value}\n" for key, value in SETTINGS.items()))
    return {**os.environ, "SPARK_CONF_DIR": str(folder), "JAVA_TOOL_OPTIONS": JAVA}
