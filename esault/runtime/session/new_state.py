"""The state of objects that have processed nothing yet: what of it could not move is known before a run is started."""

from __future__ import annotations

from esault.errors import StateError
from esault.flow.operators.derived_class import NO_WINDOW, maker
from esault.flow.operators.element_state import pack_state, put_state
from esault.payload.codec import Codec
from esault.topology.bolt import Bolt
from esault.topology.context import Context
from esault.topology.plan import Plan, UnitPlan

__all__ = ["refused_states"]


def refused_states(plan: Plan) -> list[str]:
    """Return a sentence for each bolt whose new object has state that a run would refuse with the first tuple.

    Constructors are called, which is harmless: they open nothing. What `process` adds later is not known here.
    """
    codec = Codec()
    return [why for unit in plan.units.values() if (why := _refused(unit, codec)) is not None]


def _refused(unit: UnitPlan, codec: Codec) -> str | None:
    if unit.factory is None or unit.batch:
        return None
    windows = {} if unit.window is not None else NO_WINDOW
    make, _ = maker(unit.factory, {"context": Context(unit.name), **windows}, Bolt)
    try:
        made, other = make(), make()
    except Exception as error:
        return f"unit {unit.name!r}: its constructor raised {type(error).__name__}: {error}"
    if type(made).__module__.startswith("esault."):
        return None
    try:
        put_state(unit.name, other, pack_state(unit.name, made, codec), codec)
    except StateError as error:
        return str(error)
    except Exception as error:  # of __getstate__ or __setstate__, which may lean on what a run gives it
        return f"unit {unit.name!r}: the state of a new object cannot be saved: {type(error).__name__}: {error}"
    return None
