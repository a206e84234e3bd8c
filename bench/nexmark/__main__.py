"""Nexmark on the actor engine: each query's throughput, its latency at a set rate, and the rate that it can sustain; Spark beside.

python -m bench.nexmark --out DIR [--quick] [--runs N] [--queries q1,q2,...] [--rate EVENTS_A_SECOND] [--spark|--no-spark]

Throughput: closed loop, events as fast as they are taken, from the first read to the last result. Latency: open loop at --rate, from
when an event was due to the end of its processing. Sustained: the highest rate at which, open loop, the last event is done
no later than 5 % of the run's time behind when it was due; by bisection. Before that each query's rows are compared, one by one, with
those of the same query in SQL (DuckDB) on the same events; a bench whose rows are wrong has no result.

Spark: the same topologies by `--engine spark`, and the same queries in plain Spark SQL, a batch with all events at hand, in turns with
the closed loop. Of the first the rate is that of the second half: the difference of two runs, one with twice the events, so that
Spark's start is not part of it. With --quick it is left out unless it is asked for.

The result is written after each query. With --queries the others stay as an earlier run with the same --out has found them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.kit.arguments import names_among, parse
from bench.kit.bisection import CLOSE, CLOSE_QUICK, Trials, bisect
from bench.kit.machine import facts
from bench.kit.measure import LaunchError, Run, in_turns, launch, missing, ratio, spread, summary
from bench.kit.result import Bar, write
from bench.nexmark.answers import SQL

__all__ = ["main"]

#: events in a second of their own time where rows are compared: ten times slower than where time is taken, for more windows
SLOW = 1000
FIGURES = ("p50", "p99", "max")
BATCH = "plain Spark SQL"


def _run(query: str, events: int, *more: object) -> Run:
    run = _right(query, events, launch("bench.nexmark.run", query, events, *more))
    run["events_per_second"] = events / run["seconds"]
    return run


def _right(query: str, events: int, run: Run) -> Run:
    """The run; raises RuntimeError where it did not do what it should."""
    if run["read"] != events:
        raise RuntimeError(f"{query}: {run['read']:,} of {events:,} events were read")
    if run["wrong"]:
        raise RuntimeError(f"{query}: {run['wrong']}")
    return run


def _measured(query: str, sizes: argparse.Namespace) -> dict[str, Any]:
    checked = _run(query, sizes.checked, "--check", "--per-second", SLOW)
    print(f"{query}: all {checked['checked']:,} rows of {sizes.checked:,} events are right", flush=True)
    calls: dict[str, Callable[[], Run] | str] = {query: partial(_run, query, sizes.events)}
    if sizes.spark:
        calls[BATCH] = missing("pyspark") or partial(_batch, query, sizes.events)
    beside = in_turns(
        sizes.runs, calls, lambda run: f"{run['events_per_second'] / 1e3:,.0f} k events/s, {run['rows']:,} rows"
    )
    closed, batch = beside[query], beside.get(BATCH)
    assert not isinstance(closed, str)
    open_loop = in_turns(
        sizes.runs,
        {
            f"{query} at {sizes.rate:,.0f}/s": partial(
                _run, query, int(sizes.rate * sizes.seconds), "--rate", sizes.rate
            )
        },
        lambda run: ", ".join(f"{figure} {run['latency_ms'][figure]:.2f} ms" for figure in FIGURES),
    )
    paced = next(iter(open_loop.values()))
    throughput = summary([run["events_per_second"] for run in closed])
    trials = Trials(lambda events, rate: _run(query, events, "--rate", rate), sizes.seconds)
    sustained = bisect(trials.sustains, 0.0, 1.25 * throughput["most"], sizes.close)
    return {
        "checked_rows": checked["checked"],
        "rows": closed[0]["rows"],
        "events_per_second": throughput,
        **{f"{figure}_ms": summary([run["latency_ms"][figure] for run in paced]) for figure in FIGURES},
        "sustained_events_per_second": sustained,
        "trials": trials.made,
        **({} if batch is None else {"spark": _spark(query, sizes, closed, batch)}),
        "runs": {"closed": closed, "open": paced},
    }


def _batch(query: str, events: int) -> Run:
    run = _right(query, events, launch("bench.nexmark.spark", query, events, "--check"))
    run["events_per_second"] = events / run["seconds"]
    return run


def _spark(query: str, sizes: argparse.Namespace, closed: list[Run], batch: list[Run] | str) -> dict[str, Any]:
    """Plain Spark SQL, which ran in turns with the closed loop, and the Spark engine, both with their rows compared."""
    if isinstance(batch, str):
        return {"missing": batch}
    ours, theirs = ([run["events_per_second"] for run in runs] for runs in (closed, batch))
    found = {"sql_events_per_second": summary(theirs), "of_sql": ratio(ours, theirs)}
    on_spark = lambda events, *more: launch("bench.nexmark.run", query, events, "--engine", "spark", *more)
    try:
        _right(query, sizes.spark // 10, on_spark(sizes.spark // 10, "--check", "--per-second", SLOW))
        one, two = (_right(query, n * sizes.spark, on_spark(n * sizes.spark))["seconds"] for n in (1, 2))
    except LaunchError as error:  # what Spark cannot run it refuses
        return {**found, "missing": str(error).strip().splitlines()[-1]}
    engine = sizes.spark / (two - one) if two > one else None
    print(f"  Spark engine {_k(engine)}", flush=True)
    return {
        **found,
        "engine_seconds": {str(sizes.spark): one, str(2 * sizes.spark): two},
        "engine_events_per_second": engine,
    }


def _k(rate: float | None) -> str:
    return "too quick to tell" if rate is None else f"{rate / 1e3:,.0f} k/s"


def _lines(found: dict[str, Any], rate: float) -> list[str]:
    lines = [f"Nexmark, events/s; latency at {rate:,.0f} events/s, ms; every query's rows equal DuckDB's"]
    for query, each in found.items():
        speed = each["events_per_second"]
        parts = [f"{figure} {each[f'{figure}_ms']['median']:7.2f}" for figure in FIGURES]
        lines.append(
            f"  {query:4} {spread(speed, ',.0f', 1e3, ' k/s'):>28}   "
            f"sustained {each['sustained_events_per_second'] / 1e3:6,.0f} k/s   {'   '.join(parts)}"
        )
        spark = each.get("spark", {})
        if "sql_events_per_second" in spark:
            lines.append(
                f"       of {BATCH}, a batch with all events at hand, {spread(spark['of_sql'])} x: "
                f"{spread(spark['sql_events_per_second'], ',.0f', 1e3, ' k/s')}"
            )
        if "missing" in spark:
            lines.append(f"       Spark: {spark['missing']}")
        elif "engine_seconds" in spark:
            lines.append(f"       Spark engine {_k(spark['engine_events_per_second'])}")
    return lines


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--queries", type=names_among(SQL), default=list(SQL), metavar="NAMES", help=f"of {','.join(SQL)}.  [all]"
    )
    parser.add_argument("--rate", type=float, default=50_000.0, help="events a second, for latencies.  [50000]")
    parser.add_argument("--spark", action=argparse.BooleanOptionalAction, help="Spark beside.  [not with --quick]")


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__, _options)
    if why := missing("duckdb"):
        raise SystemExit(f"bench nexmark compares its rows with DuckDB's: {why}")
    quick, scale = arguments.quick, arguments.scale
    sizes = argparse.Namespace(
        runs=arguments.runs or (1 if quick else 3),
        events=max(1000, int((200_000 if quick else 500_000) * scale)),
        checked=max(1000, int((50_000 if quick else 200_000) * scale)),
        seconds=(2.0 if quick else 5.0) * min(1.0, scale),
        rate=arguments.rate,
        spark=0,
        close=CLOSE_QUICK if quick else CLOSE,
    )
    if arguments.spark if arguments.spark is not None else not quick:
        sizes.spark = max(1000, int((50_000 if quick else 400_000) * scale))
    found = _before(Path(arguments.out, "result.json"), sizes)
    for query in arguments.queries:
        machine = facts()
        found[query] = {**_measured(query, sizes), "machine": machine}
        _write(arguments.out, found, sizes)


def _before(path: Path, sizes: argparse.Namespace) -> dict[str, Any]:
    """Return what an earlier run has measured in as many runs of the same size; none where there is none."""
    if not path.exists():
        return {}
    result = json.loads(path.read_text())
    same = all(result[name] == size for name, size in vars(sizes).items() if name != "spark")
    return dict(result["queries"]) if same and all("machine" in each for each in result["queries"].values()) else {}


def _write(out: str, found: dict[str, Any], sizes: argparse.Namespace) -> None:
    """Write what there is so far: what fails later takes nothing away."""
    found = {query: found[query] for query in SQL if query in found}
    result = {
        "bench": "nexmark",
        "seed": 1,
        **vars(sizes),
        "semantics": "At least once, acks on, the default policy; a process each for the source and for the bolts of a query. Events are "
        "made before the first is read: 1 person, 3 auctions, 46 bids of 50, 10 000 a second of event time. Rows go to a sink that "
        "counts them; in the run that is checked, to a file, each compared with DuckDB's. Latency is the report's "
        "end_to_end_ms, within 5 %, the start included; what windows hold back until they close is not part of it",
        "queries": found,
    }
    panels = {
        "thousand events/s, closed loop": [
            Bar.of(query, each["events_per_second"], 1e3) for query, each in found.items()
        ],
        "thousand events/s, sustained": [
            Bar(query, *[each["sustained_events_per_second"] / 1e3] * 3) for query, each in found.items()
        ],
        f"p99, ms, at {sizes.rate:,.0f}/s": [Bar.of(query, each["p99_ms"]) for query, each in found.items()],
    }
    write(out, result, _lines(found, sizes.rate), panels, "see title")


if __name__ == "__main__":
    main()
