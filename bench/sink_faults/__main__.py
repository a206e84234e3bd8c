"""Sinks whose processes are killed as they prepare and commit; then what landed is compared with what was read.

python -m bench.sink_faults --out DIR [--quick] [--sinks NAME,...] [--runs FAULTS] [--moves] [--crashes]

Each sink has a real server of its own, started here, and its faults are seeded: processes die within 20 ms behind the beginning of
`prepare` or `commit`, or at random, one or all, and the run goes on. With `--moves` keys move as well, with `--crashes` servers are killed.
What is at least once by its page is compared behind a reader that drops repeats by their ids.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from bench.kit.arguments import names_among, parse
from bench.kit.machine import facts
from bench.kit.result import Bar, write
from bench.kit.victim import Lost
from bench.sink_faults.sinks import SINKS
from bench.sink_faults.targets import TARGETS
from bench.sink_faults.trial import Trial
from bench.workloads.loads import SEED

__all__ = ["main"]

FAULTS, QUICK = 30, 4
RATE = 1000.0
#: of sinks that send row by row, and wait for each answer
SLOW = {"mqtt": 200.0, "webhook": 200.0}
#: counts that must be 0
WRONG = ("lost", "doubled", "counted_wrongly")
#: 0 as well unless keys move
ORDER = "behind_a_later_row"


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sinks", type=names_among(SINKS), default=list(SINKS), help=f"some of: {', '.join(SINKS)}")
    parser.add_argument("--moves", action="store_true", help="keys move, too")
    parser.add_argument("--crashes", action="store_true", help="servers are killed, too")


def _tried(sink: str, faults: int, moves: bool, crashes: bool) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix=f"esault-{sink}-"))
    with TARGETS[sink](folder) as target:
        trial = Trial(sink, target, folder, SEED, SLOW.get(sink, RATE), moves, crashes)
        try:
            found = trial.run(faults)
        except Lost as error:
            done = sum(map(len, trial.seconds.values()))
            raise Lost(f"{sink}: lost after {done} faults: {error}\nwhat the run left is in {folder}") from None
        finally:
            trial.victim.end()
    shutil.rmtree(folder)
    return {"once": target.once, "ordered": target.ordered and not target.newest, **found}


def _line(sink: str, found: dict[str, Any]) -> str:
    order = f"{found[ORDER]:7,}" if found["ordered"] else "      -"
    repeats = "      -" if found["once"] else f"{found['repeats']:7,}"
    return f"{sink:18}{found['faults']:7,}{found['rows']:9,}{found['lost']:6,}{found['doubled']:9,}{found['counted_wrongly']:9,}{order}{repeats}"


def main() -> None:
    """The bench."""
    arguments = parse(__doc__, _options)
    faults = arguments.runs or (QUICK if arguments.quick else FAULTS)
    machine = facts()
    result: dict[str, Any] = {}
    lost: list[str] = []
    for sink in arguments.sinks:
        try:
            result[sink] = _tried(sink, faults, arguments.moves, arguments.crashes)
        except Lost as error:  # the others are tried all the same
            lost.append(sink)
            print(error, flush=True)
        else:
            print(_line(sink, result[sink]), flush=True)
    wrong = [sink for sink, found in result.items() if any(found[count] for count in WRONG)]
    wrong += [sink for sink, found in result.items() if found[ORDER] and not arguments.moves]
    lines = [
        f"{'sink':18}{'faults':>7}{'rows':>9}{'lost':>6}{'doubled':>9}{'miscounts':>10}{'behind':>8}{'repeats':>8}",
        *(_line(sink, found) for sink, found in result.items()),
        "behind: rows that stand behind a later row of their key; repeats: rows that came again, with the id that they had",
        f"faults: {_kinds(result)}{'; keys moved' if arguments.moves else ''}",
    ]
    bars = [Bar(sink, found["recovery"], 0.0, found["recovery"]) for sink, found in result.items()]
    whole = {
        "bench": "sink_faults",
        "machine": machine,
        "seed": SEED,
        "rate": RATE,
        "moves": arguments.moves,
        "sinks": result,
    }
    write(arguments.out, whole, lines, {"longest recovery, two checkpoints included": bars}, "seconds")
    if lost or wrong:
        raise SystemExit(f"not as promised: {', '.join([*lost, *wrong])}")


def _kinds(result: dict[str, Any]) -> str:
    total: dict[str, int] = {}
    for found in result.values():
        for kind, count in found["kinds"].items():
            total[kind] = total.get(kind, 0) + count
    return ", ".join(f"{count} {kind}" for kind, count in sorted(total.items(), key=lambda each: -each[1]))


if __name__ == "__main__":
    main()
