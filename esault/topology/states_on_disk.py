"""The bolts that may have the states of keys on a disk: those whose objects are needed one at a time."""

from __future__ import annotations

from esault.topology.plan import UnitPlan

__all__ = ["why_not_on_disk"]


def why_not_on_disk(unit: UnitPlan) -> str | None:
    """Return why all objects of a bolt are in memory, in a few words; None where the states of keys can be on a disk."""
    if unit.window is not None:
        return "it has windows, which end by themselves"
    if unit.batch:
        return "a BatchBolt has one object per sub-unit"
    if not unit.objects.endswith("key"):
        return f"it has one object per {unit.objects}, and not one per key; take by_key()"
    if unit.concurrency is not None:
        return "its process is async, and objects wait in the middle of it; write a plain def"
    if unit.tick_every is not None:
        return "tick_every has every object called; take timers"
    return None
