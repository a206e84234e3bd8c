"""How many tuples a second: workloads A and B, at-least-once, without acks, into a table; Bytewax beside.

python -m bench.throughput --out DIR [--quick] [--runs N]
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from bench.loads import SEED
from bench.machine import facts
from bench.measure import bytewax, esault, repeated
from bench.result import write
from esault.messages.settings import Settings

__all__ = ["main"]

NONE = Settings(delivery="none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes; for tests")
    arguments = parser.parse_args()
    runs = arguments.runs or (2 if arguments.quick else 5)
    lines = int((200_000 if arguments.quick else 1_000_000) * arguments.scale)
    records = int((500_000 if arguments.quick else 2_000_000) * arguments.scale)
    machine = facts()
    figure = "rows_per_second"
    print(f"A: {lines:,} sentences of ten words, keyed running count, one update per word out (R)")
    a = repeated(
        runs,
        {
            "esault": lambda: esault("words", {"n": lines}),
            "esault, acks off": lambda: esault("words", {"n": lines}, NONE),
            "esault, SparkTable": lambda: esault("words", {"n": lines // 4, "sink": "table"}),
            "bytewax, 1 worker": lambda: bytewax("words", lines),
        },
        figure,
    )
    print(f"B: {records:,} records, map, filter, keyed running sum over 1 000 keys (R)")
    b = repeated(
        runs,
        {
            "esault": lambda: esault("sums", {"n": records}),
            "esault, acks off": lambda: esault("sums", {"n": records}, NONE),
            "bytewax, 1 worker": lambda: bytewax("sums", records),
        },
        figure,
    )
    result = {
        "bench": "throughput",
        "machine": machine,
        "seed": SEED,
        "runs": runs,
        "settings": asdict(Settings()),
        "semantics": "R: one update per record; at least once unless named; rate from the first to the last result",
        "A": a,
        "B": b,
    }
    text = []
    for name, group in (("A, words/s", a), ("B, results/s (half of the records)", b)):
        text.append(name)
        for who, found in group.items():
            if "missing" in found:
                text.append(f"  {who:22} {found['missing']}")
                continue
            peer = group["bytewax, 1 worker"].get("median")
            ratio = f"  {found['median'] / peer:.2f} x Bytewax" if peer and not who.startswith("bytewax") else ""
            text.append(
                f"  {who:22} {found['median'] / 1e6:6.2f} M/s  ({found['least'] / 1e6:.2f} to {found['most'] / 1e6:.2f}){ratio}"
            )
    start = [r["start_up_seconds"] for r in a["esault"]["runs"]]
    text.append(
        f"from the command to the first result: {min(start):.2f} to {max(start):.2f} s (most of it makes the load)"
    )
    text.append(
        f"memory, all processes (PSS): {max(r['pss_mib'] for r in a['esault']['runs']):.0f} MiB (load included)"
    )
    bars = {name: {w: f["median"] / 1e6 for w, f in g.items() if "median" in f} for name, g in (("A", a), ("B", b))}
    write(arguments.out, result, text, bars, "million tuples/s")


if __name__ == "__main__":
    main()
