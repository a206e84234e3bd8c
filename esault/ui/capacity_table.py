"""A capacity plan in words: what was measured, a line for each candidate, and which of them to take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from esault.counters import counted
from esault.elasticity.budget import Budget
from esault.sim.capacity_plan import CapacityPlanner, Outcome
from esault.sim.model import Timing
from esault.sim.unit_profile import UnitProfile

__all__ = ["changing", "conclusion", "measured", "plain", "table"]

#: seconds below which the time that keys wait is told as less than that
SHORTEST = 0.001


def measured(profiles: Sequence[UnitProfile]) -> Iterator[str]:
    """Yield a line for each bolt: what a tuple takes there, and how many come and go."""
    sent = {each.name: each.emitted for each in profiles}
    width = max(len(each.name) for each in profiles)
    for each in profiles:
        if each.kind == "spout" or not each.processed:
            continue
        before = sum(sent[name] for name in each.senders)
        comes = each.arrivals / before if before else 0.0
        yield (
            f"  {each.name.ljust(width)}  {_time(each.service)} a tuple; gets {comes:.3g} for each of {' and '.join(each.senders)}, "
            f"emits {each.emitted / each.processed:.3g} for each that it gets"
        )


def changing(timing: Timing, changes: int, growths: int) -> str:
    """Return a line on what changes take, as learnt from so many, of which some were growths."""
    more = f", {_time(timing.start_each)} more for each further one" if timing.start_each else ""
    began = f"  a new sub-unit serves after {_time(timing.start)}{more}"
    wait = _time(timing.hold(1)) if timing.hold(1) >= SHORTEST else f"less than {_time(SHORTEST)}"
    learnt = f"(as in {counted(changes, 'change')} of that run)"
    if growths:
        return f"{began}; moved keys wait {wait} {learnt}"
    if changes:
        return f"{began} (assumed: that run started none); moved keys wait {wait} {learnt}"
    return f"{began}; moved keys wait {wait} (assumed: that run had no change)"


def _hosts(outcome: Outcome, spouts: int, slots: int) -> int:
    return math.ceil((outcome.span("most")[2] + spouts) / slots)


def _cost(outcome: Outcome, spouts: int, price: float) -> float:
    return (outcome.span("mean")[0] + spouts) * price


def table(
    planner: CapacityPlanner, outcomes: Sequence[Outcome], spouts: int, slots: int, price: float | None
) -> Iterator[str]:
    """Yield the lines of a table, a candidate in each. `spouts`: sub-units of spouts; `slots`: of a host; `price`: of a slot an hour."""
    kept = "" if planner.scenario.objective is None else "kept in"
    head = ["", kept, "p99", "sub-units", "at most", "changes", f"hosts of {slots}"] + ["cost an hour"] * (
        price is not None
    )
    rows = [head]
    for each in outcomes:
        p99, mean, most, changes = each.span("p99"), each.span("mean"), each.span("most"), each.span("changes")
        row = [
            str(each.candidate),
            "" if planner.scenario.objective is None else f"{each.kept} of {len(each.trials)}",
            _span(p99, _time),
            _span(mean, lambda value: f"{value:.3g}"),
            f"{most[2]:.0f}",
            f"{changes[0]:.0f}",
            str(_hosts(each, spouts, slots)),
        ]
        rows.append([*row, f"{_cost(each, spouts, price):.3g}"] if price is not None else row)
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()


def _span(span: tuple[float, float, float], said: Any) -> str:
    first, least, most = span
    if any(map(math.isnan, span)):
        return "-"
    texts = said(first), said(least), said(most)
    return texts[0] if texts[1] == texts[2] else f"{texts[0]} ({texts[1]} to {texts[2]})"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:  # else it would be rounded to 1000 of the smaller one
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def conclusion(planner: CapacityPlanner, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield how the candidates were tried, and which of them keeps the objective with the fewest sub-units."""
    seeds, most = len({each.seed for each in planner.trials}), max(each.cost for each in planner.trials)
    slow = max(each.slowness for each in planner.trials)
    told = f", with changes that take {slow:.2g} times as long" if slow > 1 else ""
    told += f", and with tuples that take {most - 1:.0%} more, and less by as much" if most > 1 else ""
    yield f"Each was simulated {counted(len(planner.trials), 'time')}: with {counted(seeds, 'seed')}{told}."
    if planner.scenario.objective is None:
        yield "Say --objective 'p99 < 100 ms' to see what keeps it."
        return
    safe = [each for each in outcomes if each.safe]
    if safe:
        best = min(safe, key=lambda each: each.span("mean")[0])
        yield f"{planner.scenario.objective} is kept in all of them by {best.candidate}, with the fewest sub-units on average."
        return
    yield f"{planner.scenario.objective} is kept by none in all of them."
    for name, (allowed, work) in planner.too_narrow().items():
        yield f"{name} may have {counted(allowed, 'sub-unit')} at most, and the load's peak is work for {work:.1f}."
    if slowest := [
        p
        for p in planner.scenario.profiles
        if p.processed and p.kind == "bolt" and p.service > planner.scenario.objective.seconds
    ]:
        yield f"A tuple of {slowest[0].name} alone takes {_time(slowest[0].service)}: more sub-units do not help."
    elif not planner.scenario.budget:
        yield f"More --slots than {planner.scenario.slots} may help, or a later objective."


def within_budget(
    planner: CapacityPlanner, best: Outcome, enough: Outcome | None, budget: Budget, spouts: int, price: float | None
) -> Iterator[str]:
    """Yield what the best use of a budget gives, how sure that is, and what would do. `enough`: what does, where `best` does not."""
    tried = len(best.trials)
    waits = [f"{value:,.0f}" for value in best.span("backlog")]
    most = waits[0] if waits[1] == waits[2] else f"{waits[0]} ({waits[1]} to {waits[2]})"
    yield f"The best use of a budget of {budget}: {best.candidate}, beside {counted(spouts, 'sub-unit')} of spouts."
    yield f"  latency: p99 {_span(best.span('p99'), _time)}; backlog: at most {most} tuples"
    kept = f", and keeps {planner.scenario.objective} in {best.kept}" if planner.scenario.objective is not None else ""
    yield f"  how sure: of {counted(tried, 'simulation')} it keeps up in {best.keeping_up}{kept}"
    if planner.sure(best):
        return
    if enough is None:
        yield "No fixed number of sub-units within --slots does better in all of them."
        return
    n = sum(enough.candidate.widths.values()) + spouts
    would = Budget(n) if not budget.hourly else Budget(hourly=n * (price or 0.0))
    yield f"A budget of {would} would do in all of them: {enough.candidate}."


def plain(outcome: Outcome, spouts: int, slots: int, price: float | None) -> Mapping[str, Any]:
    """Return an outcome as values for JSON."""
    trials = [
        {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(t).items()} for t in outcome.trials
    ]
    cost = None if price is None else _cost(outcome, spouts, price)
    return {
        "policy": outcome.candidate.policy,
        "widths": dict(outcome.candidate.widths),
        "kept": outcome.kept,
        "keeping_up": outcome.keeping_up,
        "hosts": _hosts(outcome, spouts, slots),
        "cost_an_hour": cost,
        "trials": trials,
    }
