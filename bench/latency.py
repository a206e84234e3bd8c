"""How long a tuple takes: workload C, word count at fixed rates, open loop, from due to the sink; Bytewax beside.

python -m bench.latency --out DIR [--quick] [--runs N]
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from bench.loads import SEED
from bench.machine import facts
from bench.measure import bytewax, esault, repeated
from bench.result import write
from esault.messages.settings import Settings

__all__ = ["main"]

#: words a second
RATES = (50_000, 100_000, 200_000, 400_000)


def _ours(rate: int, seconds: float) -> dict[str, Any]:
    result = esault("paced", {"n": int(rate / 10 * seconds), "rate": rate / 10}, weigh=False)
    return {**result, "p50_ms": result["end_to_end_ms"]["p50"], "p99_ms": result["end_to_end_ms"]["p99"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes; for tests")
    arguments = parser.parse_args()
    runs = arguments.runs or (1 if arguments.quick else 3)
    seconds = (3.0 if arguments.quick else 8.0) * arguments.scale
    rates = RATES[-1:] if arguments.quick or arguments.scale < 1 else RATES
    machine = facts()
    found = {}
    for rate in rates:
        print(f"C: {rate:,} words/s for {seconds:g} s")
        found[str(rate)] = repeated(
            runs,
            {
                "esault": lambda rate=rate: _ours(rate, seconds),  # type: ignore[misc]
                "bytewax, 1 worker": lambda rate=rate: bytewax("words", int(rate / 10 * seconds), rate / 10),  # type: ignore[misc]
            },
            "p99_ms",
        )
    result = {
        "bench": "latency",
        "machine": machine,
        "seed": SEED,
        "runs": runs,
        "settings": asdict(Settings()),
        "semantics": "R; open loop; from when the first tuple of a batch was due to the end of processing before the sink "
        "(eSault, within 5 %), to the sink's write of a batch (Bytewax)",
        "C": found,
    }
    text = []
    bars: dict[str, dict[str, float]] = {}
    for rate_text, group in found.items():
        text.append(f"C at {int(rate_text):,} words/s")
        for who, figures in group.items():
            if "missing" in figures:
                text.append(f"  {who:20} {figures['missing']}")
                continue
            p50 = sorted(r["p50_ms"] for r in figures["runs"])[len(figures["runs"]) // 2]
            text.append(
                f"  {who:20} p50 {p50:6.2f} ms  p99 {figures['median']:6.2f} ms  "
                f"({figures['least']:.2f} to {figures['most']:.2f})"
            )
            bars.setdefault(f"p99 at {int(rate_text) // 1000} k words/s", {})[who] = figures["median"]
    write(arguments.out, result, text, bars, "ms")


if __name__ == "__main__":
    main()
