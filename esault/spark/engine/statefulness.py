"""A check for state: a bolt that keeps nothing from one tuple to the next runs wherever its sender runs."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.plan import UnitPlan

__all__ = ["stateless"]

#: where attributes are made and not kept
_MAKING = {"__init__", "open", "close", "__getstate__", "__setstate__"}
_WRITES = {"STORE_ATTR", "DELETE_ATTR"}


def stateless(unit: UnitPlan) -> bool:
    """Return whether each tuple may go to another object of this bolt without a difference.

    That is so for a bolt that comes by shuffle, has no `tick` and no `finish` of its own, no state when it is fresh, and
    no line in its methods that sets an attribute. What hides from that look is found while it runs (`runners`).
    """
    if unit.objects != "sub-unit" or not all(i.grouping.promises.anywhere for i in unit.inputs):
        return False
    if unit.tick_every is not None or unit.factory is None:
        return False
    made = unit.factory()
    cls = type(made)
    own = Bolt if isinstance(made, Bolt) else BatchBolt
    if cls.finish is not own.finish or (not unit.batch and made.__getstate__()):
        return False
    return not any(_keeps(code) for code in _codes(cls))


def _codes(cls: type) -> Iterator[CodeType]:
    """The code of all methods that the user wrote."""
    for base in cls.__mro__:
        if base in (Bolt, BatchBolt):
            return
        for name, member in vars(base).items():
            function: Any = getattr(member, "__func__", member)
            if isinstance(member, property):
                function = member.fget
            if name not in _MAKING and isinstance(function, FunctionType):
                yield from _nested(function.__code__)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _keeps(code: CodeType) -> bool:
    if {"keyed", "setattr", "__dict__", "vars"} & set(code.co_names):
        return True
    return any(step.opname in _WRITES for step in dis.get_instructions(code))
