"""A budget that a run cannot even start within: found before anything starts, and said with the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from esault.control.placement.placement import Cluster
from esault.counters import counted
from esault.elasticity.budget import Budget
from esault.errors import UsageError
from esault.topology.plan import Plan
from esault.topology.replicas import width

__all__ = ["check_budget", "least_of"]


def check_budget(plan: Plan, budget: Budget, needed: int, prices: Sequence[tuple[float, int]] = ()) -> None:
    """Check that the run may hold what it takes to start. Raises UsageError that says the least.

    `prices`: of the hosts' slots, and how many of each; empty where there are no hosts.
    """
    if budget.sub_units < 0 or budget.hourly < 0:
        raise UsageError(f"a budget of {budget} is none: it is above 0, or 0 for no limit")
    if budget.hourly and not prices:
        raise UsageError(
            f"--budget {budget}: slots of this machine have no price; name hosts whose nodes have a --slot-price by --hosts, or say "
            "--budget N for a number of sub-units"
        )
    allowed = _bought(budget, prices) if budget.hourly else budget.sub_units
    if not (budget.sub_units or budget.hourly) or needed <= allowed:
        return
    least = least_of(plan)
    buys = f", which buys {counted(allowed, 'slot')} of these hosts" if budget.hourly else ""
    if least > allowed:
        of = buys or " sub-units"
        raise UsageError(f"{plan.name} cannot run within a budget of {budget}{of}: it takes {least} at the least")
    raise UsageError(
        f"{plan.name} takes {needed} sub-units to start and the budget is {budget}{buys}: "
        f"begin with less (--parallelism UNIT=N; {least} is the least), or say --budget {_enough(budget, needed, prices)}"
    )


def least_of(plan: Plan) -> int:
    """Return the fewest sub-units that the topology runs with: those of spouts, and of each bolt as many as it may shrink to."""
    return sum(
        width(unit, {} if unit.kind == "spout" else {unit.name: unit.min_parallelism}) for unit in plan.units.values()
    )


def _bought(budget: Budget, prices: Sequence[tuple[float, int]]) -> int:
    hosts = Cluster(hourly_budget=budget.hourly)
    for i, (price, slots) in enumerate(prices):
        hosts.join(str(i), slots, slot_price=price)
    return hosts.free


def _enough(budget: Budget, needed: int, prices: Sequence[tuple[float, int]]) -> Budget:
    """Return the least budget of the same kind for so many sub-units."""
    if not budget.hourly:
        return Budget(needed)
    each = sorted(price for price, slots in prices for _ in range(slots))
    return Budget(hourly=sum(each[:needed]))
