"""The question of one of the topologies in plain Spark SQL, a batch over the same files; prints one line of JSON.

python -m bench.engines.spark FOLDER RIGHT

What Spark does best with all data at hand: its own generated code, no Python, no state between batches. The files are read by Spark's own
readers, from the page cache, as text. Timed are the queries of a topology one after the other, the second time, into Spark's sink that
does nothing; then every row is compared with what is pickled in the file RIGHT. The sales are asked for as a streaming query, too.
"""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.engines.answers import KMH, Q3, TPCH, Tables, difference, rows, with_top
from bench.engines.data import Data
from bench.kit.spark_batch import CONF, timed
from esault.spark.session import session

__all__ = ["SQL", "found", "run", "streamed", "tables"]

#: topology -> table -> query; the first column is a row's key, the others its value
SQL = {
    "word_count": {
        "table": "SELECT word, count(*) FROM (SELECT explode(split(lower(value), '[ \\t]+')) AS word FROM lines) WHERE word <> '' "
        "GROUP BY word"
    },
    "flight_delays": {
        "lines": "SELECT concat(carrier, ' ', origin), count(*), sum(late), max(late) FROM flights WHERE late IS NOT NULL GROUP BY 1",
        "days": "SELECT concat_ws('-', year, lpad(month, 2, '0'), lpad(day, 2, '0')), count(*), count_if(late IS NULL), "
        "count_if(late >= 60) FROM flights GROUP BY 1",
    },
    "tpch_q3": {"orders": Q3},
    "traffic": {
        "roads": "SELECT concat_ws(' ', floor(lat * 1000), floor(lon * 1000), hour(timestamp_seconds(t))), count(*), "
        f"avg({KMH}) FROM pairs WHERE t > t0 AND t <= t0 + 60 GROUP BY 1",
        "bad": "SELECT 'lines', (SELECT count(*) FROM lines) - (SELECT count(*) FROM pairs) + "
        "(SELECT count(*) FROM pairs WHERE t <= t0)",
    },
    "sales": {
        "sold": "SELECT concat(shop, ' ', hour), n, paid, least, most FROM (SELECT shop, at div 3600 * 3600 AS hour, count(*) AS n, "
        "sum(cents) AS paid, min(cents) AS least, max(cents) AS most FROM sales GROUP BY 1, 2)"
    },
}
#: lines with their trip and number; fixes with what was before them in their trip, as in bench.engines.answers
LINES = """
SELECT trip, n, split(trim(line), ',') AS f FROM files LATERAL VIEW posexplode(split(value, '\\r?\\n')) AS n, line
WHERE n >= 6 AND line <> ''
"""
PAIRS = """
SELECT *, lag(t) OVER trips AS t0, radians(lat) AS y, radians(lag(lat) OVER trips) AS y0,
       radians(lon) AS x, radians(lag(lon) OVER trips) AS x0
FROM (SELECT trip, n, try_cast(get(f, 0) AS DOUBLE) AS lat, try_cast(get(f, 1) AS DOUBLE) AS lon,
             unix_timestamp(try_cast(concat(get(f, 5), ' ', get(f, 6)) AS TIMESTAMP)) AS t FROM lines WHERE size(f) = 7)
WHERE abs(lat) <= 90 AND abs(lon) <= 180 AND t IS NOT NULL WINDOW trips AS (PARTITION BY trip ORDER BY n)
"""


def tables(spark: Any, data: Data) -> None:
    """Views of the files, by the names that the queries have."""
    from pyspark.sql import functions as f

    folder = data.folder
    if data.name == "word_count":
        spark.read.text(f"{folder}/*.txt").createOrReplaceTempView("lines")
    elif data.name == "flight_delays":
        flights = spark.read.csv(f"{folder}/flights.csv", header=True, nullValue="NA")
        late = f.col("arr_delay").cast("double").cast("bigint")
        flights.withColumn("late", late).createOrReplaceTempView("flights")
    elif data.name == "sales":
        spark.read.parquet(f"{folder}/*.parquet").createOrReplaceTempView("sales")
    elif data.name == "tpch_q3":
        for table, columns in TPCH.items():
            spark.read.csv(f"{folder}/{table}.tbl", schema=columns, sep="|").createOrReplaceTempView(table)
    else:
        files = spark.read.text(f"{folder}/Data/*/Trajectory/*.plt", wholetext=True)
        files.withColumn("trip", f.input_file_name()).createOrReplaceTempView("files")
        spark.sql(LINES).createOrReplaceTempView("lines")
        spark.sql(PAIRS).createOrReplaceTempView("pairs")


def found(spark: Any, data: Data) -> Tables:
    """Return what the queries give, as the topology has it in the end."""
    return with_top(
        data.name,
        {
            table: rows(data.name, list(map(tuple, spark.sql(query).collect())))
            for table, query in SQL[data.name].items()
        },
    )


def streamed(spark: Any, data: Data, write: Callable[[Any], Any]) -> float:
    """Ask the question of the sales as a streaming query, of all that is there; return how many seconds it took. `write` is told its writer."""
    from pyspark.sql import functions as f

    files = spark.readStream.schema(spark.table("sales").schema).parquet(f"{data.folder}/*.parquet")
    timed = files.withColumn("time", f.timestamp_seconds("at")).withWatermark("time", "60 seconds")
    found = timed.groupBy("shop", f.window("time", "1 hour")).agg(
        f.count("*"), f.sum("cents"), f.min("cents"), f.max("cents")
    )
    rows = found.select(f.concat_ws(" ", "shop", f.unix_seconds("window.start")), *found.columns[2:])
    with tempfile.TemporaryDirectory() as folder:
        writer = rows.writeStream.outputMode("update").trigger(availableNow=True).option("checkpointLocation", folder)
        began = time.time()
        write(writer).start().awaitTermination()
        return time.time() - began


def _streamed(spark: Any, data: Data, right: Tables) -> tuple[float, str | None]:
    """Return the seconds of the second time, into Spark's sink that does nothing, and what is wrong with the rows of a third."""
    landed: dict[Any, tuple[Any, ...]] = {}

    def keep(frame: Any, number: int) -> None:
        landed.update((row[0], tuple(row[1:])) for row in frame.collect())

    _, seconds = (streamed(spark, data, lambda writer: writer.format("noop")) for _ in range(2))
    streamed(spark, data, lambda writer: writer.foreachBatch(keep))
    return seconds, difference(right, {"sold": landed})[1]


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("right", type=Path)
    arguments = parser.parse_args()
    data = Data.read(arguments.folder)
    with session("local[2]", conf=CONF) as spark:
        tables(spark, data)
        begun, seconds = timed(spark, SQL[data.name].values())
        landed = found(spark, data)
        right = pickle.loads(arguments.right.read_bytes())
        checked, wrong = difference(right, landed)
        result = {"first": begun, "seconds": seconds, "read": data.tuples, "rows": checked}
        if data.name == "sales" and wrong is None:
            result["stream_seconds"], wrong = _streamed(spark, data, right)
    print(json.dumps({**result, "checked": checked, "wrong": wrong}))


if __name__ == "__main__":
    run()
