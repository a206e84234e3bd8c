"""Tables of Delta Lake by its own jar: registered as such, compacted and vacuumed by statements."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import delta_spark
import depth
import pytest

import esault

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'esault[delta]'")
pa = pytest.importorskip("pyarrow")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not delta_spark.is_there(), reason="no Spark that Delta Lake has a jar for: python tests/shared/delta_spark.py"
    ),
    depth.deep("a JVM of another Spark; what does not ask the jar is in tests/unit/spark/tables/test_upkeep.py"),
]
#: the other Spark's Python has its own pyspark, and ours behind it
PROGRAM = """
import json, sys

path, other, conf, *places = sys.argv[1:]
sys.path += places
from pyspark.sql import SparkSession
from esault.errors import UsageError
from esault.spark import register_table
from esault.spark.tables.upkeep import Upkeep

builder = SparkSession.builder.master("local[1]")
for name, value in json.loads(conf).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
said = []
upkeep = Upkeep(spark, said.append)
spark.sql("create database shop")
for _ in range(2):
    version = register_table(spark, "shop.numbers", path).version
done = upkeep.compact(path)
removed = [upkeep.vacuum(path), upkeep.vacuum(path, 0.0, force=True)]
rows = sorted(row[0] for row in spark.sql("select n from shop.numbers").collect())
try:
    register_table(spark, "shop.numbers", other)
except UsageError as error:
    said.append(str(error))
spark.stop()
print("ANSWER", json.dumps([version, done.before, done.after, removed, rows, said]))
"""


def test_the_jar_registers_compacts_and_vacuums(tmp_path: Path) -> None:
    table, other = tmp_path / "numbers", tmp_path / "other"
    for n in range(3):
        deltalake.write_deltalake(table, pa.table({"n": [n]}), mode="append")
    deltalake.write_deltalake(other, pa.table({"n": [9]}))
    conf = {**delta_spark.conf(), "spark.sql.warehouse.dir": str(tmp_path / "warehouse")}
    places = [str(Path(esault.__file__).parents[1]), *(place for place in sys.path if place.endswith("site-packages"))]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    command = [str(delta_spark.python()), "-c", PROGRAM, str(table), str(other), json.dumps(conf), *places]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = next(line for line in done.stdout.splitlines() if line.startswith("ANSWER "))
    version, before, after, removed, rows, said = json.loads(answer.removeprefix("ANSWER "))
    assert (version, before, after, removed, rows) == (None, 3, 1, [0, 3], [0, 1, 2])
    assert said[0] == f"compacting 3 files of {table}, by Spark ..."
    assert said[1].startswith("shop.numbers is a table in ")
    assert sorted(esault.read(table)["n"].to_pylist()) == [0, 1, 2]
