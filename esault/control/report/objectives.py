"""Latency objectives of a run as people read them: how they stand, and what became of them."""

from __future__ import annotations

from esault.control.run.driver import Driver
from esault.elasticity.objective import ObjectiveStatus
from esault.report import Objective, in_words

__all__ = ["reported", "standing", "sub_unit_seconds"]


def standing(status: ObjectiveStatus) -> str:
    """Return one objective as it stands, in a line."""
    if status.recent is None:
        return f"objective {status.objective}: nothing has come to its end of late"
    burning = "" if status.recent_burn_rate is None else f", burn rate {status.recent_burn_rate:,.2f}"
    return (
        f"objective {status.objective}: {in_words(1000 * status.recent)} of late{burning}; "
        f"over it in {status.seconds_over} of {status.seconds} s"
    )


def reported(driver: Driver, until: float) -> list[Objective]:
    """Return what has become of each by this time, with what the run cost."""
    cost = sub_unit_seconds(driver, until)
    return [
        Objective(
            objective=str(each.objective),
            kept=each.kept,
            measured_ms=None if each.measured is None else 1000 * each.measured,
            tuples=each.tuples,
            slow=each.slow,
            burn_rate=each.burn_rate,
            seconds=each.seconds,
            seconds_over=each.seconds_over,
            sub_unit_seconds=cost,
        )
        for each in driver.scaling.objectives.statuses
    ]


def sub_unit_seconds(driver: Driver, until: float) -> float:
    """Return the seconds for which sub-units were there, of all units together: what the run cost."""
    total = 0.0
    for unit in driver.units.values():
        ends = [at for at, _ in unit.history[1:]] + [until]
        total += sum(width * max(0.0, end - at) for (at, width), end in zip(unit.history, ends))
    return total
