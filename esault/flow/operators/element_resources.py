"""Resources among the attributes of an element: they are left out of its state, since `__init__` or `open` makes them again.

So is what `open_shared` returned, where `open` keeps it in an attribute. They are looked for where a state could not be packed: classes without resources pay nothing.
"""

from __future__ import annotations

import dis
from collections import defaultdict
from typing import Any

from esault.payload.attributes import get_attributes
from esault.payload.portable import explain
from esault.payload.resource import is_resource
from esault.topology.bolt import Bolt
from esault.topology.method_code import code_of, of_itself

__all__ = ["RESOURCES", "find_resources", "set_by_open", "without_resources"]

_LOADS = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
#: by class: attributes that were resources, and are left out while they are. Empty where no class has any: look there first
RESOURCES: dict[type, set[str]] = {}
_MOST_KNOWN = 256


def without_resources(element: Any, state: Any) -> Any:
    """Return the state of an object without the resources that are known of its class."""
    known = RESOURCES.get(type(element))
    if not known:
        return state
    return {name: value for name, value in state.items() if name not in known or not _is_no_state(element, value)}


def find_resources(element: Any, state: Any) -> bool:
    """Look for resources in a state that cannot be packed; return whether there were any that were not known."""
    cls = type(element)
    if type(state) is not dict:
        return False  # the user says what it is
    if getattr(cls, "__getstate__", None) is not Bolt.__getstate__:
        if not any("__getstate__" in code.co_names for code in code_of(cls.__getstate__)):
            return False  # the user says what it is, without `super().__getstate__()`
        own = get_attributes(element)
        state = {name: value for name, value in state.items() if own.get(name) is value}
    # What can be packed is data, though it can be closed, as a buffer.
    found = {
        name for name, value in state.items() if _is_no_state(element, value) and explain(value, element) is not None
    }
    if not found or not (found := found & _made_again(cls)):
        return False
    if len(RESOURCES) >= _MOST_KNOWN:
        RESOURCES.clear()
    RESOURCES.setdefault(cls, set()).update(found)
    return True


def _is_no_state(element: Any, value: Any) -> bool:
    """Return whether a value is no state: a resource, or what all objects of the process share."""
    return is_resource(value) or (value is not None and value is getattr(element.context, "shared", None))


def set_by_open(cls: type[Any]) -> set[str]:
    """Return the names of attributes that `open` sets by itself."""
    return {name for code in code_of(cls.open) for what, name in of_itself(code) if what == "STORE_ATTR"}


def _made_again(cls: type[Any]) -> set[str]:
    """Return the names of attributes that the class has, or that `__init__`, `open` or a method that they mention sets."""
    members: dict[str, list[Any]] = defaultdict(list)
    for base in cls.__mro__:
        if base not in (Bolt, object):
            for name, member in vars(base).items():
                members[name].append(member)
    found = {name for name, each in members.items() if not any(hasattr(type(m), "__get__") for m in each)}
    todo, seen = ["__init__", "open"], {"__init__", "open"}
    while todo:
        for member in members.get(todo.pop(), ()):
            for step in (step for code in code_of(member) for step in dis.get_instructions(code)):
                if step.opname == "STORE_ATTR":
                    found.add(step.argval)
                elif step.opname in _LOADS and step.argval in members and step.argval not in seen:
                    seen.add(step.argval)
                    todo.append(step.argval)
    return found
