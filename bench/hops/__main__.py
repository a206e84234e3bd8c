"""The time of a tuple, part by part of each hop, in nanoseconds for a word of workload A, or a record of B.

python -m bench.hops --out DIR [--quick] [--runs N] [--topology words|sums|both]

The real sub-units stand in a line in one process, joined by real sockets (`bench/hops/line.py`). Timers around methods see whole
batches and are taken off again for every other stretch: the sum of the parts is compared with the hops as they are. What
no timer can see, the operator's loop over its tuples, is divided by comparison: the same batches through a `process` that is empty,
one that only emits, and the user's (`bench/hops/parts.py`). Behind that: the same with row ids, blocks of memory that parts
take, and the garbage collector's policies, also in a run with a process for each hop.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from typing import Any

from bench.hops.collector import POLICIES
from bench.hops.plot import draw
from bench.hops.run import CLOSE, TOPOLOGIES, measure
from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import command, in_turns, summary
from bench.kit.result import write_with
from bench.workloads.loads import SEED, Load, make

__all__ = ["lines_of", "main"]

TITLES = {"words": "A, ns per word", "sums": "B, ns per record"}
KINDS = {"words": "sentences", "sums": "records"}
#: rows of the load in one stretch: a fifth of a second
ROWS = {"words": 40_000, "sums": 400_000}
#: ns that row ids must add to a part to be named
LARGE = 4.0
#: counted tuples of a run with processes
TUPLES = 2_000_000


def _add(parser: argparse.ArgumentParser) -> None:
    choices = [*TOPOLOGIES, "both"]
    parser.add_argument("--topology", choices=choices, default="words", help="words: A, the default; sums: B")


def _processes(load: Load, runs: int) -> dict[str, Any]:
    """Policy -> what each process of a run took for a word, and its collections for a million words."""
    calls = {
        policy: partial(command, load, "bench.hops.collector_run", load.path, load.passes, policy)
        for policy in POLICIES
    }
    found = in_turns(runs, calls, lambda run: f"{run['tuples_per_second'] / 1e6:.2f} M/s")
    policies: dict[str, Any] = {}
    for policy, results in found.items():
        of = {unit: [run["processes"][unit] for run in results] for unit in results[0]["processes"]}  # type: ignore[index]
        policies[policy] = {
            "tuples_per_second": summary([run["tuples_per_second"] for run in results]),  # type: ignore[index]
            "processes": {
                unit: {
                    "cpu_ns": summary([1e9 * one["cpu_seconds"] / load.tuples for one in each]),
                    "collecting_ns": summary([1e9 * one["collecting_seconds"] / load.tuples for one in each]),
                    "collections_per_million": [
                        summary([1e6 * one["collections"][generation] / load.tuples for one in each])["median"]
                        for generation in range(3)
                    ],
                }
                for unit, each in of.items()
            },
            "runs": results,
        }
    return policies


def _table(found: dict[str, Any]) -> list[str]:
    """Parts down, hops across; parts of less than a twentieth of a nanosecond everywhere are left out."""
    hops = found["hops"]
    lines = [f"  {'':12}" + "".join(f"{name:>10}" for name in (*hops, "all"))]

    def row(name: str, values: list[float], digits: int = 1) -> str:
        return f"  {name:12}" + "".join(f"{value:10.{digits}f}" for value in (*values, sum(values)))

    for part in next(iter(hops.values()))["parts"]:
        values = [hop["parts"][part]["median"] for hop in hops.values()]
        if max(values) >= 0.05:
            lines.append(row(part, values))
    lines.append(row("sum", [hop["sum_of_parts"] for hop in hops.values()]))
    lines.append(row("whole", [hop["whole"]["median"] for hop in hops.values()]))
    lines.append(row("+ row ids", [hop["row_ids"]["median"] for hop in hops.values()]))
    lines.append(row("blocks", [hop["blocks_taken"] for hop in hops.values()], 2))
    return lines


def lines_of(title: str, found: dict[str, Any]) -> list[str]:
    """The table of a workload, and what is to be known of it."""
    timer = found["timer_ns"]
    lines = [title, *_table(found)]
    said = "" if found["agrees"] else f": THEY DO NOT AGREE within {CLOSE:.0%}, do not go by the parts"
    each = ", ".join(f"{name} {hop['difference']:+.1%}" for name, hop in found["hops"].items())
    lines.append(
        f"  the parts add up to {1 + found['difference']:.1%} of the whole ({each}){said};"
        f" {timer['per_tuple']:.1f} ns of the timers' own were taken off"
    )
    for name, hop in found["hops"].items():
        of = hop["batches"]
        frame = f", {of['tuples_in_a_frame_out']:,.0f} in a frame out" if of["tuples_in_a_frame_out"] else ""
        lines.append(f"  {name}: {of['tuples_in_a_batch']:,.0f} tuples in a batch{frame}")
    for name, hop in found["hops"].items():
        of_ids = {part: spread["median"] for part, spread in hop["row_ids_by_timer"].items()}
        large = sorted((part for part, ns in of_ids.items() if ns >= LARGE), key=lambda part: -of_ids[part])
        lines.append(f"  row ids, {name}: {', '.join(f'{part} {of_ids[part]:.0f}' for part in large) or 'little'}")
    lines.append("  blocks: of memory, taken in one part and given back in another or not at all")
    lines.append("  collector, whole line: " + _policies(found))
    return lines


def _policies(found: dict[str, Any]) -> str:
    sums = {p: sum(hop["policies"][p]["median"] for hop in found["hops"].values()) for p in POLICIES}
    return ", ".join(f"{policy} {ns:.0f} ns" for policy, ns in sums.items())


def _process_lines(policies: dict[str, Any]) -> list[str]:
    lines = [
        "A with a process for each hop: CPU ns per word, of which collecting; collections per million words by generation"
    ]
    for policy, found in policies.items():
        rate = found["tuples_per_second"]
        lines.append(
            f"  {policy:8} {rate['median'] / 1e6:5.2f} M/s ({rate['least'] / 1e6:.2f} to {rate['most'] / 1e6:.2f})   "
            + "   ".join(
                f"{unit} {each['cpu_ns']['median']:.0f}, {each['collecting_ns']['median']:.1f}; "
                f"{' '.join(f'{n:g}' for n in each['collections_per_million'])}"
                for unit, each in found["processes"].items()
            )
        )
    return lines


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__, _add)
    turns = arguments.runs or (3 if arguments.quick else 9)
    chosen = list(TOPOLOGIES) if arguments.topology == "both" else [arguments.topology]
    machine, found, loads = facts(), {}, {}
    processes: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for what in chosen:
            rows = max(1_000, int(ROWS[what] * arguments.scale / (4 if arguments.quick else 1)))
            load = make(KINDS[what], rows, folder)
            loads[what] = load.facts()
            print(f"{TITLES[what]}: {turns} turns", flush=True)
            found[what] = measure(what, load, rows, turns)
        if "words" in chosen:
            load = make("sentences", max(1_000, int(TUPLES / 10 * arguments.scale)), folder)
            processes = _processes(load, max(1, turns // 3))
    result = {
        "bench": "hops",
        "machine": machine,
        "seed": SEED,
        "turns": turns,
        "semantics": "Nanoseconds of wall time for each counted tuple: a word of A, a record of B. All hops share one thread, so that no "
        "other process of the run is in the caches or on the core, and waking a process is not in it. Medians of stretches "
        "in turns; a stretch begins and ends at rest",
        "loads": loads,
        **{{"words": "A", "sums": "B"}[what]: each for what, each in found.items()},
        "collector": processes,
    }
    text = [line for what, each in found.items() for line in lines_of(TITLES[what], each)]
    if processes:
        text += _process_lines(processes)
    write_with(
        arguments.out, result, text, lambda path: draw(path, {TITLES[what]: each for what, each in found.items()})
    )


if __name__ == "__main__":
    main()
