"""How many tuples a second: workloads A and B, at least once, without acks, into a table; Bytewax beside.

python -m bench.throughput --out DIR [--quick] [--runs N]
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from bench.arguments import parse
from bench.loads import SEED, Load, make
from bench.machine import facts
from bench.measure import Run, command, in_turns, missing, ratio, summary
from bench.result import Bar, write
from esault.messages.settings import Settings

__all__ = ["main"]

OURS, NO_ACKS, TABLE = "esault", "esault, acks off", "esault, SparkTable"
PEERS = ("bytewax, 1 worker", "bytewax, 2 processes")

#: runs an engine, weighed or timed
Command = Callable[[bool], Run]


def _ours(topology: str, load: Load, *arguments: str) -> Command:
    return lambda weigh: command(load, "bench.esault_run", topology, load.path, load.passes, *arguments, weigh=weigh)


def _peer(what: str, load: Load, processes: int) -> Command | str:
    more = ("--processes", processes)
    return missing("bytewax") or (
        lambda weigh: command(load, "bench.bytewax_flows", what, load.path, load.passes, *more, weigh=weigh)
    )


def _say(run: Run) -> str:
    return f"{run['tuples_per_second'] / 1e6:.2f} M/s, first result after {run['start_up_seconds']:.2f} s"


def _group(topology: str, load: Load, runs: int, part: Load | None = None) -> dict[str, Any]:
    """One workload on every engine, figures by name; `part` is a smaller load, for the table."""
    calls: dict[str, Command | str] = {
        OURS: _ours(topology, load),
        PEERS[0]: _peer(topology, load, 1),
        NO_ACKS: _ours(topology, load, "--set", "delivery=none"),
        PEERS[1]: _peer(topology, load, 2),
    }
    if part is not None:
        calls[TABLE] = missing("pyarrow") or _ours(topology, part, "--sink", "table")
    timed = in_turns(runs, {n: c if isinstance(c, str) else partial(c, False) for n, c in calls.items()}, _say)
    engines: dict[str, Any] = {}
    for name, call in calls.items():
        results = timed[name]
        if isinstance(call, str) or isinstance(results, str):
            engines[name] = {"missing": call}
            continue
        pss = call(True)["pss_mib"]
        print(f"  weighed, {name}: {pss:.0f} MiB", flush=True)
        engines[name] = {
            **{
                figure: summary([run[figure] for run in results])
                for figure in ("tuples_per_second", "start_up_seconds")
            },
            "pss_mib": pss,
            "runs": results,
        }
    return engines


def _rates(engine: dict[str, Any]) -> list[float]:
    return [run["tuples_per_second"] for run in engine["runs"]]


def _compared(engines: dict[str, Any]) -> dict[str, Any]:
    """Against the peer's best, and without acks against with them."""
    compared: dict[str, Any] = {"acks_cost": _acks_cost(engines[OURS], engines[NO_ACKS])}
    peers = [name for name in PEERS if "missing" not in engines[name]]
    if peers:
        best = max(peers, key=lambda name: engines[name]["tuples_per_second"]["median"])
        compared["peer_best"] = best
        compared["ratio_to_peer_best"] = {
            name: ratio(_rates(engine), _rates(engines[best]))
            for name, engine in engines.items()
            if name not in PEERS and "missing" not in engine
        }
    return compared


def _acks_cost(on: dict[str, Any], off: dict[str, Any]) -> dict[str, float]:
    """The share of the throughput that acks take; below 0 where the machine's noise is larger."""
    kept = ratio(_rates(on), _rates(off))
    return {"median": 1 - kept["median"], "least": 1 - kept["most"], "most": 1 - kept["least"]}


def _lines(title: str, engines: dict[str, Any], compared: dict[str, Any]) -> list[str]:
    lines = [title]
    for name, engine in engines.items():
        if "missing" in engine:
            lines.append(f"  {name:22} {engine['missing']}")
            continue
        rate, start, memory = engine["tuples_per_second"], engine["start_up_seconds"], engine["pss_mib"]
        versus = compared.get("ratio_to_peer_best", {}).get(name)
        against = f"  {versus['median']:.2f} x ({versus['least']:.2f} to {versus['most']:.2f})" if versus else ""
        lines.append(
            f"  {name:22} {rate['median'] / 1e6:5.2f} M/s ({rate['least'] / 1e6:.2f} to {rate['most'] / 1e6:.2f})"
            f"   start {start['median']:.2f} s   memory {memory:4.0f} MiB{against}"
        )
    if "peer_best" in compared:
        lines.append(f"  x: against {compared['peer_best']}, its best")
    cost = compared["acks_cost"]
    lines.append(f"  acks cost {cost['median']:.0%} of the throughput ({cost['least']:.0%} to {cost['most']:.0%})")
    return lines


def _bars(engines: dict[str, Any]) -> list[Bar]:
    rates = {name: e["tuples_per_second"] for name, e in engines.items() if "missing" not in e}
    return [Bar(name, r["median"] / 1e6, r["least"] / 1e6, r["most"] / 1e6) for name, r in rates.items()]


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    runs = arguments.runs or (2 if arguments.quick else 5)
    lines = max(1, int((200_000 if arguments.quick else 600_000) * arguments.scale))
    records = max(1, int((500_000 if arguments.quick else 2_000_000) * arguments.scale))
    machine = facts()
    with tempfile.TemporaryDirectory() as folder:
        sentences, part = make("sentences", lines, folder), make("sentences", max(1, lines // 4), folder)
        print(f"A: {sentences.tuples:,} words in sentences of ten, keyed running count, one update per word out (R)")
        a = _group("words", sentences, runs, part)
        numbers = make("records", records, folder)
        print(f"B: {numbers.tuples:,} records, map, filter, keyed running sum over 1 000 keys (R)")
        b = _group("sums", numbers, runs)
    compared = {"A": _compared(a), "B": _compared(b)}
    result = {
        "bench": "throughput",
        "machine": machine,
        "seed": SEED,
        "runs": runs,
        "settings": asdict(Settings()),
        "semantics": "R: one update per record. eSault replays what a death leaves open (at least once) unless named; "
        "Bytewax runs without recovery. Rates are of words (A) and records (B) that came in, from the first result out to "
        "the last; start-up is from the command to the first result; memory is PSS of all processes, the load's included, in a "
        "run of its own, since weighing stops a process for a while",
        "loads": {"A": sentences.facts(), "A, SparkTable": part.facts(), "B": numbers.facts()},
        "A": a,
        "B": b,
        "compared": compared,
    }
    panels = {title: _bars(engines) for title, engines in (("A, words", a), ("B, records", b))}
    text = [*_lines("A: words/s", a, compared["A"]), *_lines("B: records/s", b, compared["B"])]
    write(arguments.out, result, text, panels, "million/s")


if __name__ == "__main__":
    main()
