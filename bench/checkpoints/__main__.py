"""The cost of checkpoints: throughput of workload A with one every second, every ten, none; size and time by the number of keys.

python -m bench.checkpoints --out DIR [--quick] [--runs N]
"""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from typing import Any

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import command, in_turns, launch, ratio, spread, summary
from bench.kit.result import Bar, write
from bench.workloads.loads import SEED, make

__all__ = ["main"]

#: name -> settings of the run
MODES = {
    "at least once, no checkpoints": (),
    "every 10 s": ("--set", "delivery=eo", "--set", "checkpoint_every=10"),
    "every second": ("--set", "delivery=eo", "--set", "checkpoint_every=1"),
}
SIZES = (10_000, 100_000, 1_000_000)


def _of_size(run: dict[str, Any]) -> dict[str, Any]:
    """The first full checkpoint behind the load, and the median of those of what changed."""
    loaded = [each for each in run["checkpoints"] if each["loaded"]]
    full = max(run["checkpoints"], key=lambda each: (each["base"], each["keys"]))
    later = [each for each in loaded if not each["base"]]
    if full["keys"] < run["keys"] or not later:
        raise RuntimeError(f"{run['keys']:,} keys: no full checkpoint, or none behind it: {run['checkpoints']}")
    return {
        "keys": run["keys"],
        "full": {name: full[name] for name in ("keys", "bytes", "seconds")},
        "changed": {name: statistics.median(each[name] for each in later) for name in ("keys", "bytes", "seconds")},
        "number_of_changed": len(later),
        "latency_ms": run["latency_ms"],
        "restore_seconds": run["restore_seconds"],
    }


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    runs = arguments.runs or (1 if arguments.quick else 3)
    lines = max(1, int((200_000 if arguments.quick else 3_000_000) * arguments.scale))
    sizes = SIZES[:1] if arguments.quick else SIZES
    machine = facts()
    with tempfile.TemporaryDirectory() as folder:
        load = make("sentences", lines, folder)
        print(f"A: {load.tuples:,} words", flush=True)
        calls = {
            name: partial(command, load, "bench.kit.esault_run", "words", load.path, load.passes, *more)
            for name, more in MODES.items()
        }
        found = in_turns(runs, calls, lambda run: f"{run['tuples_per_second'] / 1e6:.2f} M/s")
    rates = {name: [run["tuples_per_second"] for run in of] for name, of in found.items()}
    none = rates["at least once, no checkpoints"]
    modes: dict[str, dict[str, Any]] = {
        name: {"tuples_per_second": summary(of), "ratio": ratio(of, none), "runs": found[name]}
        for name, of in rates.items()
    }
    by_size: list[dict[str, Any]] = []
    for keys in sizes:
        print(f"{keys:,} keys", flush=True)
        each = [_of_size(launch("bench.checkpoints.run", keys, "--seconds", 8.0)) for _ in range(runs)]
        by_size.append(
            {
                "keys": keys,
                **{
                    kind: {name: summary([one[kind][name] for one in each]) for name in ("keys", "bytes", "seconds")}
                    for kind in ("full", "changed")
                },
                "p99_ms": summary([one["latency_ms"]["p99"] for one in each]),
                "restore_seconds": summary([one["restore_seconds"] for one in each]),
            }
        )
    text = ["A, words/s"]
    for name, its in modes.items():
        rate, versus = its["tuples_per_second"], its["ratio"]
        text.append(f"  {name:30} {spread(rate, unit=1e6, of=' M/s'):>24}   {spread(versus, of=' x')}")
    text.append("100 bytes of state a key, one sub-unit; one key in a hundred changes between two checkpoints")
    for its in by_size:
        full, changed = its["full"], its["changed"]
        text.append(
            f"  {its['keys']:9,} keys   full: {full['bytes']['median'] / 1e6:7.2f} MB in {full['seconds']['median']:.3f} s   "
            f"changed: {changed['keys']['median']:,.0f} keys, {changed['bytes']['median'] / 1e6:.2f} MB in "
            f"{changed['seconds']['median']:.3f} s ({changed['bytes']['median'] / full['bytes']['median']:.1%} of the bytes)   "
            f"back after a death in {its['restore_seconds']['median']:.2f} s"
        )
    result = {"bench": "checkpoints", "machine": machine, "seed": SEED, "runs": runs, "A": modes, "sizes": by_size}
    bars = [Bar.of(name, its["tuples_per_second"], 1e6) for name, its in modes.items()]
    times = [
        Bar.of(f"{its['keys']:,} keys, {kind}", its[kind]["seconds"]) for its in by_size for kind in ("full", "changed")
    ]
    write(arguments.out, result, text, {"A, million words/s": bars, "a checkpoint, seconds": times}, "as titled")


if __name__ == "__main__":
    main()
