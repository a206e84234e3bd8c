"""The same workloads in Spark Structured Streaming, run in a process of its own; prints one line of JSON.

python -m bench.peers.spark_flows words LOAD PASSES [--how native|python]

native: split, filter and aggregation in Spark's own generated code; no Python in the loop.
python: user code in Python, per tuple, in mapInArrow; Spark aggregates.

Update mode: one update per key per micro-batch (M), into Spark's sink that does nothing ("noop"). State is in Spark's default
store, with the checkpoint that Spark insists on in a temporary folder. A source in memory is for Spark's own tests, so the load
comes as Parquet, a file for each pass, in the page cache since it was just written; a trigger takes so many files that
there are BATCHES micro-batches.

The rate ("steady") is from the start of the first micro-batch after WARM_UP of the load to the end of the last one, its
commit included. `first` is the end of the first micro-batch, `rows` the updates that Spark counted. The final counts are
read out of Spark's state when the query is over.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from bench.kit.steady import WARM_UP, steady
from bench.workloads.loads import LENGTH, read
from esault.errors import EsaultError, UsageError
from esault.spark.session import session

__all__ = ["run"]

#: a micro-batch costs a few tenths of a second whatever is in it: few and large are Spark's best
BATCHES = 10

CONF = {
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def split(batches: Iterator[Any]) -> Iterator[Any]:
    """Workload A's user code in Python: a sentence's words."""
    import pyarrow

    for batch in batches:
        words: list[str] = []
        for line in batch.column(0).to_pylist():
            words.extend(line.split())
        yield pyarrow.RecordBatch.from_pydict({"k": words})


def added(batches: Iterator[Any]) -> Iterator[Any]:
    """Workload B's: +1, and those that are even."""
    import pyarrow

    for batch in batches:
        pairs = zip(*(column.to_pylist() for column in batch.columns))
        kept = [(key, value + 1) for key, value in pairs if (value + 1) % 2 == 0]
        yield pyarrow.RecordBatch.from_pydict({"k": [key for key, _ in kept], "v": [value for _, value in kept]})


def _files(what: str, load: str, passes: int, folder: str) -> int:
    """The load as a file for each pass, by links to the first one; how many rows each has."""
    import pyarrow
    import pyarrow.parquet

    rows = read(load)
    columns: dict[str, Any] = {"line": [line for _, line in rows]}
    if what == "sums":
        columns = {"k": [key for key, _ in rows], "v": [value for _, value in rows]}
    first = os.path.join(folder, "0.parquet")
    pyarrow.parquet.write_table(pyarrow.table(columns), first)
    for i in range(1, passes):
        os.link(first, os.path.join(folder, f"{i}.parquet"))
    return len(rows)


def _counted(spark: Any, what: str, python: bool, folder: str, files: int) -> Any:
    """Return what the query puts out, as a frame."""
    from pyspark.sql import functions as f

    schema = "line string" if what == "words" else "k string, v long"
    offered = spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(folder)
    if what == "words":
        words = (
            offered.mapInArrow(split, "k string")
            if python
            else offered.select(f.explode(f.split("line", " ")).alias("k"))
        )
        return words.groupBy("k").agg(f.count("*").alias("n"))
    if python:
        even = offered.mapInArrow(added, "k string, v long")
    else:
        even = offered.select("k", (f.col("v") + 1).alias("v")).where("v % 2 = 0")
    return even.groupBy("k").agg(f.sum("v").alias("n"))


def _measured(what: str, load: str, passes: int, python: bool, folder: str) -> dict[str, Any]:
    offered, kept = os.path.join(folder, "load"), os.path.join(folder, "checkpoint")
    os.mkdir(offered)
    size = _files(what, load, passes, offered)
    per = -(-passes // BATCHES)
    with session("local[2]", conf=CONF) as spark:
        frame = _counted(spark, what, python, offered, per)
        query = frame.writeStream.outputMode("update").format("noop").option("checkpointLocation", kept)
        started = query.trigger(availableNow=True).start()
        started.awaitTermination()
        batches = [batch for batch in started.recentProgress if batch["numInputRows"]]
        final = {
            row[0]: row[1] for row in spark.read.format("statestore").load(kept).select("key.k", "value.*").collect()
        }
    begun = [datetime.fromisoformat(batch["timestamp"].replace("Z", "+00:00")).timestamp() for batch in batches]
    ended = [at + batch["durationMs"]["triggerExecution"] / 1000 for at, batch in zip(begun, batches)]
    taken = sum(batch["numInputRows"] for batch in batches)
    if taken != size * passes:
        sys.exit(f"Spark took {taken:,} rows of {size * passes:,}")
    warm = int(len(batches) * WARM_UP)
    rows = sum(batch["numInputRows"] for batch in batches[warm:])
    return {
        "rows": sum(state["numRowsUpdated"] for batch in batches for state in batch["stateOperators"]),
        "first": ended[0],
        "last": ended[-1],
        "batches": len(batches),
        "steady": steady(rows * (LENGTH if what == "words" else 1), begun[warm], ended[-1]),
        "final": final,
    }


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["words", "sums"])
    parser.add_argument("load")
    parser.add_argument("passes", type=int)
    parser.add_argument("--how", choices=["native", "python"], default="native")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            seen = _measured(arguments.what, arguments.load, arguments.passes, arguments.how == "python", folder)
        except (EsaultError, UsageError) as error:
            sys.exit(str(error))
    print(json.dumps(seen))


if __name__ == "__main__":
    run()
