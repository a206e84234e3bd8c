"""A unit's own class of the user's objects, and the factory that makes them of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from esault.flow.operators.emitter import Emitter
from esault.topology.bolt import Bolt

__all__ = ["NO_WINDOW", "by_stream", "derive", "maker", "maker_of_many"]


class _Unset:
    """Lets an attribute be the user's own although a base class has a slot of its name: it is not there until it is set."""

    def __get__(self, element: Any, cls: Any = None) -> Any:
        raise AttributeError(f"{(cls or type(element)).__name__} has no attribute 'window'")


#: members of the objects of units that have no windows: `self.window` is state as any other attribute, past the slot
NO_WINDOW = {"window": _Unset()}


def derive(cls: type[Any], members: dict[str, Any]) -> type[Any]:
    """A unit's own class: the user's with `emit` and `context` on it.

    They are set on a class and not on the objects, so that `vars(element)` is the user's alone, and on a class
    of the unit's own, so that two units that share a class do not share them.
    """
    if "clear_state" in members and cls.clear_state is not Bolt.clear_state:  # a method of the user's, who calls that
        members = {name: each for name, each in members.items() if name != "clear_state"}
    named = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__, "__slots__": ()}
    return type(cls.__name__, (cls,), {**named, **members})


def maker(factory: Callable[[], Any], members: dict[str, Any], base: type[Any]) -> tuple[Callable[[], Any], Any]:
    """A factory whose objects are of the unit's own class, and that class where it is known beforehand.

    A class, or a partial of one, is derived before it is called: the object is born in the derived class,
    which is cheaper than changing its class. Objects of any other factory have their class changed.
    """
    if isinstance(factory, type) and issubclass(factory, base):
        cls: Callable[[], Any] = derive(factory, members)
        return cls, cls
    if isinstance(factory, functools.partial) and isinstance(factory.func, type) and issubclass(factory.func, base):
        kind: Callable[..., Any] = derive(factory.func, members)
        return functools.partial(kind, *factory.args, **factory.keywords), kind
    derived: dict[type[Any], type[Any]] = {}
    of: Callable[[], Any] = factory
    own_window = members.get("window") is NO_WINDOW["window"]

    def make() -> Any:
        element = of()
        cls = derived.get(type(element))
        if cls is None:
            cls = derived[type(element)] = derive(type(element), members)
        if own_window and hasattr(element, "window"):
            window = element.window
            del element.window
            element.__class__ = cls
            element.window = window
        else:
            element.__class__ = cls
        return element

    return make, None


def maker_of_many(
    factory: Callable[[], Any], emitter: Emitter, members: dict[str, Any]
) -> tuple[Callable[[], Any], type[Any] | None]:
    """The same for bolts of which there are many, that emit by the emitter's quickest function once it trusts what they emit."""
    members = {"emit": emitter.function(), **members}
    make, cls = maker(factory, members, Bolt)

    def trusted() -> None:
        members["emit"] = emitter.function()
        if cls is not None:
            cls.emit = members["emit"]

    emitter.on_trusted = trusted
    return make, cls


def by_stream(cls: type[Any]) -> bool:
    """Return whether `process_stream` is called in place of `process`."""
    return cls.process_stream is not Bolt.process_stream
