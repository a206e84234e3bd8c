"""The latency of a tuple: workload C, word count at fixed rates, open loop, from due to the sink; Bytewax beside.

python -m bench.latency --out DIR [--quick] [--runs N]
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import Run, command, in_turns, missing, ratio, spread, summary
from bench.kit.result import Bar, write
from bench.workloads.loads import LENGTH, SEED, Load, make
from esault.messages.settings import Settings

__all__ = ["main"]

#: words a second
RATES = (50_000, 100_000, 200_000, 400_000)
OURS, PEER = "esault", "bytewax, 1 worker"
FIGURES = ("p50", "p99", "max")
#: below this share of the rate that is offered, an engine does not keep up
KEPT_UP = 0.95


def _say(run: Run) -> str:
    figures = ", ".join(f"{figure} {run['latency_ms'][figure]:.2f} ms" for figure in FIGURES)
    return f"{figures}, at {run['tuples_per_second']:,.0f} words/s"


def _at(rate: int, load: Load, runs: int) -> dict[str, Any]:
    """Both engines at so many words a second, figures by name."""
    arguments = (load.path, load.passes, "--rate", rate / LENGTH)
    calls: dict[str, Callable[[], Run] | str] = {
        OURS: lambda: command(load, "bench.kit.esault_run", "paced", *arguments),
        PEER: missing("bytewax") or (lambda: command(load, "bench.peers.bytewax_flows", "words", *arguments)),
    }
    engines: dict[str, Any] = {}
    for name, results in in_turns(runs, calls, _say).items():
        if isinstance(results, str):
            engines[name] = {"missing": results}
            continue
        engines[name] = {
            **{f"{figure}_ms": summary([run["latency_ms"][figure] for run in results]) for figure in FIGURES},
            "words_per_second": summary([run["tuples_per_second"] for run in results]),
            "runs": results,
        }
    return engines


def _compared(engines: dict[str, Any]) -> dict[str, Any]:
    """Our latencies as multiples of the peer's."""
    if "missing" in engines[PEER]:
        return {}
    return {
        figure: ratio(*([run["latency_ms"][figure] for run in engines[name]["runs"]] for name in (OURS, PEER)))
        for figure in FIGURES
    }


def _lines(rate: int, engines: dict[str, Any]) -> list[str]:
    lines = [f"C at {rate:,} words/s, ms"]
    for name, engine in engines.items():
        if "missing" in engine:
            lines.append(f"  {name:18} {engine['missing']}")
            continue
        parts = [f"{figure} {spread(engine[f'{figure}_ms']):>24}" for figure in FIGURES]
        reached = engine["words_per_second"]["median"]
        behind = "" if reached >= KEPT_UP * rate else f"   did not keep up: {reached:,.0f} words/s"
        lines.append(f"  {name:18} {'   '.join(parts)}{behind}")
    return lines


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    runs = arguments.runs or (1 if arguments.quick else 3)
    seconds = (3.0 if arguments.quick else 8.0) * arguments.scale
    machine = facts()
    found: dict[int, dict[str, Any]] = {}
    loads: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for rate in (RATES[0], RATES[-1]) if arguments.quick else RATES:
            load = make("sentences", int(rate / LENGTH * seconds), folder)
            loads[str(rate)] = load.facts()
            print(f"C: {rate:,} words/s for {load.tuples / rate:.1f} s")
            found[rate] = _at(rate, load, runs)
    result = {
        "bench": "latency",
        "machine": machine,
        "seed": SEED,
        "runs": runs,
        "settings": asdict(Settings(chaining=True)),
        "semantics": "R; open loop; from when a word's sentence was due to when the counted sink had its update, the start "
        "included. eSault: its report's end_to_end_ms, within 5 %, where all words of a batch count from its first "
        "sentence. Bytewax: all words of every eighth batch at the sink, each from its own sentence",
        "loads": loads,
        "C": {str(rate): engines for rate, engines in found.items()},
        "ratio_to_peer": {str(rate): _compared(engines) for rate, engines in found.items()},
    }
    panels = {
        f"{figure} at {rate // 1000} k words/s": [
            Bar.of(name, engine[f"{figure}_ms"]) for name, engine in engines.items() if "missing" not in engine
        ]
        for rate, engines in found.items()
        if rate in (RATES[0], RATES[-1])
        for figure in ("p50", "p99")
    }
    write(
        arguments.out, result, [line for rate, engines in found.items() for line in _lines(rate, engines)], panels, "ms"
    )


if __name__ == "__main__":
    main()
