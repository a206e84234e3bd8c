"""The cost of each thing beside the data: switched off or changed alone, against the defaults, in turns in one run.

python -m bench.costs --out DIR [--quick] [--runs N] [--only CHANGE,...]

Workload A twice: as fast as it goes (words/s), and at 400 000 words/s, open loop (p50 and p99 from when a word was due). Each ratio
is to the default of the same turn.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from functools import partial
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import Run, command, in_turns, missing, ratio, spread, summary
from bench.kit.result import Bar, write
from bench.workloads.loads import LENGTH, SEED, make

__all__ = ["main"]

DEFAULT = "defaults"
RATE = 400_000

#: what is changed: arguments of bench.kit.esault_run
CHANGES: dict[str, tuple[str, ...]] = {
    DEFAULT: (),
    "no acks": ("--set", "delivery=none"),
    "ledger in an ack server": ("--set", "ackers=1"),
    "no status reports": ("--set", "status_every=1000"),
    "no probes, no policy": ("--policy", "none"),
    "roots of 128 tuples": ("--set", "root_rows=128"),
    "no linger": ("--set", "linger=0"),
    "linger 5 ms": ("--set", "linger=0.005"),
    "checkpoint every 10 s": ("--set", "delivery=eo", "--set", "checkpoint_every=10"),
    "checkpoint every second": ("--set", "delivery=eo", "--set", "checkpoint_every=1"),
}
#: of them, for throughput alone
TABLE = "row ids and a SparkTable"


def _say(run: Run) -> str:
    late = run["latency_ms"]
    return f"{run['tuples_per_second'] / 1e6:.2f} M/s, p50 {late['p50']:.2f} ms, p99 {late['p99']:.2f} ms"


def _figures(timed: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """By change: each figure's median and spread, and its ratio to the default's."""
    base = timed[DEFAULT]
    return {
        name: {
            figure: {
                **summary([take(run) for run in runs]),
                "ratio": ratio([take(r) for r in runs], [take(r) for r in base]),
            }
            for figure, take in figures.items()
        }
        for name, runs in timed.items()
        if not isinstance(runs, str)
    }


def _lines(fast: dict[str, Any], paced: dict[str, Any]) -> list[str]:
    lines = [f"{'':26} {'million words/s':>24} {'ratio':>6}   at {RATE:,} words/s: p50, p99 in ms"]
    for name, figures in fast.items():
        rate = figures["words_per_second"]
        late = ""
        if name in paced:
            p50, p99 = paced[name]["p50_ms"], paced[name]["p99_ms"]
            late = f"{p50['median']:5.2f}, {spread(p99)}"
        lines.append(f"{name:26} {spread(rate, unit=1e6):>24} {rate['ratio']['median']:6.2f}   {late}")
    return lines


def _only(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="CHANGE,...", help="beside the defaults; all unless said")


def chosen(only: str | None) -> dict[str, tuple[str, ...]]:
    """The changes to measure, the defaults first. Raises SystemExit with the names that there are."""
    if only is None:
        return CHANGES
    names = {name.strip() for name in re.split(r",(?! no policy)", only)}
    if unknown := names - {*CHANGES}:
        raise SystemExit(f"there is no change {', '.join(sorted(unknown))}; there are: {'; '.join(CHANGES)}")
    return {name: change for name, change in CHANGES.items() if name in {DEFAULT, *names}}


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__, _only)
    changes = chosen(arguments.only)
    runs = arguments.runs or (2 if arguments.quick else 5)
    lines = max(1, int((150_000 if arguments.quick else 600_000) * arguments.scale))
    seconds = (2.0 if arguments.quick else 5.0) * arguments.scale
    machine = facts()
    with tempfile.TemporaryDirectory() as folder:
        load = make("sentences", lines, folder)
        print(f"A: {load.tuples:,} words", flush=True)
        calls: dict[str, Any] = {
            name: partial(command, load, "bench.kit.esault_run", "words", load.path, load.passes, *change)
            for name, change in changes.items()
        }
        calls[TABLE] = missing("pyarrow") or partial(
            command, load, "bench.kit.esault_run", "words", load.path, load.passes, "--sink", "table"
        )
        fast = _figures(in_turns(runs, calls, _say), {"words_per_second": lambda run: run["tuples_per_second"]})
        part = make("sentences", max(1, int(RATE / LENGTH * seconds)), folder)
        print(f"C: {part.tuples:,} words at {RATE:,}/s", flush=True)
        at = ("paced", part.path, part.passes, "--rate", RATE / LENGTH)
        calls = {name: partial(command, part, "bench.kit.esault_run", *at, *change) for name, change in changes.items()}
        late = {f"{q}_ms": (lambda run, q=q: run["latency_ms"][q]) for q in ("p50", "p99")}
        paced = _figures(in_turns(runs, calls, _say), late)
    result = {
        "bench": "costs",
        "machine": machine,
        "seed": SEED,
        "runs": runs,
        "changes": {name: list(change) for name, change in changes.items()},
        "loads": {"A": load.facts(), "C": part.facts()},
        "throughput": fast,
        "latency": paced,
    }

    def bars(figures: dict[str, Any], figure: str, unit: float) -> list[Bar]:
        return [Bar.of(name, each[figure], unit) for name, each in figures.items()]

    panels = {
        "A, million words/s": bars(fast, "words_per_second", 1e6),
        f"p50 at {RATE:,} words/s, ms": bars(paced, "p50_ms", 1),
        f"p99 at {RATE:,} words/s, ms": bars(paced, "p99_ms", 1),
    }
    write(arguments.out, result, _lines(fast, paced), panels, "median")


if __name__ == "__main__":
    main()
