"""Globals that a bolt or a function step changes: each process has its own, so what they hold neither moves nor is kept."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from types import FunctionType, ModuleType

from esault.topology.factory import class_behind
from esault.topology.method_code import changed_names, code_of
from esault.topology.plan import Plan, UnitPlan

__all__ = ["global_state"]

_CONTAINERS = (list, dict, set, bytearray, deque)
#: hooks that prepare a process, and those behind which nothing is left to be lost
_BUT = frozenset(("open", "open_shared", "close"))


def global_state(plan: Plan) -> list[str]:
    """Return a sentence for each global, or variable of an enclosing function, that the code of a unit changes for each tuple."""
    found: dict[str, None] = {}
    for unit in plan.units.values():
        for where, function in _functions(unit):
            for name in _changed(function):
                found[
                    f"unit {unit.name!r}: {where} changes {name}, which stands outside the bolt: each process has its own, and it neither moves "
                    "nor is in a checkpoint. Good for a cache, and wrong where results depend on it; what belongs to a key is kept on self, by "
                    "a Bolt behind by_key()"
                ] = None
    return list(found)


def _functions(unit: UnitPlan) -> Iterator[tuple[str, FunctionType]]:
    """Yield the user's functions that run for each tuple, with what to call them."""
    cls = class_behind(unit.factory)
    for base in () if cls is None else cls.__mro__:
        if base.__module__.startswith("esault.") or base.__module__ in ("builtins", "typing"):
            continue
        for name, member in vars(base).items():
            function = getattr(member, "__func__", member)
            if name not in _BUT and isinstance(function, FunctionType) and not _of_python(function):
                yield f"{base.__name__}.{name}", function
    for outlet in unit.streams.values():
        for each in outlet.walk():
            for step in each.steps:
                if isinstance(step.function, FunctionType) and not step.function.__module__.startswith("esault."):
                    yield step.name, step.function


def _of_python(function: FunctionType) -> bool:
    """Return whether Python's own library wrote the function, such as what a dataclass has around its `__repr__`."""
    return str(function.__globals__.get("__name__")).partition(".")[0] in sys.stdlib_module_names


def _changed(function: FunctionType) -> Iterator[str]:
    """Yield the names that a function changes, and that stand for state by what they are now."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    for code in code_of(function):
        for name, how in changed_names(code):
            if name in code.co_freevars and name not in cells:
                continue  # a variable of the function around it, made anew with each call
            try:
                value = cells[name].cell_contents if name in cells else function.__globals__[name]
            except (KeyError, ValueError):
                continue  # made later
            # a name that is None yet is made once by each process, like a connection
            if (how == "set" and value is not None) or (how == "content" and isinstance(value, _CONTAINERS)):
                yield f"`{name}`"
            elif how == "attribute" and value is not None and not isinstance(value, ModuleType):
                yield f"an attribute of `{name}`"
