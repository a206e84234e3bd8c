"""A mark of a function's code, and of what it uses of its own module: it changes when what the function does changes."""

from __future__ import annotations

import datetime
import decimal
import re
import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["code_mark"]

#: have a `repr` that says all of them, and is the same in each process
_PLAIN: tuple[type, ...] = (str, int, float, complex, bool, bytes, type(None), range, decimal.Decimal, re.Pattern)
_PLAIN += (datetime.date, datetime.time, datetime.timedelta)


def code_mark(function: Callable[..., Any], *said: str) -> str:
    """Return eight digits. Functions, classes and values of the same module count, those of libraries do not.

    Of a function that another one wraps, such as one of Spark's `udf`, both count. Values are plain ones, and collections of them: what
    has another `repr` in each process counts by its type alone.
    """
    return f"{zlib.crc32(repr([*_parts(function, set()), *said]).encode()):08x}"


def _parts(function: Callable[..., Any], seen: set[int]) -> Iterator[str]:
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield from _parts(wrapped, seen)
    code = getattr(function, "__code__", None)
    if code is None or id(code) in seen:
        return
    seen.add(id(code))
    scope = getattr(function, "__globals__", {})
    home = scope.get("__name__")
    yield _said(getattr(function, "__defaults__", None))
    by_name = getattr(function, "__kwdefaults__", None)
    if by_name:
        yield _said(by_name)
    names: list[str] = []
    yield from _of_code(code, names)
    used = [(name, scope[name]) for name in dict.fromkeys(names) if name in scope]
    used += zip(code.co_freevars, [_content(cell) for cell in getattr(function, "__closure__", None) or ()])
    for name, value in used:
        yield from _used(name, value, home, seen)


def _used(name: str, value: Any, home: Any, seen: set[int]) -> Iterator[str]:
    """Yield what counts of a value that code of the module `home` uses by this name."""
    if isinstance(value, types.FunctionType):
        if value.__module__ == home:
            yield name
            yield from _parts(value, seen)
    elif isinstance(value, type):
        if value.__module__ == home and id(value) not in seen:
            seen.add(id(value))
            for member, content in vars(value).items():
                inner = getattr(
                    content, "__func__", getattr(content, "fget", content)
                )  # of a static method, a property
                if not member.startswith("__") or isinstance(inner, types.FunctionType):
                    yield from _used(f"{name}.{member}", inner, home, seen)
    elif isinstance(value, (*_PLAIN, tuple, frozenset, list, dict, set)):
        yield f"{name}={_said(value)}"
        for one in _functions(value):
            yield from _used(name, one, home, seen)


def _functions(value: Any) -> Iterator[Any]:
    """Functions and classes that a collection holds."""
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _functions(one)
    elif isinstance(value, (types.FunctionType, type)):
        yield value


def _said(value: Any) -> str:
    """A value as text that is the same in each process."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        ends = "[]" if type(value) is list else "()"
        one = "," if ends == "()" and len(value) == 1 else ""
        return f"{ends[0]}{', '.join(map(_said, value))}{one}{ends[1]}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_said(key)}: {_said(one)}' for key, one in value.items())}}}"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(_said, value)))}}}"
    return repr(value) if isinstance(value, _PLAIN) else f"{type(value).__module__}.{type(value).__qualname__}"


def _of_code(code: types.CodeType, names: list[str]) -> Iterator[str]:
    yield code.co_code.hex()
    names += code.co_names
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _of_code(constant, names)
        else:
            yield repr(sorted(constant, key=repr) if isinstance(constant, frozenset) else constant)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
