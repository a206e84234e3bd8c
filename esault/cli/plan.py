"""`esault plan`.

It is one module of over 300 lines: the options of a plan, and what each becomes.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esault.cli.completion import complete_policies
from esault.cli.finite_range import FiniteRange
from esault.cli.topology_argument import params_of, place_of, set_option, topology_argument
from esault.counters import counted
from esault.elasticity.budget import Budget
from esault.errors import EsaultError, UsageError

if TYPE_CHECKING:
    from esault.sim.capacity_plan import CapacityPlanner, Outcome
    from esault.sim.change_costs import ChangeCost
    from esault.sim.unit_profile import UnitProfile
    from esault.topology.plan import Plan

__all__ = ["command"]

#: seconds of a load that are simulated where nothing is said
QUARTER = 900.0


@click.command("plan")
@topology_argument
@set_option
@click.option(
    "--report", required=True, type=click.Path(dir_okay=False), help="report.json of a run of it: what a tuple takes."
)
@click.option(
    "--load",
    "loads",
    metavar="[SPOUT=]FILE.csv",
    multiple=True,
    help="Times and tuples a second that come to a spout; may be repeated.",
)
@click.option("--rate", "rates", metavar="[SPOUT=]N", multiple=True, help="The same number of tuples each second.")
@click.option(
    "--per", type=float, default=1.0, show_default=True, help="Seconds in which the second column of the file counts."
)
@click.option("--peak", type=float, help="Scale the file so that so many tuples a second are its most.")
@click.option(
    "--seconds",
    type=float,
    help="How much of the load to simulate, where it is highest.  [default: a quarter of an hour]",
)
@click.option("--objective", metavar="TEXT", default="", help="What is asked for, such as 'p99 < 100 ms'.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    shell_complete=complete_policies,
    help="Try this one; may be repeated.  [default: auto]",
)
@click.option("--slots", type=click.IntRange(1), default=64, show_default=True, help="Sub-units of bolts at most.")
@click.option("--host-slots", type=click.IntRange(1), help="Slots of a host.  [default: processors of this one]")
@click.option(
    "--budget",
    metavar="N|MONEY/h",
    help="Say what the best use of so many sub-units gives, or of as many as the money buys: as of `esault run`.",
)
@click.option("--slot-price", type=FiniteRange(0), help="What a slot costs an hour, in any money.")
@click.option(
    "--margin",
    type=FiniteRange(0, 10),
    default=0.25,
    show_default=True,
    help="Share by which a tuple may take more, or less, than was measured.",
)
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="Runs with other random numbers.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def command(
    topology: str,
    settings: tuple[str, ...],
    report: str,
    loads: tuple[str, ...],
    rates: tuple[str, ...],
    per: float,
    peak: float | None,
    seconds: float | None,
    objective: str,
    policies: tuple[str, ...],
    slots: int,
    host_slots: int | None,
    budget: str | None,
    slot_price: float | None,
    margin: float,
    seeds: int,
    as_json: bool,
) -> None:
    """Say what TOPOLOGY would need under a load, before it is deployed: sub-units, hosts, cost.

    What a tuple takes, and how many come out for one, is read from the report of a run on a little input:

    \b
    esault run words.py --report out/report.json
    esault plan words.py --report out/report.json --load requests.csv --objective 'p99 < 100 ms'

    Each policy, and the fewest sub-units that nothing changes, is simulated several times: with other random numbers,
    with slow changes, and with tuples that take more and less than was measured.
    """
    from esault.elasticity.objective import LatencyObjective
    from esault.elasticity.scaling import SLACK
    from esault.sim.capacity_plan import CapacityPlanner, Scenario
    from esault.sim.change_costs import learnt_timing, slowest
    from esault.sim.model import Timing
    from esault.ui.capacity_table import changing, conclusion, measured, plain, table, within_budget

    place = place_of(topology)
    plan = place.build(params_of(place, settings)).plan()
    read = _read(topology, plan, Path(report))
    profiles, costs = _profiles(plan, read), _change_costs(read)
    timing = learnt_timing(costs, Timing(reported=SLACK))
    offered, length, told = _offered(plan, loads, rates, per, peak, seconds)
    spouts = sum(unit.parallelism for unit in plan.units.values() if unit.kind == "spout")
    bought = None if budget is None else _bought(plan, Budget.parse(budget), slot_price)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # Forked: policies that the topology's file registers are known there.
    with ProcessPoolExecutor(processors, multiprocessing.get_context("fork")) as pool:
        wanted = LatencyObjective.parse(objective) if objective else None
        most = slots if bought is None else min(slots, bought - spouts)
        scenario = Scenario(tuple(profiles), offered, length, wanted, most, bought is not None, timing)
        trying: dict[str, Any] = {
            "margin": margin,
            "slowest": slowest(costs, timing),
            "seeds": range(1, seeds + 1),
            "mapped": pool.map,
        }
        planner = CapacityPlanner(scenario, **trying)
        try:
            outcomes = list(_tried(planner, policies or ("auto",)))
        except EsaultError as error:
            raise error from None  # whose cause is the frames of a process of the pool
        best = None if bought is None else max(outcomes, key=planner.rank)
        enough = None
        if best is not None and not planner.sure(best):
            enough = CapacityPlanner(replace(scenario, slots=slots, budget=False), **trying).cheapest_fixed(
                lambda text: None
            )
    hosts = host_slots or processors
    if as_json:
        print(json.dumps([plain(each, spouts, hosts, slot_price) for each in outcomes], allow_nan=False, indent=1))
        return
    print(f"{plan.name}, as in {report}; {told}")
    print("\n".join([*measured(profiles), changing(timing, len(costs), sum(1 for each in costs if each.started))]))
    print()
    print("\n".join(table(planner, outcomes, spouts, hosts, slot_price)))
    print()
    print("\n".join(conclusion(planner, outcomes)))
    if best is not None and budget is not None:
        print("\n".join(within_budget(planner, best, enough, Budget.parse(budget), spouts, slot_price)))


def _bought(plan: Plan, budget: Budget, price: float | None) -> int:
    """Return how many sub-units the budget allows. Raises UsageError."""
    from esault.runtime.session.budget_check import least_of

    if budget.hourly and not (price and price > 0):
        raise UsageError(f"--budget {budget}: say what a slot costs an hour, by --slot-price")
    allowed, least = budget.bought(price or 1.0), least_of(plan)
    if allowed < least:
        buys = f" buys {counted(allowed, 'sub-unit')}" if budget.hourly else ""
        raise UsageError(f"--budget {budget}{buys}: {plan.name} takes {least} at the least, one for each unit")
    return allowed


def _read(topology: str, plan: Plan, path: Path) -> dict[str, Any]:
    """Return the report of a run of this topology on the actors. Raises UsageError."""
    try:
        report: dict[str, Any] = json.loads(path.read_text())
        units = report["units"]
    except OSError as error:
        raise UsageError(
            f"--report {path}: {error.strerror}; `esault run {topology} --report {path}` writes one"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"--report {path}: it is no report of a run; `esault run {topology} --report {path}` writes one"
        ) from None
    if missing := [name for name in plan.units if name not in units]:
        raise UsageError(
            f"--report {path} is of {report.get('topology')!r} with the units {', '.join(units)}, and {plan.name!r} "
            f"has {', '.join(missing)} besides; run it with --report"
        )
    if report.get("engine") == "spark":
        raise UsageError(
            f"--report {path} is of a run on Spark, which does not measure what a tuple takes; run it on the actors"
        )
    return report


def _change_costs(report: dict[str, Any]) -> list[ChangeCost]:
    """Return what changes took in that run."""
    from esault.sim.change_costs import ChangeCost

    return [ChangeCost.of_report(each) for each in report.get("changes", ()) if not each.get("dropped")]


def _profiles(plan: Plan, report: dict[str, Any]) -> list[UnitProfile]:
    """Return what each unit did in the run that the report is of."""
    from esault.sim.unit_profile import UnitProfile

    units = report["units"]
    profiles = []
    for name, unit in plan.units.items():
        one = units[name]
        inside = sum(other["busy_seconds"] for other in units.values() if other.get("chained_to") == name)
        profiles.append(
            UnitProfile(
                name,
                unit.kind,
                plan.senders(name) if unit.kind == "bolt" else (),
                one.get("arrivals", 0),
                one["tuples_in"],
                one["tuples_out"],
                max(0.0, one["busy_seconds"] - inside),
                width=unit.min_parallelism,
                least=unit.min_parallelism,
                most=1 if unit.objects == "unit" else unit.max_parallelism,
            )
        )
    return profiles


def _offered(
    plan: Plan,
    loads: Sequence[str],
    rates: Sequence[str],
    per: float,
    peak: float | None,
    seconds: float | None,
) -> tuple[dict[str, Any], float, str]:
    """Return the load of each spout, how long it is simulated, and words for it. Raises UsageError."""
    from esault.sim.capacity_plan import busiest
    from esault.sim.load_file import load_file
    from esault.sim.load_shapes import Part, Steps
    from esault.sim.loads import scaled

    if seconds is not None and not 0 < seconds < math.inf:
        raise UsageError(f"--seconds {seconds:g} must be above 0 and finite")
    spouts = [name for name, unit in plan.units.items() if unit.kind == "spout"]
    found: dict[str, Any] = {}
    told = []
    for text in loads:
        spout, path = _of_spout("--load", text, spouts)
        # As the file says: so many from then on. A line to the next row would take the edge off each jump.
        load = scaled(load_file(path, per=per, shape="steps"), peak=peak)
        length = min(load.seconds, QUARTER) if seconds is None else seconds
        begin = busiest(load, length)
        found[spout] = Part(load, begin, length) if length < load.seconds else load
        part = f", the {length:,.0f} s from {begin:,.0f} s on, where it is highest" if length < load.seconds else ""
        told.append(f"{spout}: {path}, {load.seconds:,.0f} s, {load.peak:,.4g} tuples/s at most{part}")
    for text in rates:
        spout, number = _of_spout("--rate", text, spouts)
        if not re.fullmatch(r"\d+(\.\d+)?([eE]\+?\d{1,2})?", number) or not float(number):
            raise UsageError(f"--rate {text}: {number!r} must be a number of tuples a second, above 0")
        found[spout] = Steps((0.0,), (float(number),), 60.0 if seconds is None else seconds)
        told.append(f"{spout}: {float(number):,.4g} tuples/s")
    if missing := [name for name in spouts if name not in found]:
        raise UsageError(
            f"nothing is said of what comes to {', '.join(missing)}: write --load {missing[0]}=FILE.csv, or --rate"
        )
    return found, max(load.seconds for load in found.values()), "; ".join(told)


def _of_spout(option: str, text: str, spouts: Sequence[str]) -> tuple[str, str]:
    named, _, rest = text.partition("=")
    if rest and named in spouts:
        return named, rest
    if len(spouts) == 1:
        return spouts[0], text
    raise UsageError(f"{option} {text}: name the spout, as in {spouts[0]}={text}; there are: {', '.join(spouts)}")


def _tried(planner: CapacityPlanner, policies: Sequence[str]) -> Iterator[Outcome]:
    shows = sys.stderr.isatty()

    def tell(what: str) -> None:
        if shows:
            print(f"\r\033[K{what}: {counted(len(planner.trials), 'run')} ...", end="", file=sys.stderr, flush=True)

    try:
        for policy in policies:
            tell(policy)
            yield planner.outcome(policy)
        fixed = planner.cheapest_fixed(tell)
        if fixed is None and planner.scenario.budget:
            fixed = planner.best_fixed()
        if fixed is not None:
            yield fixed
    finally:
        if shows:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
