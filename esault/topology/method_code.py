"""The code of what a user's class defines, for looks at what it does to attributes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import CodeType
from typing import Any

__all__ = ["code_of", "codes_of_methods"]


def codes_of_methods(
    cls: type[Any], but: Collection[str], bases: Collection[type[Any]]
) -> Iterator[tuple[str, CodeType]]:
    """Yield (name, code) of each member of a class and of those it derives from, without the names `but` and the classes `bases`."""
    for base in cls.__mro__:
        if base in bases or base.__module__ in ("typing", "builtins"):
            continue
        for name, member in vars(base).items():
            if name not in but:
                yield from ((f"{base.__name__}.{name}", code) for code in code_of(member))


def code_of(member: Any) -> Iterator[CodeType]:
    """Yield the code of a function, method or property, of what it wraps, and of functions within."""
    if isinstance(member, property):
        for each in (member.fget, member.fset, member.fdel):
            yield from code_of(each)
        return
    member = getattr(member, "__func__", member)
    while member is not None:
        if isinstance(code := getattr(member, "__code__", None), CodeType):
            yield from _nested(code)
        member = getattr(member, "__wrapped__", None)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
