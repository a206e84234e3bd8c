"""Names that are not known: what is said of them, and the keywords of a call that are none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from esault.errors import TopologyError

__all__ = ["named_keywords", "no_such"]

P = ParamSpec("P")
R = TypeVar("R")


def no_such(said: str, name: str, known: Iterable[str]) -> str:
    """Return the message on a name that is not known, behind `said`; with the one that was meant if one is alike."""
    import difflib  # for this error alone

    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    listed = f"here are: {', '.join(names)}"
    return f"{said} {name!r}; " + (f"did you mean {close[0]!r}? T{listed}" if close else f"t{listed}")


def named_keywords(method: Callable[P, R]) -> Callable[P, R]:
    """Have a method that makes a unit raise TopologyError, with the remedy, for a keyword that it does not know."""
    code = method.__code__
    takes = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]  # without self

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for keyword in kwargs:
            if keyword not in takes:
                named = kwargs.get("name", args[1] if len(args) > 1 else None)
                where = f"unit {named!r}: " if isinstance(named, str) else ""
                if keyword == "inputs" and method.__qualname__.startswith("Stream."):
                    raise TopologyError(
                        f"{where}{method.__name__}(...) of a stream has that stream as its input; several go to "
                        f"topology.{method.__name__}(name, ..., inputs={{stream: grouping, ...}})"
                    )
                raise TopologyError(f"{where}{no_such(f'{method.__name__}(...) takes no argument', keyword, takes)}")
        return method(*args, **kwargs)

    return checked
