"""The factory of a bolt's objects: a class, a functools.partial, any callable without arguments."""

from __future__ import annotations

import functools
import inspect
import typing
from typing import Any

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.examine import examine_bolt_class, examine_bound
from esault.topology.function import is_async, is_generator, name_of

__all__ = ["class_behind", "examine_factory"]


def examine_factory(factory: Any, unit: str) -> bool:
    """Raise TopologyError unless `factory` makes bolts; True when they are BatchBolts.

    A class, also inside a partial, is examined as it stands. Any other callable is called, which is harmless:
    constructors open nothing.
    """
    if isinstance(factory, (Bolt, BatchBolt)):
        name = type(factory).__name__
        raise TopologyError(
            f"unit {unit!r}: a bolt is passed as a factory, since there is one object per key, not as an object; "
            f"write {name}, or functools.partial({name}, ...) if it takes arguments"
        )
    if not callable(factory):
        raise TopologyError(
            f"unit {unit!r}: {factory!r} ({type(factory).__name__}) makes no bolts; pass a class derived from Bolt, "
            "a functools.partial of one, or a function that returns an object"
        )
    if is_async(factory) or is_generator(factory):
        raise TopologyError(f"unit {unit!r}: {name_of(factory)} must be a plain function that returns a bolt")
    cls = class_behind(factory)
    if cls is None:
        _check_arguments(factory, unit)
        return examine_bolt_class(type(_first_object(factory, unit)), unit)
    batch = examine_bolt_class(cls, unit)
    _check_arguments(factory, unit)
    if isinstance(factory, functools.partial) and not batch:
        examine_bound(cls, factory, unit)
    return batch


def class_behind(factory: Any) -> type | None:
    """The class that the factory is, or is a partial of; None for any other callable."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    origin = typing.get_origin(factory)  # of Count[str], where the user's class is generic
    if isinstance(origin, type):
        factory = origin
    return factory if isinstance(factory, type) else None


def _check_arguments(factory: Any, unit: str) -> None:
    """A factory is called without arguments."""
    inner = factory.func if isinstance(factory, functools.partial) else factory
    if isinstance(typing.get_origin(factory), type):
        inner = factory = typing.get_origin(factory)
    name = name_of(inner)
    try:
        inner_signature = inspect.signature(inner)
    except (TypeError, ValueError):
        return  # built in: it does not tell what it takes
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError) as error:
        raise TopologyError(f"unit {unit!r}: {name} takes {inner_signature}, which the partial does not fit") from error
    missing = [
        p.name
        for p in signature.parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if missing:
        listed = ", ".join(missing)
        raise TopologyError(
            f"unit {unit!r}: {name} takes arguments ({listed}), and a factory is called without any: "
            f"use functools.partial({name}, {', '.join(f'{m}=...' for m in missing)})"
        )


def _first_object(factory: Any, unit: str) -> object:
    name = name_of(factory)
    try:
        first, second = factory(), factory()
    except TopologyError:
        raise
    except Exception as error:
        raise TopologyError(
            f"unit {unit!r}: {name}, which makes its objects, raised {type(error).__name__}: {error}"
        ) from error
    if isinstance(first, type):
        raise TopologyError(
            f"unit {unit!r}: {name} returns the class {first.__name__}, not an object; pass {first.__name__} itself"
        )
    if not isinstance(first, (Bolt, BatchBolt)):
        raise TopologyError(
            f"unit {unit!r}: {name} returned {first!r} ({type(first).__name__}), not an object of a class derived "
            "from Bolt or BatchBolt"
        )
    if first is second:
        raise TopologyError(
            f"unit {unit!r}: {name} returns the same object each time; there is one object per key: make it inside"
        )
    return first
