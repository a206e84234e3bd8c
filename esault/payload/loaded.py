"""Libraries that are there: of a library that no one has loaded there are no values, and to load it takes time."""

from __future__ import annotations

import sys
from types import ModuleType

__all__ = ["being_loaded", "loaded"]


def being_loaded(module: ModuleType) -> bool:
    """Return whether a thread is at loading this module, which has some of its names by now."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def loaded(name: str) -> ModuleType | None:
    """Return a module that has been loaded; None where it has not, or another thread is at it, and no value is one of its."""
    module = sys.modules.get(name)
    return None if module is None or being_loaded(module) else module
