"""The same topologies on actors and on Spark, and the same questions in plain Spark SQL: results compared, throughput, latency, sustained rate.

python -m bench.engines --out DIR [--quick] [--runs N] [--only NAME,...] [--spark|--no-spark] [--spark-sustained]

word_count, flight_delays, tpch_q3, traffic, and sales (aggregates by name), on the same files. First each topology runs just as its file has it on either
engine, and every final row that landed is compared with DuckDB's answer on the same data; so is every row of Spark SQL. A bench whose
rows are wrong has no result.

Throughput: closed loop, from the first read to the last result; of the Spark engine from its last commit within the first quarter of the
data to the last one, so that its start is not part of it; of Spark SQL a batch with all data at hand, warm. Latency: open loop at a set rate, from
when a tuple was due to its row at the sink, of what was due in the second half of the run. Sustained: the highest rate at which, open
loop, the last tuple is done no later than 5 % of the run's time behind when it was due; by bisection. Start: from the command
to the first result.

With --quick the Spark engine is only checked unless --spark asks for its times; --no-spark leaves Spark out. --spark-sustained looks for
the rate that the Spark engine sustains, too, which takes some minutes more.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.engines.answers import SQL, Tables, answer, updates
from bench.engines.data import Data, make, missing_data
from bench.engines.plot import draw
from bench.kit.arguments import names_among, parse
from bench.kit.bisection import CLOSE, CLOSE_QUICK, Trials, behind, bisect
from bench.kit.machine import facts
from bench.kit.measure import Run, in_turns, launch, missing, summary
from bench.kit.result import write_with

__all__ = ["main"]

#: tuples a second for latencies: a small part of what actors can do, so that the Spark engine has a chance to keep up
RATES = {"word_count": 5_000.0, "flight_delays": 5_000.0, "tpch_q3": 10_000.0, "traffic": 5_000.0, "sales": 10_000.0}
FIGURES = ("p50", "p99")
#: seconds of the Spark engine's open loops: its first batches take some of them
SPARK_SECONDS, SPARK_SECONDS_QUICK = 12.0, 10.0
#: runs of the Spark engine as fast as it takes tuples, of which the median counts
SPARK_RUNS = 2
#: what --quick takes of the full bench's data
QUICK = 0.05
#: bisection of the Spark engine's rate: how close the bounds come, and by what part of the time the last tuple may be late
SPARK_CLOSE, SPARK_BEHIND = 0.5, 0.25
#: seconds after which a run hangs; Spark takes long on a machine that has other work
LONGEST = 900.0


def _right(data: Data, run: Run, tuples: int) -> Run:
    """The run; raises RuntimeError where it did not do what it should."""
    if run["read"] != tuples:
        raise RuntimeError(f"{data.name}: {run['read']:,} of {tuples:,} tuples were read")
    if run["wrong"]:
        raise RuntimeError(f"{data.name}: {run['wrong']}")
    return run


def _run(data: Data, engine: str, tuples: int, *more: object) -> Run:
    """So many tuples on an engine."""
    arguments = ("--engine", engine, "--tuples", tuples, *more)
    run = launch("bench.engines.run", data.folder, *arguments, longest=LONGEST)
    _right(data, run, sum(data.share(tuples).values()))
    run["tuples_per_second"] = run["read"] / run["seconds"]
    return run


def _whole(data: Data, rows: int | None) -> Run:
    """All data, on actors, as fast as they are taken."""
    run = _run(data, "actors", data.tuples)
    if rows is not None and run["rows"] != rows:
        raise RuntimeError(f"{data.name}: {run['rows']:,} rows came out in place of {rows:,}")
    return run


def _at(data: Data, engine: str, tuples: int, rate: float) -> Run:
    return _run(data, engine, tuples, "--rate", rate)


def _check(data: Data, engine: str, right: Path) -> int:
    """Return how many final rows were compared, of the topology as its file has it."""
    arguments = ("--engine", engine, "--check", right)
    run = _right(data, launch("bench.engines.run", data.folder, *arguments, longest=LONGEST), data.tuples)
    print(f"{data.name}: all {run['checked']:,} final rows of {data.tuples:,} tuples are right on {engine}", flush=True)
    return int(run["checked"])


def _actors(data: Data, right: Tables, sizes: argparse.Namespace) -> dict[str, Any]:
    """Return what is measured on actors."""
    name, rate = data.name, RATES[data.name]
    closed = in_turns(
        sizes.runs,
        {name: partial(_whole, data, updates(name, right))},
        lambda run: (
            f"{_k(run['tuples_per_second'])}, {run['rows']:,} rows, first one after {run['start_up_seconds']:.2f} s"
        ),
    )[name]
    paced = in_turns(
        sizes.runs,
        {f"{name} at {rate:,.0f}/s": partial(_at, data, "actors", min(data.tuples, int(rate * sizes.seconds)), rate)},
        _latency,
    )
    throughput = summary([run["tuples_per_second"] for run in closed])
    trials = Trials(partial(_at, data, "actors"), sizes.seconds, data.tuples)
    sustained = bisect(trials.sustains, 0.0, 1.25 * throughput["most"], sizes.close)
    (open_loop,) = paced.values()
    return {
        "tuples_per_second": throughput,
        "start_up_seconds": summary([run["start_up_seconds"] for run in closed]),
        **{f"{figure}_ms": _summary([run["latency_ms"][figure] for run in open_loop]) for figure in FIGURES},
        "sustained_tuples_per_second": sustained,
        "trials": trials.made,
        "runs": {"closed": closed, "open": open_loop},
    }


def _pace(run: Run) -> float | None:
    """Return the tuples a second of a run on Spark, without its first commits; None where there was but one."""
    pace = run["pace"]
    return pace["tuples"] / pace["seconds"] if pace and pace["seconds"] > 0 else None


def _latency(run: Run) -> str:
    return ", ".join(f"{figure} {_ms(run['latency_ms'][figure])}" for figure in FIGURES)


def _spark(data: Data, sizes: argparse.Namespace) -> dict[str, Any]:
    """Return what is measured on the Spark engine."""
    rate = RATES[data.name]
    closed = in_turns(
        sizes.spark_runs,
        {"Spark engine": partial(_run, data, "spark", data.tuples)},
        lambda run: f"{_k(_pace(run))}, first row after {run['start_up_seconds']:.1f} s",
    )["Spark engine"]
    paces = [pace for pace in map(_pace, closed) if pace is not None]
    engine = statistics.median(paces) if paces else None
    start = statistics.median(run["start_up_seconds"] for run in closed)
    paced = min(data.tuples, int(rate * sizes.spark_seconds))
    slow = _at(data, "spark", paced, rate)
    late = behind(slow, slow["read"], rate)
    print(f"  Spark engine at {rate:,.0f}/s: {_latency(slow)}, {late:.1f} s behind at the end", flush=True)
    found = {
        "tuples_per_second": engine,
        "start_up_seconds": start,
        **{f"{figure}_ms": slow["latency_ms"][figure] for figure in FIGURES},
        "behind_seconds": late,
        "runs": {"closed": closed, "open": slow},
    }
    if sizes.spark_sustained:
        # A micro-batch takes seconds at any rate: by so much the last tuple is always late.
        trials = Trials(partial(_at, data, "spark"), sizes.spark_seconds, data.tuples, SPARK_BEHIND, late)
        found["sustained_tuples_per_second"] = bisect(
            trials.sustains, 0.0, engine or closed[0]["tuples_per_second"], SPARK_CLOSE
        )
        found["trials"] = trials.made
    return found


def _measured(name: str, folder: Path, sizes: argparse.Namespace) -> dict[str, Any]:
    """All of one topology."""
    if why := missing_data(name):
        print(f"{name}: {why}", flush=True)
        return {"missing": why}
    data = make(name, folder / name, sizes.size)
    right, file = answer(name, data.folder), folder / f"{name}.right"
    file.write_bytes(pickle.dumps(right))
    found: dict[str, Any] = {"spouts": data.spouts, "tuples": data.tuples, "rate": RATES[name]}
    found["checked_rows"] = _check(data, "actors", file)
    spark = missing("pyspark") if sizes.spark != "none" else "left out"
    if spark is None:
        _check(data, "spark", file)
        batch = _right(data, launch("bench.engines.spark", data.folder, file, longest=LONGEST), data.tuples)
        found["sql"] = {"tuples_per_second": data.tuples / batch["seconds"], "seconds": batch["seconds"]}
        if "stream_seconds" in batch:
            found["sql"]["stream_tuples_per_second"] = data.tuples / batch["stream_seconds"]
        print(
            f"  plain Spark SQL: all {batch['checked']:,} rows are right, {_k(found['sql']['tuples_per_second'])}",
            flush=True,
        )
    found["actors"] = _actors(data, right, sizes)
    if spark is not None:
        found["spark"] = {"missing": spark}
    elif sizes.spark == "timed":
        found["spark"] = _spark(data, sizes)
    return found


def _summary(values: list[float | None]) -> dict[str, float] | None:
    """None where a value is not known."""
    known = [value for value in values if value is not None]
    return summary(known) if known and len(known) == len(values) else None


def _k(rate: float | None) -> str:
    return "too quick to tell" if rate is None else f"{rate / 1e3:,.1f} k/s"


def _ms(latency: float | None) -> str:
    return "no row" if latency is None else f"{latency:,.1f} ms"


def _lines(found: dict[str, Any]) -> list[str]:
    """The table to read."""
    lines = [
        "Tuples read a second; every final row of all engines equals DuckDB's; latencies of rows that reach a sink"
    ]
    for name, each in found.items():
        if "missing" in each:
            lines.append(f"{name}: {each['missing']}")
            continue
        lines.append(
            f"{name}: {each['tuples']:,} tuples, {each['checked_rows']:,} final rows; latency at {each['rate']:,.0f}/s"
        )
        actors = each["actors"]
        speed = actors["tuples_per_second"]
        latency = ", ".join(f"{figure} {_ms((actors[f'{figure}_ms'] or {}).get('median'))}" for figure in FIGURES)
        lines.append(
            f"  actors     {_k(speed['median']):>16} ({_k(speed['least'])} to {_k(speed['most'])})   sustained "
            f"{_k(actors['sustained_tuples_per_second'])}   {latency}   start {actors['start_up_seconds']['median']:.2f} s"
        )
        spark = each.get("spark", {"missing": "not timed; its final rows are right"})
        if "missing" in spark:
            lines.append(f"  Spark engine: {spark['missing']}")
        else:
            sustained = spark.get("sustained_tuples_per_second")
            parts = [f"sustained {_k(sustained)}"] if sustained is not None else []
            parts += [f"{figure} {_ms(spark[f'{figure}_ms'])}" for figure in FIGURES]
            parts += [f"{spark['behind_seconds']:.1f} s behind at the end", f"start {spark['start_up_seconds']:.1f} s"]
            lines.append(f"  Spark engine {_k(spark['tuples_per_second']):>14}   {'   '.join(parts)}")
        if "sql" in each:
            stream = each["sql"].get("stream_tuples_per_second")
            said = "" if stream is None else f"; as a streaming query {_k(stream)}"
            lines.append(
                f"  Spark SQL  {_k(each['sql']['tuples_per_second']):>16}, one batch with all data at hand{said}"
            )
    return lines


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only", type=names_among(SQL), default=list(SQL), metavar="NAMES", help=f"of {','.join(SQL)}.  [all]"
    )
    parser.add_argument(
        "--spark",
        action=argparse.BooleanOptionalAction,
        help="time Spark, or leave it out.  [time it; check it with --quick]",
    )
    parser.add_argument("--spark-sustained", action="store_true", help="bisect the Spark engine's rate, too")


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__, _options)
    if why := missing("duckdb"):
        raise SystemExit(f"bench engines compares its rows with DuckDB's: {why}")
    quick, scale = arguments.quick, arguments.scale
    timed: Callable[[bool | None], str] = lambda asked: {
        True: "timed",
        False: "none",
        None: "checked" if quick else "timed",
    }[asked]
    sizes = argparse.Namespace(
        runs=arguments.runs or (1 if quick else 3),
        size=(QUICK if quick else 1.0) * scale,
        seconds=(1.5 if quick else 4.0) * min(1.0, scale),
        close=CLOSE_QUICK if quick else CLOSE,
        spark=timed(arguments.spark),
        spark_runs=1 if quick else arguments.runs or SPARK_RUNS,
        spark_seconds=(SPARK_SECONDS_QUICK if quick else SPARK_SECONDS) * min(1.0, scale),
        spark_sustained=arguments.spark_sustained,
    )
    machine = facts()
    with tempfile.TemporaryDirectory() as folder:
        found = {name: _measured(name, Path(folder), sizes) for name in arguments.only}
    result = {
        "bench": "engines",
        "machine": machine,
        "seed": 1,
        **vars(sizes),
        "semantics": "The files of topologies/, their own sources on the same files in the page cache; sinks count where time is taken, and "
        "are the topology's own where rows are compared. Actors: at least once, acks on, the default policy. Spark engine: "
        "exactly once, all cores of the machine; its rate is that between the last commit within the first quarter of the data and the last one. Spark SQL: text files to the "
        "sink noop, the second time. Tuples are lines, flights, rows of the three tables, and lines of traces that were read. "
        "Latency is from when a tuple was due to its row at a sink, of those due in the second half of the run, within 5 %",
        "topologies": found,
    }
    write_with(arguments.out, result, _lines(found), lambda path: draw(path, found))


if __name__ == "__main__":
    main()
