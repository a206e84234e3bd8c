"""The answers to Nexmark's queries: the same queries in SQL, by DuckDB, on the same events as tables."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "SQL", "answer", "load", "on_path", "rows", "tables"]

#: the topologies; their files import one another by name
FOLDER = Path(__file__).parents[2] / "topologies" / "nexmark"


def on_path() -> None:
    """So that they do."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))


on_path()

FIELDS = {
    "person": "time id name email card city state extra",
    "auction": "time id item description initial reserve expires seller category extra",
    "bid": "time auction bidder price extra",
}

#: query -> SQL that DuckDB and Spark read alike; the first column is a row's key, the others its value; times in seconds
SQL = {
    "q1": "SELECT auction, bidder, price * CAST(0.908 AS DOUBLE), CAST(round(time * 1000) AS BIGINT) FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": "SELECT auction.id, name, city, state FROM auction JOIN person ON auction.seller = person.id "
    "WHERE category = 10 AND state IN ('OR', 'ID', 'CA')",
    # windows of 10 s, every 2 s: a bid is in those that end 2, 4, 6, 8 and 10 s after the last even second
    "q5": "WITH counts AS (SELECT ends, auction, count(*) AS n FROM (SELECT auction, CAST(floor(time / 2) AS BIGINT) * 2 + ahead "
    "AS ends FROM bid CROSS JOIN (VALUES (2), (4), (6), (8), (10)) AS slices(ahead)) AS bids GROUP BY ends, auction) "
    "SELECT ends, n, auction FROM (SELECT *, max(n) OVER (PARTITION BY ends) AS most FROM counts) AS ranked WHERE n = most",
    "q7": "SELECT ends, price, auction, bidder FROM (SELECT *, max(price) OVER (PARTITION BY ends) AS most FROM (SELECT *, "
    "(CAST(floor(time / 10) AS BIGINT) + 1) * 10 AS ends FROM bid) AS bids) AS ranked WHERE price = most",
    "q8": "SELECT person.id, name, reserve FROM person JOIN auction ON person.id = seller "
    "AND floor(person.time / 10) = floor(auction.time / 10)",
    "q11": "WITH marked AS (SELECT bidder, time, CASE WHEN time <= lag(time) OVER (PARTITION BY bidder ORDER BY time) + 10 "
    "THEN 0 ELSE 1 END AS opens FROM bid), numbered AS (SELECT bidder, time, sum(opens) OVER (PARTITION BY bidder ORDER BY time "
    "ROWS UNBOUNDED PRECEDING) AS session FROM marked) SELECT bidder, count(*), CAST(round(min(time) * 1000) AS BIGINT), "
    "CAST(round(max(time) * 1000) AS BIGINT) FROM numbered GROUP BY bidder, session",
}


def tables(count: int, **how: Any) -> dict[str, Any]:
    """Arrow tables person, auction and bid of the first `count` events; `how` is what `Events` takes."""
    import pyarrow

    on_path()
    from nexmark_events import EPOCH, Events

    events = Events(**how)
    made = [event for epoch in range(-(-count // EPOCH)) for event in events.in_epoch(epoch)][:count]
    found = {}
    for kind, (table, fields) in enumerate(FIELDS.items()):
        names = fields.split()
        whole = [event[1:] for event in made if event[0] == kind and len(event) == 1 + len(names)]
        columns = {name: [row[i] for row in whole] for i, name in enumerate(names)}
        columns["time"] = [at / 1000 for at in columns["time"]]
        found[table] = pyarrow.table(columns)
    return found


def load(sql: Any, count: int, **how: Any) -> None:
    """Make these tables in a database."""
    for name, table in tables(count, **how).items():
        sql.register("given", table)
        sql.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
        sql.unregister("given")


def answer(sql: Any, query: str) -> Counter[Any]:
    """The rows of a query on the tables that are loaded, as `rows` gives those of a topology."""
    return rows((key, value) for key, *value in sql.execute(SQL[query]).fetchall())


def rows(pairs: Iterable[tuple[Any, Any]]) -> Counter[Any]:
    """(key, value) pairs in no order, with how often each came; a value of one column is that."""
    return Counter((key, _plain(value)) for key, value in pairs)


def _plain(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return value
    return _plain(value[0]) if len(value) == 1 else tuple(_plain(each) for each in value)
