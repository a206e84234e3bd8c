"""Limits: the number of sub-units that a unit may have, and the share of free places when several want more at once."""

from __future__ import annotations

from collections.abc import Mapping

from esault.elasticity.view import RunView, UnitView
from esault.errors import UsageError

__all__ = ["above_zero", "granted", "limits", "shares"]


def limits(unit: UnitView, free_slots: int) -> tuple[int, int]:
    """Fewest and most sub-units; without `max_parallelism` as many as there are free places."""
    least, most = unit.plan.min_parallelism, unit.plan.max_parallelism
    return least, max(least, unit.width + free_slots if most is None else most)


def granted(view: RunView, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return the part of the wanted widths that can be had: within each unit's limits, and with the free places there are.

    Places that are short go one by one to the unit that has the smallest share of what it wants, since the narrowest unit
    decides what the whole passes. Units that shrink give nothing to those that grow: their places are not free yet.
    """
    widths: dict[str, int] = {}
    for name, n in wanted.items():
        least, most = limits(view.units[name], view.free_slots)
        widths[name] = min(max(n, least), most)
    now = {name: view.units[name].width for name in widths}
    if sum(max(0, n - now[name]) for name, n in widths.items()) <= view.free_slots:
        return widths
    given = {name: min(n, now[name]) for name, n in widths.items()}
    for _ in range(view.free_slots):
        short = [name for name in widths if given[name] < widths[name]]
        poorest = min(short, key=lambda name: given[name] / widths[name])
        given[poorest] += 1
    return given


def above_zero(policy: str, **parameters: float) -> None:
    """Refuse a parameter that is 0 where that means nothing. Raises UsageError that names it."""
    for name, value in parameters.items():
        if not value > 0:
            raise UsageError(f"policy {policy!r}: {name}={value:g} must be above 0")


def shares(policy: str, **parameters: float) -> None:
    """Refuse a share of a sub-unit's time that is 0 or more than 1. Raises UsageError that names it."""
    above_zero(policy, **parameters)
    for name, value in parameters.items():
        if not value <= 1:
            raise UsageError(f"policy {policy!r}: {name}={value:g} is a share, at most 1")
