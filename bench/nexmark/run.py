"""One of Nexmark's queries as a topology, on actors or on Spark, in a process of its own; prints one line of JSON.

python -m bench.nexmark.run QUERY EVENTS [--rate R] [--check] [--engine actors|spark] [--policy NAME]

`seconds` are from the first read to the last result; on Spark, whose readers make the events as they read, all of the run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.kit.topology_run import figures, run_topology
from bench.nexmark.answers import SQL, answer, load, rows
from esault.elasticity.policy import DEFAULT, NONE, POLICIES
from esault.topology.locate import locate

__all__ = ["compared", "difference", "run"]

#: as the generators of others have it
PER_SECOND = 10_000.0


def difference(query: str, events: int, found: Counter[Any], per_second: float = PER_SECOND) -> tuple[int, str | None]:
    """Return how many rows there must be, and what is wrong with those that were found; None where nothing is."""
    import duckdb

    with duckdb.connect() as sql:
        load(sql, events, per_second=per_second)
        right = answer(sql, query)
    missing, extra = right - found, found - right
    if not missing and not extra:
        return right.total(), None
    shown = next(iter(missing or extra))
    counts = f"{missing.total():,} rows of {right.total():,} are missing and {extra.total():,} are too many"
    return right.total(), f"{counts}, such as {shown}"


def compared(query: str, events: int, out: Path, per_second: float = PER_SECOND) -> tuple[int, str | None]:
    """The same of the rows that landed in a file."""
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    return difference(query, events, rows((line["key"], line["value"]) for line in lines), per_second)


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("query", choices=list(SQL))
    parser.add_argument("events", type=int)
    parser.add_argument(
        "--rate", type=float, default=0.0, help="events a second, open loop; 0: as fast as they are taken"
    )
    parser.add_argument(
        "--check", action="store_true", help="compare every row with DuckDB's; no run to take times from"
    )
    parser.add_argument("--per-second", type=float, default=PER_SECOND, help="events in a second of their own time")
    parser.add_argument("--engine", default="actors", choices=["actors", "spark"])
    parser.add_argument("--policy", default=DEFAULT, choices=[*POLICIES.names(), NONE], help="of all units")
    arguments = parser.parse_args()
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        params = {"query": arguments.query, "events": arguments.events, "out": str(out), "keep": arguments.check}
        times = {"rate": arguments.rate, "per_second": arguments.per_second, "made": arguments.engine != "spark"}
        place = locate(f"{Path(__file__).with_name('topologies.py')}:measured")
        report = run_topology(place, {**params, **times}, arguments.engine, arguments.policy)
        result = figures(report, ["events"], started, out)
        checked, wrong = 0, None
        if arguments.check:
            checked, wrong = compared(arguments.query, arguments.events, Path(f"{out}.rows"), arguments.per_second)
    print(json.dumps({**result, "checked": checked, "wrong": wrong}))


if __name__ == "__main__":
    run()
