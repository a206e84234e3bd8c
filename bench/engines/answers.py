"""The rows that topologies must end with: the same questions in SQL, by DuckDB, on the same files; and the rows that runs have landed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Tables", "answer", "difference", "landed", "updates"]

#: what is left in the end: for each table of a topology, the last row of each key
Tables = dict[str, dict[Any, tuple[Any, ...]]]

TPCH = {
    "customer": "c_custkey INT, c_name STRING, c_address STRING, c_nationkey INT, c_phone STRING, c_acctbal DECIMAL(15, 2), "
    "c_mktsegment STRING, c_comment STRING, c_end STRING",
    "orders": "o_orderkey INT, o_custkey INT, o_orderstatus STRING, o_totalprice DECIMAL(15, 2), o_orderdate DATE, "
    "o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING, o_end STRING",
    "lineitem": "l_orderkey INT, l_partkey INT, l_suppkey INT, l_linenumber INT, l_quantity DECIMAL(15, 2), "
    "l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_tax DECIMAL(15, 2), l_returnflag STRING, l_linestatus STRING, "
    "l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, l_comment STRING, "
    "l_end STRING",
}
#: without its LIMIT 10, so that all orders are compared; DuckDB and Spark read it alike
Q3 = """
SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey
"""

#: fixes with what was before them in their trip, in the order of the lines
PAIRS = """
CREATE VIEW lines AS
SELECT filename AS trip, row_number() OVER () AS n, string_split(trim(line, E'\r\n '), ',') AS f
FROM read_csv('{folder}/Data/*/Trajectory/*.plt', columns = {{'line': 'TEXT'}}, delim = '\x01', quote = '', escape = '',
              header = false, skip = 6, filename = true, auto_detect = false);
CREATE VIEW pairs AS
SELECT *, lag(t) OVER trips AS t0, radians(lat) AS y, radians(lag(lat) OVER trips) AS y0,
       radians(lon) AS x, radians(lag(lon) OVER trips) AS x0
FROM (SELECT trip, n, try_cast(f[1] AS DOUBLE) AS lat, try_cast(f[2] AS DOUBLE) AS lon,
             epoch(try_cast(f[6] || ' ' || f[7] AS TIMESTAMP)) AS t FROM lines WHERE len(f) = 7)
WHERE abs(lat) <= 90 AND abs(lon) <= 180 AND t IS NOT NULL WINDOW trips AS (PARTITION BY trip ORDER BY n)
"""
#: km/h between two fixes; DuckDB and Spark read it alike
KMH = "3.6 * 2 * 6371000 * asin(sqrt(pow(sin((y - y0) / 2), 2) + cos(y0) * cos(y) * pow(sin((x - x0) / 2), 2))) / (t - t0)"

#: topology -> what makes its tables, and table -> query; the first column is a row's key, the others its value
SQL = {
    "word_count": (
        "CREATE TABLE lines AS SELECT unnest(string_split(content, chr(10))) AS line FROM read_text('{folder}/*.txt')",
        {
            "table": "SELECT word, count(*) FROM (SELECT unnest(regexp_extract_all(lower(line), '\\S+')) AS word FROM lines) "
            "GROUP BY word"
        },
    ),
    "flight_delays": (
        "CREATE TABLE flights AS SELECT * FROM read_csv('{folder}/flights.csv', nullstr = ['NA', ''])",
        {
            "lines": "SELECT carrier || ' ' || origin, count(*), sum(arr_delay)::BIGINT, max(arr_delay)::BIGINT FROM flights "
            "WHERE arr_delay IS NOT NULL GROUP BY 1",
            "days": "SELECT strftime(make_date(year, month, day), '%Y-%m-%d'), count(*), count(*) FILTER (arr_delay IS NULL), "
            "count(*) FILTER (arr_delay >= 60) FROM flights GROUP BY 1",
        },
    ),
    "tpch_q3": (
        "".join(
            f"CREATE TABLE {table} ({columns}); COPY {table} FROM '{{folder}}/{table}.tbl' (DELIMITER '|', HEADER false);"
            for table, columns in TPCH.items()
        ),
        {"orders": Q3},
    ),
    "traffic": (
        PAIRS,
        {
            "roads": "SELECT concat_ws(' ', floor(lat * 1000)::INT, floor(lon * 1000)::INT, hour(to_timestamp(t))), count(*), "
            f"avg({KMH}) FROM pairs WHERE t > t0 AND t <= t0 + 60 GROUP BY 1",
            "bad": "SELECT 'lines', (SELECT count(*) FROM lines) - (SELECT count(*) FROM pairs) + "
            "(SELECT count(*) FROM pairs WHERE t <= t0)",
        },
    ),
    "sales": (
        "CREATE VIEW sales AS SELECT * FROM read_parquet('{folder}/*.parquet')",
        {
            "sold": 'SELECT shop || \' \' || ("at" - "at" % 3600), count(*), sum(cents)::BIGINT, min(cents), max(cents) FROM sales '
            "GROUP BY 1"
        },
    ),
}

#: topology -> table -> (columns of the landed table, the one that only grows): of a key's rows the one with the most holds
GROWS: dict[str, dict[str, tuple[str, ...]]] = {
    "word_count": {"table": ("word", "total")},
    "flight_delays": {
        "lines": ("line", "flights", "minutes", "worst"),
        "days": ("day", "flights", "cancelled", "late"),
    },
    "tpch_q3": {"orders": ("order", "revenue", "date", "priority")},
    "traffic": {"roads": ("road", "fixes", "kmh")},
    "sales": {"sold": ("shop", "n", "paid", "least", "most")},
}


def answer(name: str, folder: Path) -> Tables:
    """By DuckDB, of the data in `folder`."""
    import duckdb

    make, queries = SQL[name]
    with duckdb.connect() as sql:
        sql.execute("SET TimeZone = 'UTC'")
        sql.execute(make.format(folder=folder))
        found = {table: rows(name, sql.execute(query).fetchall()) for table, query in queries.items()}
    return with_top(name, found)


def rows(name: str, found: list[Any]) -> dict[Any, tuple[Any, ...]]:
    """A query's rows by key; of TPC-H, money in ten-thousandths and dates as text, as the topology has them."""
    if name == "tpch_q3":
        found = [(order, int(revenue.scaleb(4)), f"{date}", priority) for order, revenue, date, priority in found]
    return {key: tuple(value) for key, *value in found}


