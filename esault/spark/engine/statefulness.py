"""A check for state: a bolt that keeps nothing from one tuple to the next runs wherever its sender runs."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType

from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.method_code import code_of, codes_of_methods
from esault.topology.plan import UnitPlan

__all__ = ["stateless"]

#: where attributes are made and not kept
_MAKING = {"__init__", "open", "close", "__getstate__", "__setstate__"}
_WRITES = {"STORE_ATTR", "DELETE_ATTR"}
#: what changes a dict, a list or a set
_CHANGES = {"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"}
_CHANGING = {
    *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "insert"),
    *("intersection_update", "move_to_end", "pop", "popitem", "popleft", "push", "remove", "setdefault", "subtract"),
    *("symmetric_difference_update", "update"),
}


def stateless(unit: UnitPlan) -> bool:
    """Return whether each tuple may go to another object of this bolt without a difference.

    That is so for a bolt that comes by shuffle, has no `tick` and no `finish` of its own, no state when it is fresh, and
    no line in its methods that sets an attribute, or changes what stands in one that `open` has made, such as a cache. What hides from
    that look is found while it runs (`runner`).
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
    bases = (Bolt, BatchBolt, object)
    opened = {name for code in _codes(cls, ("open",)) for name in _set_by(code)}
    return not any(_keeps(code, opened) for _, code in codes_of_methods(cls, _MAKING, bases))


def _codes(cls: type, names: tuple[str, ...]) -> Iterator[CodeType]:
    for base in cls.__mro__:
        for name in names:
            if base not in (Bolt, BatchBolt) and name in vars(base):
                yield from code_of(vars(base)[name])


def _set_by(code: CodeType) -> set[str]:
    return {str(step.argval) for step in dis.get_instructions(code) if step.opname == "STORE_ATTR"}


def _keeps(code: CodeType, opened: set[str]) -> bool:
    names = set(code.co_names)
    if {"keyed", "setattr", "__dict__", "vars"} & names:
        return True
    steps = {step.opname for step in dis.get_instructions(code)}
    if steps & _WRITES:
        return True
    return bool(opened & names and (steps & _CHANGES or names & _CHANGING))
