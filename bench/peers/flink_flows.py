"""The same workloads in Flink 2, run in a process of its own; prints one line of JSON.

python -m bench.peers.flink_flows words LOAD PASSES [--how sql|mini-batch|datastream] [--parallelism 2]

sql: Flink SQL, streaming, unbatched: one update per record out (R). No Python in the loop.
mini-batch: the same with Flink's mini-batches, aggregated locally first: one update per key per batch (M).
datastream: PyFlink's DataStream API with user code in Python, per tuple, in thread mode, that is in the JVM's process (R).

The job runs in the JVM of this process's own mini cluster, with its state on the heap and without checkpoints. The load is in memory
before the first read: for SQL as Flink's own rows, offered by Flink's generator source (bench/peers/FlinkEnds.java, which
holds the counting sink too); for DataStream as a collection. Objects are reused between operators: that is faster,
and not the default.

The rate ("steady") is from when the source has offered the first WARM_UP of the load to the end of the last result, since
the JVM compiles while it runs. `first` is the first result out, warm or not. DataStream's is from the first result to the last.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from bench.kit.steady import WARM_UP, steady
from bench.workloads.loads import LENGTH, read
from bench.workloads.plain import plain
from esault.errors import UsageError
from esault.spark.java import find_java

__all__ = ["run"]

ENDS = Path(__file__).with_name("FlinkEnds.java")
#: a mini-batch ends after so long, or so many rows for an operator
BATCH_DELAY, BATCH_ROWS = "500 ms", 100_000

SETTINGS = {
    "execution.runtime-mode": "STREAMING",
    "pipeline.object-reuse": "true",
    "state.backend.type": "hashmap",
}
MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": BATCH_DELAY,
    "table.exec.mini-batch.size": str(BATCH_ROWS),
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}

QUERIES = {
    "words": "SELECT word, COUNT(*) FROM offered CROSS JOIN UNNEST(SPLIT(line, ' ')) AS t(word) GROUP BY word",
    "sums": "SELECT k, SUM(v + 1) FROM offered WHERE MOD(v + 1, 2) = 0 GROUP BY k",
}
COLUMNS = {"words": "line STRING", "sums": "k STRING, v BIGINT"}


def _compiled(folder: str) -> str:
    """The two ends as a jar in `folder`; the gateway's JVM is up afterwards."""
    from pyflink.java_gateway import get_gateway

    compiler = get_gateway().jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setTargetVersion(8)
    compiler.cook(ENDS.read_text())
    path = os.path.join(folder, "ends.jar")
    with zipfile.ZipFile(path, "w") as jar:
        for name, code in dict(compiler.getBytecodes()).items():
            jar.writestr(f"{name.replace('.', '/')}.class", bytes(code))
        jar.writestr("META-INF/services/org.apache.flink.table.factories.Factory", "FlinkEnds\n")
    return path


def _sql(what: str, load: str, passes: int, batched: bool, parallelism: int, folder: str) -> dict[str, Any]:
    from pyflink.table import EnvironmentSettings, TableEnvironment

    out, rows_file = os.path.join(folder, "out"), os.path.join(folder, "load")
    rows = plain(load, rows_file) * passes
    warm = int(rows * WARM_UP) // parallelism
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {**SETTINGS, "parallelism.default": str(parallelism), "pipeline.jars": f"file://{_compiled(folder)}"}
    for name, value in {**settings, **(MINI_BATCH if batched else {})}.items():
        table.get_config().set(name, value)
    table.execute_sql(
        f"CREATE TABLE offered ({COLUMNS[what]}) WITH "
        f"('connector'='bench-ends', 'load'='{rows_file}', 'rows'='{rows}', 'warm'='{warm}', 'out'='{out}')"
    )
    table.execute_sql(
        "CREATE TABLE counted (k STRING, n BIGINT) WITH "
        f"('connector'='bench-ends', 'final'='{str(batched).lower()}', 'out'='{out}')"
    )
    table.execute_sql(f"INSERT INTO counted {QUERIES[what]}").wait()
    said = [json.loads(line) for line in Path(out).read_text().splitlines()]
    parts = [part for part in said if part.get("rows")]
    last = max(part["last"] for part in parts) / 1000
    # the later one of two sources: what is in doubt is for the peer
    begun = max(line["warm"] for line in said if "warm" in line) / 1000
    seen: dict[str, Any] = {
        "rows": sum(part["rows"] for part in parts),
        "first": min(part["first"] for part in parts) / 1000,
        "last": last,
        "steady": steady((rows - warm * parallelism) * (LENGTH if what == "words" else 1), begun, last),
    }
    if batched:
        seen["final"] = {key: value for part in parts for key, value in part["final"].items()}
    return seen


def _datastream(what: str, load: str, passes: int, parallelism: int, folder: str) -> dict[str, Any]:
    from pyflink.common import Configuration, Types
    from pyflink.datastream import StreamExecutionEnvironment

    from bench.peers.flink_user_code import Running, split

    # the interpreter inside the JVM knows nothing of this virtual environment
    os.environ["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    out = os.path.join(folder, "out")
    configuration = Configuration()
    thread = {"python.execution-mode": "thread", "python.executable": sys.executable}
    for name, value in {**SETTINGS, **thread, "parallelism.default": str(parallelism)}.items():
        configuration.set_string(name, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    if what == "words":
        offered = [line for _, line in read(load)] * passes
        pairs = environment.from_collection(offered, Types.STRING()).flat_map(split, pair)
    else:
        numbers = environment.from_collection(list(read(load)) * passes, pair)
        pairs = numbers.map(lambda row: (row[0], row[1] + 1), pair).filter(lambda row: row[1] % 2 == 0)
    counted = pairs.key_by(lambda row: row[0], Types.STRING()).process(Running(out), pair)
    from pyflink.datastream.connectors import Sink
    from pyflink.java_gateway import get_gateway

    counted.sink_to(Sink(get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()))
    environment.execute("bench")
    parts = [part for part in map(json.loads, Path(out).read_text().splitlines()) if part["rows"]]
    return {
        "rows": sum(part["rows"] for part in parts),
        "first": min(part["first"] for part in parts),
        "last": max(part["last"] for part in parts),
    }


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["words", "sums"])
    parser.add_argument("load")
    parser.add_argument("passes", type=int)
    parser.add_argument("--how", choices=["sql", "mini-batch", "datastream"], default="sql")
    parser.add_argument("--parallelism", type=int, default=1)
    arguments = parser.parse_args()
    try:
        os.environ["JAVA_HOME"] = find_java(os.environ).home
    except UsageError as error:
        sys.exit(str(error))
    with tempfile.TemporaryDirectory() as folder:
        job = (arguments.what, arguments.load, arguments.passes)
        if arguments.how == "datastream":
            seen = _datastream(*job, arguments.parallelism, folder)
        else:
            seen = _sql(*job, arguments.how == "mini-batch", arguments.parallelism, folder)
    print(json.dumps(seen))


if __name__ == "__main__":
    run()
