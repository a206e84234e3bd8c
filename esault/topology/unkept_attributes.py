"""Attributes of a `BatchBolt` that its methods change: the engine keeps `keyed` of it and nothing else, so they are lost with the process.

`Bolt` keeps all of its attributes, and programs are changed from one to the other.
"""

from __future__ import annotations

from typing import Any, Generic

from esault.topology.bolt import BatchBolt
from esault.topology.factory import class_behind
from esault.topology.method_code import changed_by_methods, code_of, of_itself
from esault.topology.plan import Plan

__all__ = ["unkept_attributes"]

_BASES = (BatchBolt, Generic, object)
#: hooks behind which nothing is left to be lost, or that make what is there
_BUT = frozenset(("__init__", "open", "close", "finish"))


def unkept_attributes(plan: Plan) -> list[str]:
    """Return a sentence for each BatchBolt whose methods change attributes that `__init__` sets, `keyed` apart."""
    found = []
    for unit in plan.units.values():
        cls = class_behind(unit.factory) if unit.batch else None
        if cls is None or cls.__module__.startswith("esault."):
            continue
        changed = changed_by_methods(cls, _made(cls) - {"keyed"}, _BUT, _BASES)
        for name, method in sorted(changed.items()):
            keep = (
                "what belongs to a key is kept in self.keyed[key]"
                if unit.objects.endswith("key")
                else "what must last is emitted before the method returns, or kept by a Bolt"
            )
            found.append(
                f"unit {unit.name!r}: {method} changes self.{name}, which of a BatchBolt neither moves nor is in a checkpoint: good for a cache, "
                f"and lost where results depend on it; {keep}"
            )
    return found


def _made(cls: type[Any]) -> set[str]:
    """Return the names that `__init__` sets, and those that the class itself has values for."""
    found: set[str] = set()
    for base in cls.__mro__:
        if base in _BASES:
            continue
        found.update(name for name, value in vars(base).items() if isinstance(value, (int, float, str, type(None))))
        for code in code_of(vars(base).get("__init__")):
            found.update(name for what, name in of_itself(code) if what == "STORE_ATTR")
    return {name for name in found if not name.startswith("__")}
