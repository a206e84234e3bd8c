"""A guard of the data path: counts of what Python executes a tuple, beside a committed baseline. No time is compared.

python -m bench.smoke [--out DIR] [--quick] [--renew]

Bytecodes, calls and peak memory of workloads A and B are exact, so that 3 % more is a loss; CPU time is compared only as a ratio to a
bare loop in the same process, with a wide margin, for what C does. Exit code 1 and the functions that grew, where something is lost.

The counts belong to a version of Python. Where that has no baseline, the ratio alone decides, and the output says so.
After a change that is worth its cost, or that made it faster: --renew, and say why in the commit.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.kit.arguments import end_on_signals
from bench.kit.machine import facts
from bench.smoke import baseline as baselines
from bench.smoke.baseline import Line
from bench.smoke.counts import Counts, count
from bench.smoke.ratio import RATIOS, least_middle
from bench.smoke.workloads import WORKLOADS

__all__ = ["main"]

#: times the baseline's ratio that are a loss. Medians of 9 rounds lay within 8 % of the middle over 20 runs on two cores beside a busy loop
#: and other work, a load average of up to nine (A 2.26 to 2.56, B 3.12 to 3.53); the rest is for a processor of another kind. A cost that doubles is far above
RATIO = 1.35
#: ... and times that of another version of Python: from 3.10 to 3.13 they differ by up to 1.2
RATIO_ELSEWHERE = 1.6
UNITS = {"bytecodes": "a tuple", "Python calls": "a tuple", "C calls": "a tuple", "peak memory": "KiB"}
REMEDY = (
    "Find it: the functions above, or py-spy record on `python -m bench.kit.esault_run`. Or it is worth it: python -m bench.smoke --renew, "
    "and say why in the commit."
)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.smoke", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", metavar="DIR", help="for result.json and result.txt")
    parser.add_argument("--quick", action="store_true", help="fewer rounds of the ratios; the counts are what they are")
    parser.add_argument(
        "--renew", action="store_true", help="take what is measured as this Python's baseline; shows old and new"
    )
    return parser.parse_args()


def _ratios(baseline: Mapping[str, Any] | None, of: str, rounds: int) -> tuple[list[Line], list[str]]:
    """Against this Python's baseline, or that of the nearest; and what to say about it."""
    notes, factor = [], RATIO
    if baseline is None:
        near = baselines.nearest(of)
        baseline, factor = (baselines.read(near) if near else None), RATIO_ELSEWHERE
        notes.append(
            f"Python {of} has no baseline: NO COUNT IS COMPARED. "
            + (
                f"The ratios alone decide, beside those of {near}, up to {factor} times."
                if near
                else "Nor is any ratio."
            )
            + " Make one: python -m bench.smoke --renew"
        )
    lines = []
    for workload in RATIOS:
        before = baseline["ratios"].get(workload.name) if baseline is not None else None
        limit = None if before is None else before * factor
        now = least_middle(workload, rounds, limit)
        verdict = "NEW" if limit is None else "LOSS" if now > limit else "same"
        lines.append(Line(workload.name, "ratio", before, now, verdict, factor - 1))
    return lines, notes


def _table(lines: list[Line]) -> list[str]:
    text = [f"{'workload':16} {'what':26} {'baseline':>9} {'now':>9} {'change':>8}  verdict"]
    for line in lines:
        if line.now is None:
            text.append(f"{line.workload:16} {line.what}  {line.verdict}")
            continue
        what = f"{line.what}, {UNITS[line.what]}" if line.what in UNITS else "CPU time, x bare loop"
        before = "-" if line.baseline is None else f"{line.baseline:.2f}"
        change = "-" if line.change is None else "none" if abs(line.change) < 0.0005 else f"{line.change:+.1%}"
        text.append(f"{line.workload:16} {what:26} {before:>9} {line.now:>9.2f} {change:>8}  {line.verdict}")
    return text


