"""The check whether windows may share what a bolt holds of a slice of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from esault.topology.aggregates.aggregate import Count, Extreme, Mean, Sum
from esault.topology.aggregates.aggregated import Aggregated
from esault.topology.bolt import Bolt
from esault.topology.factory import class_behind
from esault.topology.function import accepts
from esault.topology.method_code import codes_of_methods
from esault.topology.window import SlidingWindow, TimeWindow

__all__ = ["may_share_slices"]

#: windows that a slice is a part of, at most: each combines as many slices, though a key may have one row in each
MOST = 32
#: what a slice's object has not, or what is one window's alone
_OF_A_WINDOW = frozenset(("emit", "window", "pane"))
_HOOKS = ("open", "close", "tick", "process_stream", "__getattr__", "__getattribute__", "__setattr__", "__slots__")
_BASES = (Bolt, Generic, object)


def may_share_slices(kind: TimeWindow, factory: Callable[[], Any] | None) -> bool:
    """Return whether windows of this kind may be put together of slices, with no other result."""
    if type(kind) is not SlidingWindow:
        return False
    size, every = kind.size, kind.every
    if type(size) is not int or type(every) is not int or kind.offset or size % every or not 1 < size // every <= MOST:
        return False  # else bounds are rounded, or a slice is no whole part of them
    cls = class_behind(factory)
    if cls is None or not issubclass(cls, Bolt):
        return False
    return _aggregates_share(factory) if cls is Aggregated else _combines(cls)


def _aggregates_share(factory: Any) -> bool:
    bolt: Aggregated = factory()
    # Values come in another order. Of combined ones it is another one already, of which results say so.
    known = (Count, Sum, Mean, Extreme) if bolt.combined else (Count,)
    return bolt.windowed and not bolt.paned and all(type(of) in known for of in bolt.aggregates.values())


def _combines(cls: type[Any]) -> bool:
    """Return whether objects of a class can be put together, and do nothing before `finish` that takes their window."""
    combine = getattr(cls, "combine", None)
    if not callable(combine) or not accepts(combine, 2):
        return False
    if cls.__getstate__ is not Bolt.__getstate__ or cls.__setstate__ is not Bolt.__setstate__:
        return False
    if any(hook in vars(base) for base in cls.__mro__ if base not in _BASES for hook in _HOOKS):
        return False
    codes = codes_of_methods(cls, ("finish",), _BASES)
    return not any(_OF_A_WINDOW.intersection(code.co_names) for _, code in codes)
