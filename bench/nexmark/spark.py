"""One of Nexmark's queries in plain Spark SQL, a batch over Parquet in the page cache; prints one line of JSON.

python -m bench.nexmark.spark QUERY EVENTS [--check]

What Spark does best with all events at hand, for the engines that get them one by one to be seen beside: its own generated code, no
Python, no state between batches. Timed is the second run of the query, into Spark's sink that does nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from bench.kit.spark_batch import CONF, timed
from bench.nexmark.answers import SQL, rows, tables
from esault.spark.session import session

__all__ = ["run"]

#: files of a table, so that both cores have some
FILES = 4


def run() -> None:
    """Run as the arguments say."""
    import pyarrow.parquet

    parser = argparse.ArgumentParser()
    parser.add_argument("query", choices=list(SQL))
    parser.add_argument("events", type=int)
    parser.add_argument("--check", action="store_true", help="compare every row with DuckDB's")
    arguments = parser.parse_args()
    wrong, checked = None, 0
    with tempfile.TemporaryDirectory() as folder, session("local[2]", conf=CONF) as spark:
        made = tables(arguments.events)
        for name, table in made.items():
            (Path(folder) / name).mkdir()
            each = -(-table.num_rows // FILES)
            for i in range(FILES):
                pyarrow.parquet.write_table(table.slice(i * each, each), Path(folder) / name / f"{i}.parquet")
            spark.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
        begun, seconds = timed(spark, [SQL[arguments.query]])
        found = rows((row[0], tuple(row[1:])) for row in spark.sql(SQL[arguments.query]).collect())
    if arguments.check:
        from bench.nexmark.run import difference

        checked, wrong = difference(arguments.query, arguments.events, found)
    result = {"first": begun, "seconds": seconds, "read": arguments.events, "rows": found.total()}
    print(json.dumps({**result, "checked": checked, "wrong": wrong}))


if __name__ == "__main__":
    run()
