"""A Spark that has a jar of Delta Lake for its version, in an environment of its own in the user's cache: 0.5 GB, once for a machine.

python tests/shared/delta_spark.py    makes it

There is no jar for the newest Spark, which the other tests run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import maven

SPARK, DELTA = "4.2.1", "4.4.0"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "esault" / f"spark-{SPARK}-delta-{DELTA}"
#: those of its dependencies that Spark does not have
_JARS = "delta-spark_4.2_2.13,delta-storage,delta-kernel-api,delta-kernel-defaults"
_POM = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>esault</groupId><artifactId>delta-for-tests</artifactId><version>1</version><dependencies>
<dependency><groupId>io.delta</groupId><artifactId>delta-spark_4.2_2.13</artifactId><version>{DELTA}</version></dependency>
</dependencies></project>
"""
#: a JVM that lives for seconds is not worth the best compiler
_CONF = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
#: what the other Spark reads
_PROGRAM = """
import json, sys
from pyspark.sql import SparkSession

path, conf, query = sys.argv[1:]
builder = SparkSession.builder.master("local[1]")
for name, value in json.loads(conf).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
for each in query.split(";"):
    print("ANSWER", json.dumps([row.asDict() for row in spark.sql(each.format(path=path)).collect()], default=str))
spark.stop()
"""


def is_there() -> bool:
    """Return whether it has been made."""
    return _CACHE.is_dir() and shutil.which("java") is not None


def make() -> None:
    """Make it, where it is not there."""
    if _CACHE.is_dir():
        return
    with maven.fetched_once(_CACHE) as made:
        venv.create(made, with_pip=True)
        python = made / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", f"pyspark=={SPARK}"], check=True)
        maven.copy_jars(_POM, made / "jars", _JARS)


def python() -> Path:
    """Return its Python."""
    return _CACHE / "bin" / "python"


def conf() -> dict[str, str]:
    """Return its settings, with the jars."""
    return {"spark.jars": ",".join(str(jar) for jar in sorted((_CACHE / "jars").iterdir())), **_CONF}


def answers(path: Path, queries: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Return the rows of each query; {path} in it is that of the table."""
    asked = [python(), "-c", _PROGRAM, str(path), json.dumps(conf()), ";".join(queries)]
    # neither the Spark nor the packages of the tests
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=280, env=env)
    if done.returncode:
        raise AssertionError(done.stderr[-3000:])
    return [json.loads(line[len("ANSWER ") :]) for line in done.stdout.splitlines() if line.startswith("ANSWER ")]


if __name__ == "__main__":
    make()
    print(_CACHE, file=sys.stderr)
