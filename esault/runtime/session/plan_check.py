"""All that can be known of a plan before anything of it starts: parallelism, slots, and what sources and sinks say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from esault.elasticity.budget import Budget
from esault.errors import EsaultError, SinkError, SourceError, UsageError
from esault.flow.operators.user_error import described
from esault.messages.checkpoint import CompletedCheckpoint
from esault.runtime.session.budget_check import check_budget
from esault.topology.plan import Plan
from esault.topology.replicas import width

__all__ = ["check_plan"]


def check_plan(
    plan: Plan,
    slots: int,
    parallelism: Mapping[str, int],
    remedy: str = "",
    kept: CompletedCheckpoint | None = None,
    budget: Budget | None = None,
    prices: Sequence[tuple[float, int]] = (),
) -> None:
    """Check all that can be known before anything starts. Raises SourceError, SinkError, UsageError.

    `remedy` for too few slots; `kept`: the checkpoint to go on from; `prices`: of slots of the hosts, and how many there are of each.
    """
    for name, n in parallelism.items():
        unit = plan.units.get(name)
        if unit is None:
            raise UsageError(plan.unknown(name))
        most = unit.max_parallelism
        if n < 1 or (most is not None and n > most):
            raise UsageError(
                f"unit {name!r} cannot have parallelism {n}: it may have 1 to {most or 'the number of slots'}"
            )
    widths = {u.name: width(u, parallelism) for u in plan.units.values()}
    needed = sum(widths.values())
    check_budget(plan, budget or Budget(), needed, prices)
    if needed > slots:
        raise UsageError(
            f"{plan.name} needs {needed} slots to start and there are {slots}; {remedy or f'say --slots {needed}'}, or start with less "
            f"(--parallelism) than {', '.join(f'{name} {many}' for name, many in widths.items() if many)}"
        )
    for unit in plan.units.values():
        if unit.spout is not None:
            _call_check(unit.spout.check, f"unit {unit.name!r}", SourceError)
        elif unit.check is not None:
            _call_check(unit.check, f"unit {unit.name!r}", SourceError)
    if kept is not None and kept.over:
        return  # sinks may have been told so already: to one that writes to nothing that exists it looks like another's
    for sink in plan.sinks:
        _call_check(sink.sink.check, f"sink {sink.name!r}", SinkError)


def _call_check(check: Callable[[], None], whose: str, kind: type[EsaultError]) -> None:
    """Call the user's `check`; what it raises by mistake is told as `kind`."""
    try:
        check()
    except EsaultError:
        raise
    except Exception as error:
        raise kind(f"{whose}, check: {described(error)}") from None
