"""The units of a run, copies and gates among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from esault.control.replication.grouped_unit import MergerUnit
from esault.control.replication.replica_unit import ReplicaUnit
from esault.control.units.elastic_unit import ElasticUnit
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
) -> dict[str, ElasticUnit]:
    """A unit for each of the plan, with the numbers of sub-units that were chosen. Raises UsageError."""
    check_settings(plan, settings)
    units: dict[str, ElasticUnit] = {}
    groups: dict[str, list[ReplicaUnit]] = {}
    for name, unit in plan.units.items():
        kind = MergerUnit if unit.gate else ReplicaUnit if unit.copies > 1 else ElasticUnit
        made = units[name] = kind(plan, unit, width(unit, chosen), new_build)
        if isinstance(made, ReplicaUnit):
            made.group = groups.setdefault(unit.original, [])
            made.group.append(made)
    return units


def check_settings(plan: Plan, settings: Settings) -> None:
    """Copies need acks, with the owners of the roots, and no going back. Raises UsageError."""
    names = [name for name, unit in plan.units.items() if unit.copies > 1 and not unit.copy]
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
        raise UsageError(f"{said} --ackers {settings.ackers}: their roots' ledgers sit with the owners; leave it out")


def down(units: Iterable[Unit]) -> tuple[int, ...]:
    """Lanes of copies that are not whole."""
    return tuple(sorted(unit.plan.lane for unit in units if isinstance(unit, ReplicaUnit) and unit.down))


def mergers(units: Iterable[Unit]) -> tuple[int, ...]:
    """Sub-units that must be told which roots are done."""
    return tuple(r.incarnation for u in units if u.plan.gate for r in u.subs.values() if r.built is not None)
