"""Timers in a topology's calls, checked: which bolts may have them."""

from __future__ import annotations

from esault.errors import TopologyError
from esault.topology.bolt import Bolt
from esault.topology.factory import class_behind
from esault.topology.inputs import written
from esault.topology.plan import UnitPlan

__all__ = ["check_timers"]


def check_timers(unit: UnitPlan) -> bool:
    """Return whether this bolt has timers: it defines `on_timer`. Raises TopologyError where it cannot have them."""
    assert unit.factory is not None
    cls = class_behind(unit.factory) or type(unit.factory())
    hook = getattr(cls, "on_timer", None)
    if hook is None or hook is Bolt.on_timer:
        return False
    where = f"unit {unit.name!r}: {cls.__name__} defines on_timer, and"
    if unit.batch:
        raise TopologyError(
            f"{where} a BatchBolt has one object for all keys; timers are those of a key: make it a Bolt"
        )
    if unit.window is not None:
        raise TopologyError(
            f"{where} an object of a window lives until that closes, when its finish is called; set timers in a bolt by_key()"
        )
    if unit.concurrency is not None:
        raise TopologyError(
            f"{where} its process is async: a call of the key may be open when the timer is due; set timers in a plain bolt "
            "before or behind it"
        )
    if unit.objects not in ("key", "unit"):
        raise TopologyError(
            f"{where} it comes by {written(unit.inputs[0].grouping)}, whose objects stand for no key and go when the unit shrinks, with "
            "what was to be done later; group it by_key() or single(), or use tick_every"
        )
    return True
