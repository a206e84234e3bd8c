"""The question of one of the topologies in plain Spark SQL, a batch over the same files; prints one line of JSON.

python -m bench.engines.spark FOLDER RIGHT

What Spark does best with all data at hand: its own generated code, no Python, no state between batches. The files are read by Spark's own
readers, from the page cache, as text. Timed are the queries of a topology one after the other, the second time, into Spark's sink that
does nothing; then every row is compared with what is pickled in the file RIGHT.
"""

from __future__ import annotations

import argparse
import json
import pickle
from pathlib import Path
from typing import Any

from bench.engines.answers import KMH, Q3, TPCH, Tables, difference, rows, with_top
from bench.engines.data import Data
from bench.kit.spark_batch import CONF, timed
from esault.spark.session import session

__all__ = ["SQL", "found", "run", "tables"]

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
    checked, wrong = difference(pickle.loads(arguments.right.read_bytes()), landed)
    result = {"first": begun, "seconds": seconds, "read": data.tuples, "rows": checked}
    print(json.dumps({**result, "checked": checked, "wrong": wrong}))


if __name__ == "__main__":
    run()