def with_top(name: str, found: Tables) -> Tables:
    """With the ten best orders, by their place, where they are asked for."""
    if name == "tpch_q3":
        best = sorted(found["orders"].items(), key=lambda row: (-row[1][0], row[1][1], row[0]))[:10]
        found["top"] = {place: (order, *value) for place, (order, value) in enumerate(best, 1)}
    return found


def landed(name: str, out: Path) -> Tables:
    """Return what a run of the topology left in the places that its file names, below `out`."""
    import duckdb

    from esault.sinks.landing import parts

    found: Tables = {}
    for table, (key, grows, *others) in GROWS[name].items():
        folder = out if name == "word_count" else out / table
        values = ", ".join(f'arg_max("{column}", "{grows}")' for column in (grows, *others))
        with duckdb.connect() as sql:
            by = f'"{key}"' if name != "sales" else f'"{key}" || \' \' || "start"::BIGINT'
            query = f"SELECT {by}, {values} FROM read_parquet(?) GROUP BY 1"
            found[table] = {key: tuple(value) for key, *value in sql.execute(query, [parts(folder)]).fetchall()}
    if name == "tpch_q3":
        found["top"] = {row["key"]: tuple(row["value"]) for row in _lines(out, "top")}
    if name == "traffic":
        found["bad"] = {"lines": (len(_lines(out, "bad")),)}
    return found


def _lines(out: Path, name: str) -> list[Any]:
    """Return what stands in a file of JSON lines."""
    return [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]


def difference(right: Tables, found: Mapping[str, Mapping[Any, tuple[Any, ...]]]) -> tuple[int, str | None]:
    """Return how many rows there must be, and what is wrong with those that were found; None where nothing is.

    Numbers with fractions may differ in their ninth digit: sums depend on the order of what is summed.
    """
    count, wrong = sum(map(len, right.values())), []
    for table in {**right, **found}:
        wanted, got = right.get(table, {}), found.get(table, {})
        wrong += [
            (table, key, got.get(key), wanted.get(key))
            for key in {**wanted, **got}
            if not _same(wanted.get(key), got.get(key))
        ]
    if not wrong:
        return count, None
    table, key, has, must = wrong[0]
    return count, f"{len(wrong):,} rows of {count:,} are wrong, such as {key!r} of {table}: {has} in place of {must}"


def _same(a: tuple[Any, ...] | None, b: tuple[Any, ...] | None) -> bool:
    if a is None or b is None or len(a) != len(b):
        return False
    return all(math.isclose(x, y, rel_tol=1e-9) if isinstance(x, float) else x == y for x, y in zip(a, b))


def updates(name: str, right: Tables) -> int | None:
    """Return how many rows a whole run puts out, updates of one key included; None where that depends on the order of its inputs."""
    if name == "tpch_q3":
        return None
    if name == "sales":  # a window has one
        return sum(map(len, right.values()))
    return int(sum(value[0] for table in right.values() for value in table.values()))
