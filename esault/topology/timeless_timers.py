"""Timers in event time of bolts whose tuples have none: found before the first tuple, at which the run would fail."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import Generic

from esault.topology.bolt import Bolt
from esault.topology.factory import class_behind
from esault.topology.method_code import codes_of_methods
from esault.topology.plan import Plan, UnitPlan

__all__ = ["timeless_timers"]

_BASES = (Bolt, Generic, object)


def timeless_timers(plan: Plan) -> list[str]:
    """Return a sentence for each bolt that sets timers without `by=`, where an input of it has no event time."""
    return [
        f"{where} sets a timer by event time, which the tuples of {unit.name!r} have not: say .timed(lambda value: value['at']) before "
        "the bolt, on each of its inputs, or take by='processing'"
        for unit in plan.units.values()
        if unit.timers and not unit.watermarks
        for where in _setters(unit)
    ]


def _setters(unit: UnitPlan) -> Iterator[str]:
    """Yield the first method that sets a timer and nowhere says by which time."""
    cls = None if unit.factory is None else class_behind(unit.factory)
    if cls is None:
        return
    owners: dict[str, str] = {}  # of methods: what a class defines anew is not that of those it derives from
    for name, code in codes_of_methods(cls, (), _BASES):
        owner, _, method = name.rpartition(".")
        if owners.setdefault(method, owner) == owner and "timer" in code.co_names and not _says_by(code):
            yield name
            return


def _says_by(code: CodeType) -> bool:
    # a keyword stands in a tuple of names, an argument by itself
    return any(each == "processing" or (type(each) is tuple and "by" in each) for each in code.co_consts)
