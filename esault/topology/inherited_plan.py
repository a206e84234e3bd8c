"""The plan of a run that a process inherits when it is forked from the one that built it.

A topology function may take its time: it lists files, or asks a database for columns. So it is called once, by the command,
and not again in the driver and in each sub-unit. Each process takes the plan once: what a process has used is not as it was
built. Where a plan holds what forked processes must not share, a connection or a lock, each process calls the function.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

from esault.topology.located import Located
from esault.topology.plan import Plan

__all__ = ["leave_plan", "take_plan"]

_left: tuple[Located, dict[str, Any], Plan] | None = None


def leave_plan(located: Located, params: Mapping[str, Any], plan: Plan) -> None:
    """Leave a plan to the processes that will be forked from this one, if they may share what is in it."""
    global _left
    _left = (located, dict(params), plan) if can_be_inherited(plan) else None


def take_plan(located: Located, params: Mapping[str, Any]) -> Plan:
    """Return the plan that was left to this process; a new one where there is none, or it was taken before.

    Raises LocateError, TopologyError.
    """
    global _left
    left, _left = _left, None
    if left is not None and left[:2] == (located, dict(params)):
        return left[2]
    return located.build(dict(params)).plan()


def can_be_inherited(plan: Plan) -> bool:
    """Return whether all objects of a plan are such that each of several processes can have a copy.

    Whatever cannot be pickled is taken for something that cannot: files, sockets, connections, locks, threads, generators.
    """
    try:
        _Inspector().dump((plan.name, dict(plan.units)))
    except Exception:
        return False
    return True


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, data: bytes) -> int:
        return len(data)


#: what stands in a class besides what the user wrote
_ATTRIBUTES = (GetSetDescriptorType, MemberDescriptorType)


def _held(thing: Any) -> list[Any]:
    """Return what a function or a local class holds; a class of a module is shared as the module is."""
    if isinstance(thing, FunctionType):
        return [*(cell.cell_contents for cell in thing.__closure__ or ()), thing.__defaults__, thing.__kwdefaults__]
    if not isinstance(thing, type) or "<locals>" not in thing.__qualname__:
        return []
    held: list[Any] = list(thing.__bases__)
    for name, member in vars(thing).items():
        if isinstance(member, (staticmethod, classmethod)):
            held.append(member.__func__)
        elif isinstance(member, property):
            held += [member.fget, member.fset, member.fdel]
        elif isinstance(member, FunctionType) or not (
            name.startswith(("__", "_abc_")) or isinstance(member, _ATTRIBUTES)
        ):
            held.append(member)
    return held


class _Inspector(pickle.Pickler):
    """Visits all that objects hold, also what functions and local classes do."""

    def __init__(self) -> None:
        super().__init__(_Nowhere(), protocol=5, buffer_callback=lambda buffer: None)  # no copies of large arrays
        self._visited: set[int] = set()

    def reducer_override(self, thing: Any) -> Any:
        """Called by pickle for what is not plain."""
        if thing is tuple or not isinstance(thing, (FunctionType, type, ModuleType)):
            return NotImplemented
        again = id(thing) in self._visited  # a local class holds its methods, and they may hold the class
        self._visited.add(id(thing))
        return tuple, ([] if again else _held(thing),)
