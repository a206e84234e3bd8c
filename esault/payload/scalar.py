"""Values that stand for a plainer one wherever they land: members of an Enum for their value, a UUID and a Path for their
text, NumPy's scalars for Python's."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any

__all__ = ["plainer"]

_known: dict[type, Callable[[Any], Any] | None] = {}


def plainer(kind: type) -> Callable[[Any], Any] | None:
    """Return the function that makes the plain value of one of this type; None where it is as plain as can be. A type is looked at once."""
    try:
        return _known[kind]
    except KeyError:
        found = _known[kind] = _look_at(kind)
        return found


def _look_at(kind: type) -> Callable[[Any], Any] | None:
    if issubclass(kind, enum.Enum):
        return attrgetter("value")
    if _is(kind, "uuid", "UUID") or _is(kind, "pathlib", "PurePath"):
        return str
    return _of_numpy if _is(kind, "numpy", "generic") else None


def _is(kind: type, module: str, name: str) -> bool:
    """Return whether it derives from that class, which is not imported for it: there is no value where it is not loaded."""
    there = getattr(sys.modules.get(module), name, None)
    return there is not None and issubclass(kind, there)


def _of_numpy(value: Any) -> Any:
    item = value.item()
    # Of a moment too fine for a datetime NumPy makes a number, of a longdouble another one.
    return value if (value.dtype.kind in "mM" and isinstance(item, int)) or type(item) is type(value) else item
