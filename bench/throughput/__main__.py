"""Tuples a second: workloads A and B, at least once, without acks, in batches, into a table; peers beside.

python -m bench.throughput --out DIR [--quick] [--runs N] [--peers all|none|NAME,...] [--only A|B]

The peers are bytewax and, each in an environment of its own (python -m bench.peers install), pathway, flink and spark;
those that are not there are skipped. With --quick the heavy ones are left out unless they are named, and run once. With
--only one workload is measured, and DIR keeps what its result.json says of the other.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import Run, command, in_turns, missing, ratio, spread, summary
from bench.kit.result import Bar, write
from bench.peers.environments import FOLDER, PEERS, Found, find
from bench.throughput.engines import BYTEWAX, ENGINES, GROUPS, NO_ACKS, OURS, TABLE, VECTORISED, Engine, chosen
from bench.workloads.loads import SEED, Load, make
from esault.messages.settings import Settings

__all__ = ["main"]

#: runs an engine, weighed or timed
Command = Callable[[bool], Run]
#: a heavy peer, or why there is none, by name
Peers = dict[str, Found | str]


def _call(engine: Engine, what: str, load: Load, peers: Peers) -> Command | str:
    """Return how to run an engine on its share of the load, or why it cannot be."""
    python = {}
    if engine.group in PEERS:
        found = peers[engine.group]
        if isinstance(found, str):
            return found
        python["python"] = found.python
    elif engine.group is not None and (why := missing(engine.group)):
        return why
    part = load.again(engine.times)
    name = f"{what}_batch" if engine.name == VECTORISED else what
    return lambda weigh: command(
        part, engine.module, name, part.path, part.passes, *engine.arguments, weigh=weigh, **python
    )


def _say(run: Run) -> str:
    return f"{run['tuples_per_second'] / 1e6:.2f} M/s, first result after {run['start_up_seconds']:.2f} s"


def _group(
    what: str, load: Load, runs: int, groups: tuple[str, ...], peers: Peers, heavy: int, part: Load | None = None
) -> dict[str, Any]:
    """One workload on every engine, figures by name; `heavy` peers' runs; `part` is a smaller load, for the table."""
    rows = [engine for engine in ENGINES if engine.group is None or engine.group in groups]
    calls = {engine.name: _call(engine, what, load, peers) for engine in rows}
    described = {engine.name: {**engine.facts(), "load": load.again(engine.times).facts()} for engine in rows}
    if part is not None:
        table = Engine(TABLE, "bench.kit.esault_run", ("--sink", "table"), "R", "Python")
        calls[TABLE] = missing("pyarrow") or _call(table, what, part, peers)
        described[TABLE] = {**table.facts(), "load": part.facts()}
    slow = {engine.name for engine in rows if engine.group in PEERS}
    timed: dict[str, list[Run] | str] = {}
    for turns, names in ((runs, set(calls) - slow if heavy != runs else set(calls)), (heavy, slow)):
        due = {n: c if isinstance(c, str) else partial(c, False) for n, c in calls.items() if n in names - set(timed)}
        timed.update(in_turns(turns, due, _say))
    engines: dict[str, Any] = {}
    for name, call in calls.items():
        results = timed[name]
        if isinstance(call, str) or isinstance(results, str):
            engines[name] = {**described[name], "missing": call}
            continue
        pss = call(True)["pss_mib"]
        print(f"  weighed, {name}: {pss:.0f} MiB", flush=True)
        engines[name] = {
            **described[name],
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
    """Ours against Bytewax at its best, which runs the same user code and puts out as much; against every other peer; and
    without acks against with them."""
    compared: dict[str, Any] = {"acks_cost": _acks_cost(engines[OURS], engines[NO_ACKS])}
    there = {name: engine for name, engine in engines.items() if "missing" not in engine}
    ours = [name for name in (OURS, NO_ACKS, TABLE, VECTORISED) if name in there]
    peers = [name for name in BYTEWAX if name in there]
    if peers:
        best = max(peers, key=lambda name: engines[name]["tuples_per_second"]["median"])
        compared["peer_best"] = best
        compared["ratio_to_peer_best"] = {name: ratio(_rates(there[name]), _rates(there[best])) for name in ours}
    compared["ratio_to_others"] = {
        peer: {name: ratio(_rates(there[name]), _rates(there[peer])) for name in (OURS, VECTORISED)}
        for peer in there
        if peer not in (*ours, *BYTEWAX)
    }
    return compared


def _acks_cost(on: dict[str, Any], off: dict[str, Any]) -> dict[str, float]:
    """The share of the throughput that acks take; below 0 where the machine's noise is larger."""
    kept = ratio(_rates(on), _rates(off))
    return {"median": 1 - kept["median"], "least": 1 - kept["most"], "most": 1 - kept["least"]}


def _lines(title: str, engines: dict[str, Any], compared: dict[str, Any]) -> list[str]:
    lines = [f"{title}; R: one update per record, M: one per key per micro-batch; user code in"]
    for name, engine in engines.items():
        kind = f"{name:25} {engine['semantics']}  {engine['user_code']:15}"
        if "missing" in engine:
            lines.append(f"  {kind} {engine['missing']}")
            continue
        rate, start, memory = engine["tuples_per_second"], engine["start_up_seconds"], engine["pss_mib"]
        versus = compared.get("ratio_to_peer_best", {}).get(name)
        against = f"  {spread(versus, of=' x')}" if versus else ""
        lines.append(
            f"  {kind} {spread(rate, '.3f', 1e6, ' M/s'):>27}"
            f"   start {start['median']:5.2f} s   memory {memory:4.0f} MiB{against}"
        )
    if "peer_best" in compared:
        lines.append(f"  x: against {compared['peer_best']}, its best")
    for peer, ratios in compared["ratio_to_others"].items():
        parts = [f"{name} {spread(r, of=' x')}" for name, r in ratios.items()]
        kind = f"{engines[peer]['semantics']}, user code: {engines[peer]['user_code']}"
        lines.append(f"  against {peer} ({kind}): {'; '.join(parts)}")
    cost = compared["acks_cost"]
    lines.append(f"  acks cost {spread(cost, '.0%', of=' of the throughput')}")
    return lines


def _bars(engines: dict[str, Any]) -> list[Bar]:
    kinds = {engine.name: engine.kind for engine in ENGINES}
    rates = {name: e["tuples_per_second"] for name, e in engines.items() if "missing" not in e}
    return [Bar.of(name, r, 1e6, kinds.get(name, "esault")) for name, r in rates.items()]


def _peers(text: str) -> tuple[str, ...]:
    try:
        return chosen(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--peers",
        type=_peers,
        metavar="NAMES",
        help=f"all, none, or names with commas of: {', '.join(GROUPS)}.  [default: all; with --quick: {GROUPS[0]}]",
    )
    parser.add_argument("--only", choices=("A", "B"), help="measure this workload; DIR has a result of the other")
    parser.add_argument(
        "--peers-in", type=Path, default=FOLDER, metavar="DIR", help="where python -m bench.peers put them"
    )


def _kept(out: str, only: str | None) -> dict[str, Any]:
    """Return the earlier result in `out` whose other workload stays; "of" says when and with how many runs it was measured."""
    if only is None:
        return {}
    try:
        earlier: dict[str, Any] = json.loads((Path(out) / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(
            f"--only {only}: {out} has no result of the other workload ({error}); leave --only out"
        ) from None
    other = "B" if only == "A" else "A"
    return {**earlier, "of": {other: {"machine": earlier["machine"], "runs": earlier["runs"]}}}


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__, _options)
    groups = arguments.peers if arguments.peers is not None else GROUPS[:1] if arguments.quick else GROUPS
    runs = arguments.runs or (2 if arguments.quick else 5)
    heavy = 1 if arguments.quick else runs
    lines = max(1, int((200_000 if arguments.quick else 600_000) * arguments.scale))
    records = max(1, int((500_000 if arguments.quick else 2_000_000) * arguments.scale))
    machine = facts()
    kept = _kept(arguments.out, arguments.only)
    peers = {name: find(name, arguments.peers_in.absolute()) for name in PEERS if name in groups}
    with tempfile.TemporaryDirectory() as folder:
        sentences, part = make("sentences", lines, folder), make("sentences", max(1, lines // 4), folder)
        numbers = make("records", records, folder)
        a, b = kept.get("A"), kept.get("B")
        if arguments.only != "B":
            print(
                f"A: {sentences.tuples:,} words in sentences of ten, keyed running count, one update per word out (R)"
            )
            a = _group("words", sentences, runs, groups, peers, heavy, part)
        if arguments.only != "A":
            print(f"B: {numbers.tuples:,} records, map, filter, keyed running sum over 1 000 keys (R)")
            b = _group("sums", numbers, runs, groups, peers, heavy)
    assert a is not None and b is not None
    compared = {"A": _compared(a), "B": _compared(b)}
    result = {
        "bench": "throughput",
        "machine": machine,
        "peers": {name: found.versions if isinstance(found, Found) else found for name, found in peers.items()},
        "seed": SEED,
        "runs": runs,
        "runs_of_heavy_peers": heavy,
        "kept": kept.get("of", {}),
        "settings": asdict(Settings(chaining=True)),
        "semantics": "R: one update per record; M: one per key per micro-batch. eSault replays what a death leaves open (at least "
        "once) unless named; no peer was asked for a delivery guarantee, and Spark has one. Rates are of words (A) and "
        "records (B) that came in, from the first result out to the last; of Pathway, Flink SQL and Spark from what the "
        "docstrings of their flows say, under the name steady. Start-up is from the command to the first result; memory is "
        "PSS of all processes, the load's included, in a run of its own, since weighing stops a process for a while",
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
