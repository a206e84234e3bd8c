"""The units of a run, replicas and mergers among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count

from esault.control.replication.group_requests import GroupRequests
from esault.control.replication.replica import Replica
from esault.control.units.unit import Unit
from esault.errors import UsageError
from esault.messages.control import Build
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.topology.plan import Plan
from esault.topology.replicas import width

__all__ = ["check_settings", "down", "make_units", "mergers"]


def make_units(
    plan: Plan, chosen: Mapping[str, int], settings: Settings, new_build: Callable[..., Build]
) -> dict[str, Unit]:
    """Make a unit for each of the plan, with the numbers of sub-units that were chosen. Raises UsageError."""
    check_settings(plan, settings)
    new_id = count(1).__next__
    units = {name: Unit(plan, unit, width(unit, chosen), new_build, new_id) for name, unit in plan.units.items()}
    groups: dict[str, list[Replica]] = {}
    members: dict[str, list[Unit]] = {}
    for unit in units.values():
        if unit.plan.replicas > 1 and not unit.plan.merger:
            original = unit.plan.original
            members.setdefault(original, []).append(unit)
            unit.replicate(Replica(unit, groups.setdefault(original, [])), GroupRequests(unit, members[original]))
    return units


def check_settings(plan: Plan, settings: Settings) -> None:
    """Refuse settings that replicas cannot go with: they need acks, at the owners of the roots. Raises UsageError."""
    names = [name for name, unit in plan.units.items() if unit.replicas > 1 and not unit.replica_index]
    if not names:
        return
    said = f"unit {names[0]!r} has replicas, which do not go together with"
    if settings.delivery is Delivery.EXACTLY_ONCE:
        raise UsageError(
            f"{said} --checkpoint: leave replicas out where state must count each tuple once, or run without it"
        )
    if settings.delivery is Delivery.NONE:
        raise UsageError(f"{said} --acks off: acks say when a row need not be remembered any more; run with acks")
    if settings.ackers:
        raise UsageError(f"{said} --ackers {settings.ackers}: their roots are tracked by the owners; leave it out")


def down(units: Iterable[Unit]) -> tuple[int, ...]:
    """Return the accounts of replicas that are not whole."""
    return tuple(sorted(unit.plan.replica_id for unit in units if unit.down))


def mergers(units: Iterable[Unit]) -> tuple[int, ...]:
    """Return the sub-units of mergers: they must be told which roots are done."""
    return tuple(r.incarnation for u in units if u.plan.merger for r in u.subs.values() if r.built is not None)
