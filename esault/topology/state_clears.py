"""Calls of `clear_state` in a topology's bolts, checked: whose objects stand for a key."""

from __future__ import annotations

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.factory import class_behind
from esault.topology.method_code import codes_of_methods, of_itself
from esault.topology.plan import UnitPlan

__all__ = ["check_state_clears"]


def check_state_clears(unit: UnitPlan) -> None:
    """Raise TopologyError for a bolt that calls `self.clear_state()` where there is no state of a key to clear."""
    why = _why_not(unit)
    if why is None:
        return
    assert unit.factory is not None
    cls = class_behind(unit.factory)
    if cls is None or getattr(cls, "clear_state", Bolt.clear_state) is not Bolt.clear_state:
        return
    for method, code in codes_of_methods(cls, (), (Bolt, BatchBolt)):
        if any(name == "clear_state" for _, name in of_itself(code)):
            raise TopologyError(f"unit {unit.name!r}: {method} calls self.clear_state(), and {why}")


def _why_not(unit: UnitPlan) -> str | None:
    if unit.batch:
        return "a BatchBolt has one object for all keys; write del self.keyed[key]"
    if unit.window is not None:
        return "an object of a window lives until that closes; leave it out, or keep state in a bolt by_key()"
    if unit.in_parts:
        return f"it comes by {unit.inputs[0].grouping!r}, where a key's state is in several objects; group it by_key(), or use expire_after"
    if unit.objects == "unit":
        return "single() has one object, which stays; set its attributes anew"
    if unit.objects != "key":
        return f"it comes by {unit.inputs[0].grouping!r}, whose objects stand for no key; group it by_key()"
    return None
