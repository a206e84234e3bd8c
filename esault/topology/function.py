"""The functions that users hand in: what can be told of them before they are called."""

from __future__ import annotations

import functools
import inspect
import typing
from typing import Any

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt

__all__ = ["accepts", "call_of", "check_function", "is_async", "is_generator", "name_of"]


def name_of(thing: Any) -> str:
    """Return the name that the user calls it by: a class's or a function's name."""
    if isinstance(thing, functools.partial):
        return f"partial({name_of(thing.func)}, ...)"
    name = getattr(thing, "__name__", None)
    if name == "<lambda>":
        return "the lambda"
    return name if isinstance(name, str) else type(thing).__name__


def call_of(make: Any) -> str:
    """Return the shortest call of a class or a function: `SlidingWindow(size, every)`, without what has a default."""
    needed = (each.name for each in inspect.signature(make).parameters.values() if each.default is each.empty)
    return f"{make.__name__}({', '.join(needed)})"


def is_async(function: Any) -> bool:
    """Return whether calling it gives a coroutine or an asynchronous generator."""
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in _bodies(function))


def is_generator(function: Any) -> bool:
    """Return whether it yields."""
    return any(inspect.isgeneratorfunction(f) for f in _bodies(function))


def _bodies(function: Any) -> tuple[Any, ...]:
    if isinstance(function, functools.partial):
        return _bodies(function.func)
    if isinstance(function, type):
        return ()  # a class is called for its objects: what their own __call__ does is another matter
    return (function, type(function).__call__)


def accepts(function: Any, arguments: int) -> bool:
    """Return whether it can be called with so many positional arguments; True where it cannot be told."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        return False
    return True


def check_function(where: str, function: object, *, takes: tuple[str, ...], generator: bool = False) -> None:
    """Raise TopologyError unless `function` can be called with one positional argument for each name in `takes`.

    With `generator` it may yield. `where` names the step or the unit, for the message.
    """
    cls = typing.get_origin(function) or function  # of list[int], which Python 3.10 takes for a type
    if isinstance(function, (Bolt, BatchBolt)) or (isinstance(cls, type) and issubclass(cls, (Bolt, BatchBolt))):
        raise TopologyError(
            f"{where}: {name_of(function)} is a bolt; write .bolt(name, {name_of(function)}, grouping=...)"
        )
    if not callable(function):
        remedy = "pass a function"
        if isinstance(function, str) and takes[:1] == ("the value",):
            remedy += f", such as lambda value: value[{function!r}] for a field of that name"
        raise TopologyError(f"{where}: {function!r} ({type(function).__name__}) is not callable; {remedy}")
    if is_async(function):
        raise TopologyError(
            f"{where}: {name_of(function)} is async, which a function step cannot be; write a plain def"
        )
    if is_generator(function) and not generator:
        raise TopologyError(f"{where}: {name_of(function)} yields; return one value, or use flat_map for several")
    if not accepts(function, len(takes)):
        raise TopologyError(
            f"{where}: {name_of(function)} must take {len(takes)} argument{'s' * (len(takes) > 1)}: {', '.join(takes)}"
        )
