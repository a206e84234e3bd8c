"""The default policy beside the best fixed widths: the same work with `auto` and without a policy, on an idle and on a busy machine.

python -m bench.real.widths --out DIR [--quick] [--runs N] [--only NAME,...] [--loops N,...]

Each kind of work of `bench real` runs as a user runs it, and without a policy on each of a few widths, in turns. --loops: busy loops of
other programs beside it, as many at a time as each number says. Rows/s are from the first row out to the last, as in `bench real`;
processor seconds are of the command and all its descendants. That rows are right is what `bench real` compares; here they are counted.

The result is written after each kind of work. With --only the others stay as an earlier run with the same --out has found them.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from bench.kit.arguments import names_among, parse
from bench.kit.machine import facts
from bench.kit.measure import Run, in_turns, ratio, spread, summary
from bench.kit.result import save, work_before
from bench.real.run import ESAULT, Work, made
from bench.real.workloads import SEED, WORKLOADS

__all__ = ["main"]

#: fixed widths by kind of work, as they stand behind "none": units that are not named have what the topology says
WIDTHS: dict[str, tuple[str, ...]] = {
    "words": ("count=1", "count=2", "lines=2"),
    "words_landed": ("count=1", "count=2", "lines=2"),
    "json_lines": ("spent=1", "spent=2", "lines=2"),
    "keys": ("count=1", "count=2", "lines=2"),
    "chain": ("lines=1", "lines=2"),
    "steps": ("lines=1", "lines=2"),
    "large": ("revise=1", "revise=2", "revise=3"),
    "windows": ("minute=1", "minute=2"),
    "waits": ("wait=4", "wait=8", "wait=15"),
    "flights": ("line=1 day=1", "line=2 day=2"),
    "files": ("lines=1", "lines=2"),
}
#: share of the full size with --quick
QUICK = 0.1
#: busy loops of other programs
LOOPS = (0, 2, 6)


def settings(name: str) -> list[str]:
    """Return the names of the runs of a kind of work: the default, and each fixed width."""
    return [ESAULT, *(f"{ESAULT}, none {width}" for width in WIDTHS[name])]


def compared(runs: dict[str, list[Run]]) -> dict[str, Any]:
    """Return the figures of all settings, which fixed one is the best by its median, and the default over that."""
    found: dict[str, Any] = {
        name: {
            "rows_per_second": summary([run["rows_per_second"] for run in each]),
            "processor_seconds": summary([run["processor_seconds"] for run in each]),
        }
        for name, each in runs.items()
    }
    best = max((name for name in runs if name != ESAULT), key=lambda name: found[name]["rows_per_second"]["median"])
    over = {
        figure: ratio([run[figure] for run in runs[ESAULT]], [run[figure] for run in runs[best]])
        for figure in ("rows_per_second", "processor_seconds")
    }
    return {"settings": found, "best": best, "default_over_best": over}


@contextlib.contextmanager
def _busy(loops: int) -> Iterator[None]:
    """Keep so many processes of another program busy."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def _say(run: Run) -> str:
    return f"{run['rows_per_second'] / 1e3:,.1f} k/s, {run['processor_seconds']:.2f} processor s"


def _measured(work: Work, runs: int, loops: Sequence[int]) -> dict[str, Any]:
    """All settings of a kind of work, beside each number of busy loops."""
    if why := work.workload.missing():
        print(f"  {why}", flush=True)
        return {"missing": why}
    found: dict[str, Any] = {}
    for number in loops:
        print(f"  beside {number} busy loops", flush=True)
        with _busy(number):
            calls = {name: partial(work.measured, name) for name in settings(work.workload.name)}
            found[str(number)] = compared(in_turns(runs, calls, _say))
    return {"rows_in": work.count, "loops": found}


def lines(name: str, found: dict[str, Any]) -> list[str]:
    """Return the text of a kind of work."""
    title = f"{name}: {WORKLOADS[name].title}"
    if "missing" in found:
        return [title, f"  {found['missing']}"]
    text = [f"{title}: {found['rows_in']:,} {WORKLOADS[name].unit}"]
    for number, its in found["loops"].items():
        text.append(f"  beside {number} busy loops")
        for setting, figures in its["settings"].items():
            text.append(
                f"    {setting:28} {spread(figures['rows_per_second'], ',.1f', 1e3, ' k/s')}   "
                f"{spread(figures['processor_seconds'], ',.2f', 1.0, ' processor s')}"
            )
        over = its["default_over_best"]
        text.append(
            f"    default over '{its['best']}': rows/s {spread(over['rows_per_second'])} x, "
            f"processor seconds {spread(over['processor_seconds'])} x"
        )
    return text


def _numbers(text: str) -> list[int]:
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write numbers with commas between them, such as 0,2,6") from None
    if min(found) < 0:
        raise argparse.ArgumentTypeError(f"{text!r}: there cannot be fewer than none")
    return found


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        type=names_among(WIDTHS),
        default=list(WIDTHS),
        metavar="NAMES",
        help=f"with commas, of: {', '.join(WIDTHS)}",
    )
    parser.add_argument("--loops", type=_numbers, default=list(LOOPS), metavar="N,...", help="busy loops beside it")


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__, _options)
    runs = arguments.runs or (1 if arguments.quick else 3)
    share = (QUICK if arguments.quick else 1.0) * arguments.scale
    machine = facts()
    found = work_before(arguments.out, runs, share, arguments.only)
    for name in arguments.only:
        with made(WORKLOADS[name], share) as work:
            found[name] = {**_measured(work, runs, arguments.loops), "machine": machine}
        found = {name: found[name] for name in WIDTHS if name in found}
        result = {"bench": "widths", "seed": SEED, "runs": runs, "share": share, "work": found}
        save(arguments.out, result, list(chain.from_iterable(lines(each, its) for each, its in found.items())))
        print("\n".join(lines(name, found[name])), flush=True)


if __name__ == "__main__":
    main()
