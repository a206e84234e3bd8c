"""Calls of a remote service by one sub-unit, a second: `async def process` with 1 to 256 calls open, beside a plain def.

python -m bench.async_calls --out DIR [--quick] [--runs N] [--scale X]

Sleeping models the service: 10 ms a call, and no processor time. What a call costs of itself is seen where none waits.
"""

from __future__ import annotations

from functools import partial

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import Run, in_turns, launch, spread, summary
from bench.kit.result import Bar, write

__all__ = ["main"]

SECONDS = 0.01
CONCURRENCIES = (1, 16, 64, 256)
#: seconds that a run takes if nothing but the service takes time
LENGTH, QUICK_LENGTH = 4.0, 1.0
#: calls of a run that waits for nothing
AT_ONCE, QUICK_AT_ONCE = 1_000_000, 100_000


def _run(rows: int, seconds: float, concurrency: int) -> Run:
    run = launch("bench.async_calls.run", rows, seconds, concurrency)
    if run["rows"] != rows or run["replayed"]:
        raise RuntimeError(f"{run['rows']} of {rows} calls came back, and {run['replayed']} roots were replayed")
    # The first results stand for calls that began before them.
    run["calls_per_second"] = rows / (run["last"] - run["first"] + seconds)
    return run


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    length = (QUICK_LENGTH if arguments.quick else LENGTH) * arguments.scale
    at_once = int((QUICK_AT_ONCE if arguments.quick else AT_ONCE) * arguments.scale)
    runs = arguments.runs or (1 if arguments.quick else 3)
    machine = facts()
    calls = {"plain def": partial(_run, int(length / SECONDS), SECONDS, 0)}
    for concurrency in CONCURRENCIES:
        rows = int(length / SECONDS) * concurrency
        calls[f"async, concurrency={concurrency}"] = partial(_run, rows, SECONDS, concurrency)
    calls["plain def, no wait"] = partial(_run, at_once, 0.0, 0)
    calls["async, no wait"] = partial(_run, max(1, at_once // 5), 0.0, 64)
    measured = in_turns(runs, calls, lambda run: f"{run['calls_per_second']:,.0f} calls/s")
    rates: dict[str, dict[str, float]] = {}
    for name, each in measured.items():
        rates[name] = summary([run["calls_per_second"] for run in each])
    lines = [f"calls of {SECONDS * 1000:g} ms by one sub-unit, a second: median (least to most) of {runs}"]
    for name, rate in rates.items():
        lines.append(f"  {name:26} {spread(rate, ',.0f'):>28}")
    result = {"bench": "async_calls", "machine": machine, "seconds_per_call": SECONDS, "calls_per_second": rates}
    bars = [Bar.of(name, rate) for name, rate in rates.items()]
    waiting = [bar for bar in bars if "no wait" not in bar.name]
    write(arguments.out, result, lines, {f"calls of {SECONDS * 1000:g} ms": waiting}, "calls/s")


if __name__ == "__main__":
    main()
