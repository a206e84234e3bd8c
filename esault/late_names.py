"""Public names of a package that are loaded when they are asked for, since few programs need what they bring along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["late_names"]


def late_names(
    namespace: dict[str, Any], places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of the module with this namespace; `places`: name -> the module that has it.

    Type checkers take the names from imports under `TYPE_CHECKING`.
    """

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        namespace[name] = found = getattr(import_module(places[name]), name)
        return found

    return get, lambda: sorted({*namespace, *places})
