"""The gain and the cost of more sub-units: 1 to 32 behind a slept service time, at a fixed rate, and the output table to 10 000.

python -m bench.scale --out DIR [--quick] [--runs N]
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import psutil

from bench.kit.arguments import parse
from bench.kit.machine import facts
from bench.kit.measure import Run, in_turns, launch, spread, summary
from bench.kit.result import write_with
from bench.scale.plot import draw
from bench.scale.table import of_table
from bench.scale.topology import KEYS
from bench.workloads.loads import SEED
from esault.messages.settings import Settings

__all__ = ["main"]

NUMBERS, QUICK = (1, 2, 4, 8, 16, 32), (1, 16)
#: sub-units for which keys are also taken as the hash has them
UNEVEN = (16, 32)
TABLES = (10, 100, 1_000, 10_000)
#: seconds per tuple, slept
SERVICE = 0.005
#: tuples a second where the cost is measured
RATE = 10_000
#: bytes that a process is reckoned with
PROCESS = 64 << 20
#: what is no sub-unit and no spout
CONTROL = ("driver", "keeper", "admin", "command")


def checked(run: Run) -> Run:
    """A run that lost or repeated nothing, its figures beside what it printed. Raises RuntimeError."""
    if run["rows"] != run["offered"] or run["replayed"]:
        raise RuntimeError(
            f"{run['n']} sub-units put out {run['rows']:,} of {run['offered']:,} tuples, {run['replayed']} roots replayed"
        )
    if run["changes"]:
        raise RuntimeError(f"{run['n']} sub-units were to stay as they are, and there were {run['changes']} changes")
    rows, seconds, shares = sum(run["steady_rows"]), run["window_seconds"], run["steady_rows"]
    cpu = {name: sum(of_all) for name, of_all in run["cpu_seconds"].items()}
    roles = {"sub-units": cpu["serve"], "spout": cpu["offer"], "control": sum(cpu[name] for name in CONTROL)}
    run["tuples_per_second"] = rows / seconds
    # what the fullest sub-unit has, as a multiple of its fair share
    run["fullest"] = max(shares) * len(shares) / rows
    run["cpu_us_per_tuple"] = {
        **{role: 1e6 * s / rows for role, s in roles.items()},
        "all": 1e6 * sum(cpu.values()) / rows,
    }
    run["cpu_share"] = {role: s / seconds for role, s in roles.items()}
    return run


def efficiencies(run: Run, of_one: float) -> dict[str, float]:
    """Of the rate of n sub-units in n times the rate of one; and corrected: had the fullest its fair share."""
    efficiency = run["tuples_per_second"] / (run["n"] * of_one)
    return {"efficiency": efficiency, "efficiency_corrected": efficiency * run["fullest"]}


def grouped(runs: list[Run]) -> dict[str, Any]:
    """Median, least and most of every figure that all runs have, and the runs."""
    figures: dict[str, Any] = {}
    for name in ("tuples_per_second", "fullest", "start_up_seconds", "efficiency", "efficiency_corrected"):
        if name in runs[0]:
            figures[name] = summary([run[name] for run in runs])
    for name in ("cpu_us_per_tuple", "cpu_share"):
        figures[name] = {role: summary([run[name][role] for run in runs]) for role in runs[0][name]}
    figures["p99_ms"] = summary([run["latency_ms"]["p99"] for run in runs])
    return {**figures, "runs": runs}


def _run(n: int, *arguments: object) -> Callable[[], Run] | str:
    """A call for so many sub-units, or why the machine does not bear them."""
    free = psutil.virtual_memory().available
    if free < n * PROCESS:
        return f"skipped: {n} processes may need {n * PROCESS >> 20} MiB, and {free >> 20} MiB are free"
    return lambda: checked(launch("bench.scale.run", n, *arguments))


def _say(run: Run) -> str:
    return (
        f"{run['tuples_per_second']:,.0f} tuples/s, the fullest has {run['fullest']:.3f} of its share, "
        f"{run['cpu_us_per_tuple']['all']:.0f} us CPU per tuple"
    )


def _measured(runs: int, calls: dict[int, Callable[[], Run] | str]) -> dict[int, list[Run] | str]:
    found = in_turns(runs, {f"{n} sub-units": call for n, call in calls.items()}, _say)
    return {n: found[f"{n} sub-units"] for n in calls}


def _groups(found: dict[int, list[Run] | str]) -> tuple[dict[int, Any], dict[int, str]]:
    """Figures by number of sub-units, and what was skipped."""
    groups = {n: grouped(runs) for n, runs in found.items() if not isinstance(runs, str)}
    return groups, {n: why for n, why in found.items() if isinstance(why, str)}


def _lines(
    slept: dict[int, Any], uneven: dict[int, Any], paced: dict[int, Any], probed: dict[int, Any], table: dict[int, Any]
) -> list[str]:
    lines = [
        f"{SERVICE * 1000:g} ms slept per tuple: tuples/s, efficiency, corrected for the fullest sub-unit, its share"
    ]
    for title, groups in (("", slept), (", keys as the hash has them", uneven)):
        for n, group in groups.items():
            lines.append(
                f"  {n:2} sub-units{title}: {spread(group['tuples_per_second'], ',.0f')}   "
                f"{spread(group['efficiency'], '.3f')}   {spread(group['efficiency_corrected'], '.3f')}   "
                f"{group['fullest']['median']:.3f}"
            )
    for title, groups in ((", nothing decides", paced), (", `probe` looks and decides", probed)):
        lines.append(
            f"{RATE:,} tuples/s, no service time{title}: CPU per tuple, us; control's share of a core; start-up; p99"
        )
        for n, group in groups.items():
            cpu = group["cpu_us_per_tuple"]
            lines.append(
                f"  {n:2} sub-units: all {spread(cpu['all'], '.1f')}: sub-units {cpu['sub-units']['median']:.1f}, spout "
                f"{cpu['spout']['median']:.1f}, control {cpu['control']['median']:.1f}   "
                f"{spread(group['cpu_share']['control'], '.1%')}   {spread(group['start_up_seconds'], '.2f')} s   "
                f"{group['p99_ms']['median']:.1f} ms"
            )
    lines.append(
        "the output table: ns per key in the cache, not in it, per row routed; us per split, merge; its journey"
    )
    for n, figures in table.items():
        middle = {name: f["median"] for name, f in figures.items() if isinstance(f, dict)}
        lines.append(
            f"  {n:6,} intervals: {middle['cached_ns']:.0f}, {middle['uncached_ns']:.0f}, {middle['route_row_ns']:.0f} ns   "
            f"{middle['split_us']:.1f}, {middle['merge_us']:.1f} us   copied in {middle['copy_ms']:.2f} ms   "
            f"{figures['message_bytes'] / 1000:,.1f} kB packed in {middle['pack_ms']:.2f}, unpacked in "
            f"{middle['unpack_ms']:.2f}, installed in {middle['install_ms']:.2f} ms"
        )
    return lines


def main() -> None:
    """Run as the arguments say."""
    arguments = parse(__doc__)
    runs = arguments.runs or (1 if arguments.quick else 3)
    steady = (5.0 if arguments.quick else 20.0) * arguments.scale
    warm = min(2.0, steady)
    numbers = QUICK if arguments.quick else NUMBERS
    machine = facts()
    window = ("--seconds", steady, "--warm", warm)
    print(f"{SERVICE * 1000:g} ms slept per tuple, as many keys in each part of the ring")
    found = _measured(runs, {n: _run(n, "--service", SERVICE, *window) for n in numbers})
    print("the same, keys as the hash has them")
    as_they_come = {n: _run(n, "--service", SERVICE, "--as-they-come", *window) for n in UNEVEN if n in numbers}
    found_uneven = _measured(runs, as_they_come)
    ones = found[1]
    if isinstance(ones, str):
        raise SystemExit(f"one sub-unit: {ones}")
    of_one = statistics.median(run["tuples_per_second"] for run in ones)
    for results in (*found.values(), *found_uneven.values()):
        for run in results if not isinstance(results, str) else ():
            run.update(efficiencies(run, of_one))
    print(f"{RATE:,} tuples/s, no service time")
    still = ("--service", 0, "--rate", RATE, "--seconds", steady / 2, "--warm", warm)
    found_paced = _measured(runs, {n: _run(n, *still) for n in numbers})
    print("the same, `probe` looks and decides, and has nothing to change")
    found_probed = _measured(runs, {n: _run(n, *still, "--policy", "probe") for n in numbers})
    table = {}
    for size in TABLES:
        print(f"the output table with {size:,} intervals", flush=True)
        table[size] = of_table(size, max(1, round((5 if arguments.quick else 15) * arguments.scale)))
    (slept, skipped), (uneven, _) = _groups(found), _groups(found_uneven)
    (paced, _), (probed, _) = _groups(found_paced), _groups(found_probed)
    machine["load_at_end"] = os.getloadavg()[0]  # of what else went on: a sleeping sub-unit is no load
    result = {
        "bench": "scale",
        "machine": machine,
        "seed": SEED,
        "runs": runs,
        "settings": asdict(Settings()),
        "semantics": "Spout -> keyed bolt -> counted sink, at least once. Rates and CPU times (user and system, of each "
        "process) are of the steady part, after the warm-up and before the spout ends. A sub-unit is one worker that owes the "
        "service time per tuple, sleeps it in portions, and takes oversleeping off the next. efficiency = rate of n / (n "
        "x median rate of 1). Keys are picked so that each of 64 equal parts of the ring has as many, in random order, where "
        "not said otherwise; efficiency_corrected is times what the fullest sub-unit had of a fair share. Control: driver, "
        "keeper, first process and command; paced_probed: with the policy `probe`, which probes ten times a second, looks and "
        "decides, but can change nothing. Look-ups: per key, 128 keys at a time as a route does; not cached means that the "
        "key is hashed, looked up and put into the cache. A table's journey is from the unit to one sender",
        "service_seconds": SERVICE,
        "rate": RATE,
        "keys": KEYS,
        "skipped": skipped,
        "slept": {str(n): group for n, group in slept.items()},
        "slept_keys_as_they_come": {str(n): group for n, group in uneven.items()},
        "paced": {str(n): group for n, group in paced.items()},
        "paced_probed": {str(n): group for n, group in probed.items()},
        "table": {str(size): figures for size, figures in table.items()},
    }
    lines = [*_lines(slept, uneven, paced, probed, table), *(f"{n} sub-units: {why}" for n, why in skipped.items())]
    write_with(arguments.out, result, lines, lambda path: draw(path, slept, uneven, paced, probed, table))


if __name__ == "__main__":
    main()
