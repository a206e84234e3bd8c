"""Public names of a package that are loaded when they are asked for, since few programs need what they bring along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["late_names", "no_name"]

#: where public names are, in the order in which they are looked for
PUBLIC = (
    "esault",
    *(
        f"esault.{name}"
        for name in (
            "sources",
            "sinks",
            "windows",
            "aggregates",
            "lookups",
            "bolts",
            "patterns",
            "policies",
            "formats",
            "testing",
        )
    ),
)


def no_name(module: str, name: str) -> Exception:
    """Return the error for a name that a module does not have: it says where the name is, if another public module has it.

    An AttributeError would do, but `from module import name` makes an ImportError of it that says nothing more.
    """
    if not name.startswith("_") and not _is_module(f"{module}.{name}"):
        for place in PUBLIC:
            if place != module and name in import_module(place).__all__:
                return ImportError(
                    f"{module} has no {name!r}: it is in {place}, so write: from {place} import {name}",
                    name=name,
                )
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def _is_module(name: str) -> bool:
    """Return whether it is a module inside a package: Python asks the package for an attribute before it imports that."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # no package has it
        return False


def late_names(
    namespace: dict[str, Any], places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of the module with this namespace; `places`: name -> the module that has it.

    Type checkers take the names from imports under `TYPE_CHECKING`.
    """

    def get(name: str) -> Any:
        if name not in places:
            raise no_name(namespace["__name__"], name)
        namespace[name] = found = getattr(import_module(places[name]), name)
        return found

    return get, lambda: sorted({*namespace, *places})
