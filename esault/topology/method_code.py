"""The code of what a user's class defines, for looks at what it does to attributes."""

from __future__ import annotations

import dis
from collections.abc import Collection, Iterator
from itertools import pairwise
from types import CodeType
from typing import Any

__all__ = [
    "changed_by_methods",
    "changed_names",
    "code_of",
    "codes_of_methods",
    "kept_parameters",
    "of_itself",
    "passes_itself",
]

#: methods of containers that change them
_CHANGING = frozenset(
    [
        "add",
        "append",
        "appendleft",
        "clear",
        "discard",
        "extend",
        "extendleft",
        "insert",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "setdefault",
        "sort",
        "update",
    ]
)
_STORES = frozenset(("STORE_ATTR", "DELETE_ATTR"))
_LOADS = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_ITEMS = frozenset(("STORE_SUBSCR", "DELETE_SUBSCR"))
_READS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")


def codes_of_methods(
    cls: type[Any], but: Collection[str], bases: Collection[type[Any]]
) -> Iterator[tuple[str, CodeType]]:
    """Yield (name, code) of each member of a class and of those it derives from, without the names `but` and the classes `bases`."""
    for base in cls.__mro__:
        if base in bases or base.__module__ in ("typing", "builtins"):
            continue
        for name, member in vars(base).items():
            if name not in but:
                yield from ((f"{base.__name__}.{name}", code) for code in code_of(member))


def code_of(member: Any) -> Iterator[CodeType]:
    """Yield the code of a function, method or property, of what it wraps, and of functions within."""
    if isinstance(member, property):
        for each in (member.fget, member.fset, member.fdel):
            yield from code_of(each)
        return
    member = getattr(member, "__func__", member)
    while member is not None:
        if isinstance(code := getattr(member, "__code__", None), CodeType):
            yield from _nested(code)
        member = getattr(member, "__wrapped__", None)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def of_itself(code: CodeType) -> Iterator[tuple[str, str]]:
    """Yield (instruction, attribute) of what a method does with attributes of its first argument: `LOAD_ATTR`, `STORE_ATTR` and the like."""
    itself = code.co_varnames[0] if code.co_argcount else "self"
    for load, after in pairwise(dis.get_instructions(code)):
        if not load.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "STORE_FAST_LOAD_FAST")):
            continue
        last = load.argval[-1] if isinstance(load.argval, tuple) else load.argval
        if last == itself and (after.opname in _LOADS or after.opname in _STORES):
            yield after.opname, after.argval


def changed_by_methods(
    cls: type[Any],
    names: Collection[str],
    but: Collection[str],
    bases: Collection[type[Any]],
    *,
    in_place: bool = False,
) -> dict[str, str]:
    """Return those of the attributes `names` that a method of the class sets or changes in place, each with the first that does.

    `in_place`: what is set anew does not count. Methods named in `but`, and those of the classes `bases`, are not looked at.
    """
    found: dict[str, str] = {}
    for method, code in codes_of_methods(cls, but, bases) if names else ():
        steps = list(dis.get_instructions(code))
        containers = _places_of(steps, _ITEMS)
        for step, after in zip(steps, [*steps[1:], None]):
            if step.argval not in names:
                continue
            changes = after is not None and after.opname in _LOADS and after.argval in _CHANGING
            if (step.opname in _STORES and not in_place) or (
                step.opname in _LOADS and (changes or id(step) in containers)
            ):
                found.setdefault(step.argval, method)
    return found


def kept_parameters(code: CodeType) -> Iterator[tuple[str, str]]:
    """Yield (attribute, parameter) of what a method keeps as it was given: `self.attribute = parameter`."""
    itself = code.co_varnames[0] if code.co_argcount else "self"
    loaded: list[str] = []
    stored: set[str] = set()
    for step in dis.get_instructions(code):
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if step.opname.startswith("LOAD_FAST"):
            loaded.extend(names)
            continue
        if step.opname.startswith("STORE_FAST"):
            stored.update(names)
        elif step.opname == "STORE_ATTR" and len(loaded) > 1 and loaded[-1] == itself and loaded[-2] not in stored:
            yield step.argval, loaded[-2]
        loaded.clear()


def changed_names(code: CodeType) -> Iterator[tuple[str, str]]:
    """Yield (name, how) of globals and of variables of enclosing functions that this code changes.

    `how` is "set" for the name itself, "content" for what it stands for: by a method of containers or an item; "attribute" for one of those.
    """
    steps = list(dis.get_instructions(code))
    items, attributes = _places_of(steps, _ITEMS), _places_of(steps, _STORES)
    outer = set(code.co_freevars)
    for step, after in zip(steps, [*steps[1:], None]):
        name = step.argval
        if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (step.opname == "STORE_DEREF" and name in outer):
            yield name, "set"
        elif step.opname == "LOAD_GLOBAL" or (step.opname == "LOAD_DEREF" and name in outer):
            if id(step) in items or (after is not None and after.opname in _LOADS and after.argval in _CHANGING):
                yield name, "content"
            elif id(step) in attributes:
                yield name, "attribute"


def _places_of(steps: list[dis.Instruction], kinds: Collection[str]) -> set[int]:
    """Return the steps, by identity, that load what an item or attribute is set of: their text begins where that of the change does.

    `kinds` are the instructions that set it. Python 3.10 says no columns: there it is all that stands in a line with one of them.
    """
    places: list[Any] = []
    line: Any = None
    for step in steps:
        line = step.starts_line or line
        positions = getattr(step, "positions", None)
        places.append(line if positions is None else (positions.lineno, positions.col_offset))
    changed = {place for step, place in zip(steps, places) if step.opname in kinds}
    return {id(step) for step, place in zip(steps, places) if place in changed}


def passes_itself(code: CodeType) -> bool:
    """Return whether the object goes anywhere but before the dot of an attribute."""
    itself = {"self", *code.co_varnames[: min(1, code.co_argcount)]} - {".0"}  # which is what a comprehension goes over
    for load, after in pairwise(dis.get_instructions(code)):
        if load.opname.startswith("LOAD_FAST") or load.opname in ("LOAD_DEREF", "STORE_FAST_LOAD_FAST"):
            *first, last = (load.argval,) if isinstance(load.argval, str) else load.argval
            if itself.intersection(first) or (last in itself and after.opname not in _READS):
                return True
    return False
