"""Bolts that were given `tick_every` and define no `tick`: a name that was misspelt, most likely."""

from __future__ import annotations

from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.factory import class_behind
from esault.topology.plan import Plan

__all__ = ["unused_ticks"]


def unused_ticks(plan: Plan) -> list[str]:
    """Return a sentence for each bolt whose `tick_every` calls nothing."""
    return [
        f"unit {unit.name!r}: tick_every={unit.tick_every:g} says how often tick(self, now) is called, and {cls.__name__} defines none; define "
        "it, or leave tick_every out"
        for unit in plan.units.values()
        if unit.tick_every is not None
        and (cls := class_behind(unit.factory)) is not None
        and getattr(cls, "tick", None) in (Bolt.tick, BatchBolt.tick)
    ]
