"""The attributes of an object, read and set without making a dict of its own for it.

CPython 3.11 and 3.12 keep the attributes of an object in a row beside it. A look at `vars(object)` moves them into a
dict, for good: each later access takes half as long again (110 ns -> 170 to 200 ns for `self.total += value` of one of 10 000
objects), and the object twice the memory. State is read at each checkpoint, of each key. Before, each object had a dict from
the start; since, the two share one row (100 ns -> 114).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from gc import get_referents
from operator import attrgetter
from types import CodeType, MemberDescriptorType
from typing import Any

__all__ = ["IN_A_ROW", "get_attributes", "has_window", "last_seen", "set_attributes"]

#: names, what gets them, slots, count, whether the class has windows: see `_last`
_Last = tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]], int, int, bool]
#: whether objects lose something by having a dict
IN_A_ROW = (3, 11) <= sys.version_info[:2] < (3, 13) and sys.implementation.name == "cpython"
#: by class: what attributes its objects may have; None: theirs can only be seen in their dict
_names: dict[type, tuple[str, ...] | None] = {}
#: by class: the attributes that the last looked at had, what gets its slots and them, how many of its slots were filled, and how much
#: it referred to
_last: dict[type, _Last] = {}
#: classes that are known: each unit of each LocalRuntime has its own, which holds on to what the unit emits
_MOST_KNOWN = 256


def get_attributes(thing: Any) -> dict[str, Any]:
    """As `dict(vars(thing))`, though perhaps in another order."""
    if not IN_A_ROW:
        return dict(vars(thing))
    cls = type(thing)
    last = _last.get(cls)
    if last is not None:
        names, get, slots, count, windows = last
        seen = get_referents(thing)
        if len(seen) == count:
            try:
                values = get(thing)
            except AttributeError:  # it has others
                pass
            else:
                # Key, dict and class are three as well; with a window, four.
                alone = count == slots + 2
                if values[slots] is seen[slots] if alone else count > 4 or not (windows and hasattr(thing, "window")):
                    return dict(zip(names, values[slots:]))
    return _look_for(thing, cls)


def last_seen(cls: type) -> _Last | None:
    """Return the attributes that the object of this class had that was looked at last, what gets its slots and them, how many of its
    slots were filled, how much it referred to, and `has_windows`; None where only its dict tells."""
    return _last.get(cls)


def has_windows(cls: type) -> bool:
    """Return whether objects of this class have a slot for a window; outside windows `window` is an attribute as any other."""
    return isinstance(getattr(cls, "window", None), (MemberDescriptorType, property))


def has_window(thing: Any) -> bool:
    """Return whether a window stands in the object's slot."""
    return has_windows(type(thing)) and hasattr(thing, "window")


def _look_for(thing: Any, cls: type) -> dict[str, Any]:
    try:
        names = _names[cls]
    except KeyError:
        if len(_names) >= _MOST_KNOWN:
            _names.clear()
            _last.clear()
        names = _names[cls] = _possible(cls)
    if names is not None:
        state = {name: getattr(thing, name) for name in names if hasattr(thing, name)}
        # The collector sees all that an object refers to: what stands in its slots, its attributes or their dict, its class.
        seen = get_referents(thing)
        whole = len(seen) == len(state) + 1 + hasattr(thing, "key") + has_window(thing)
        # A dict counts as one attribute does: it stands where that would.
        if whole and (len(state) != 1 or all(value is seen[-2] for value in state.values())):
            if state and hasattr(thing, "key"):
                slots = ("key", "window") if has_window(thing) else ("key",)
                _last[cls] = tuple(state), attrgetter(*slots, *state), len(slots), len(seen), has_windows(cls)
            return state
    return dict(vars(thing))


def set_attributes(thing: Any, state: dict[str, Any]) -> None:
    """As `vars(thing).update(state)`."""
    if not IN_A_ROW or _stands_in_dict(type(thing), tuple(state)):  # type: ignore[arg-type]  # a class can be hashed
        vars(thing).update(state)
        return
    put = object.__setattr__
    for name, value in state.items():
        put(thing, name, value)


@functools.lru_cache(maxsize=_MOST_KNOWN)
def _stands_in_dict(cls: type, names: tuple[str, ...]) -> bool:
    """Return whether one of these attributes is set by a descriptor of the class, and is in the dict nonetheless."""
    return any(hasattr(getattr(cls, name, None), "__set__") for name in names)


def _possible(cls: type) -> tuple[str, ...] | None:
    """All names that the methods of the class mention and that mean nothing to the class itself: none other is its own
    object's, or the count of what an object refers to gives that away."""
    found: dict[str, None] = {}
    for base in cls.__mro__[:-1]:
        slots = vars(base).get("__slots__", ())
        if set((slots,) if isinstance(slots, str) else slots) - {"key", "window"}:
            return None
        if "__getattr__" in vars(base) or "__getattribute__" in vars(base):
            return None
        for value in vars(base).values():
            code = getattr(value, "__code__", None)
            if isinstance(code, CodeType):
                _mentioned(code, found)
    return tuple(name for name in found if not hasattr(cls, name))


def _mentioned(code: CodeType, found: dict[str, None]) -> None:
    found.update(dict.fromkeys(code.co_names))
    for each in code.co_consts:
        if isinstance(each, CodeType):
            _mentioned(each, found)