def _says(
    lines: list[Line],
    counts: Mapping[str, Counts],
    baseline: Mapping[str, Any] | None,
    machine: Mapping[str, Any],
) -> list[str]:
    """Return what is lost and where it grew; what is better."""
    text = []
    for line in lines:
        if not line.failed:
            continue
        if line.verdict == "NEW":
            text.append(f"{line.workload}: {line.what} has no baseline; python -m bench.smoke --renew")
            continue
        text.append(
            f"LOSS: {line.workload}: {line.what} {line.baseline:.2f} -> {line.now:.2f} ({line.change:+.1%}; up to {line.allowed:.0%} pass)"
        )
        if line.what == "bytecodes" and baseline is not None:
            more = baselines.grown(baseline, line.workload, counts[line.workload].functions)
            text += [f"    {name}: {n:+.2f} bytecodes a tuple" for name, n in more]
    if any(line.verdict == "LOSS" for line in lines):
        other = baselines.elsewhere(baseline, machine) if baseline is not None else []
        if other:
            text.append(f"The baseline was made with another environment, which can be the reason: {'; '.join(other)}.")
        text.append(REMEDY)
    gains = sorted({line.workload for line in lines if line.verdict == "gain"})
    if gains:
        text.append(
            f"Better than the baseline: {'; '.join(gains)}. Renew it, that it may not be lost again: python -m bench.smoke --renew"
        )
    return text


def _count_all(renew: bool) -> tuple[dict[str, Counts], dict[str, str]]:
    skipped = {each.name: each.missing for each in WORKLOADS if each.missing}
    if renew and skipped:
        sys.exit(f"a baseline needs all workloads: {'; '.join(f'{name} {why}' for name, why in skipped.items())}")
    return {each.name: count(each) for each in WORKLOADS if not each.missing}, skipped


def main() -> None:
    """Run as the arguments say."""
    arguments = _parse()
    end_on_signals()
    of = baselines.version()
    try:
        baseline = baselines.read(of)
    except ValueError as error:
        if not arguments.renew:
            sys.exit(str(error))
        baseline = None
    machine = facts()
    counts, skipped = _count_all(arguments.renew)
    lines = baselines.compare(baseline, {name: each.figures for name, each in counts.items()}, skipped)
    rounds = 9 if arguments.quick else 21
    ratio_lines, notes = _ratios(baseline, of, rounds)
    lines += ratio_lines
    text = _table(lines)
    if arguments.renew:
        text += _renew(of, machine, counts, ratio_lines)
    else:
        text += notes + _says(lines, counts, baseline, machine)
    failed = not arguments.renew and any(line.failed for line in lines)
    print("\n".join(text))
    if arguments.out:
        folder = Path(arguments.out)
        folder.mkdir(parents=True, exist_ok=True)
        result = {
            "bench": "smoke",
            "machine": machine,
            "rounds": rounds,
            "passed": not failed,
            "lines": [{**vars(line), "change": line.change} for line in lines],
            "functions": {name: each.functions for name, each in counts.items()},
        }
        (folder / "result.json").write_text(json.dumps(result, indent=2) + "\n")
        (folder / "result.txt").write_text("\n".join(text) + "\n")
        print(f"{folder}/result.json, result.txt")
    sys.exit(1 if failed else 0)


def _renew(of: str, machine: Mapping[str, Any], counts: Mapping[str, Counts], ratios: list[Line]) -> list[str]:
    path = baselines.write(
        of,
        {
            "python": platform.python_version(),
            "machine": machine,
            "workloads": {name: each.figures for name, each in counts.items()},
            "ratios": {line.workload: line.now for line in ratios},
            "functions": {name: each.functions for name, each in counts.items()},
        },
    )
    text = [f"{path} is renewed; say in the commit why."]
    stale = baselines.others(of)
    if stale:
        text.append(
            f"The baselines of {', '.join(stale)} are as they were: renew them with those Pythons, or delete them."
        )
    return text


if __name__ == "__main__":
    main()
