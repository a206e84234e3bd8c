"""A mark of a function's code, and of what it uses of its own module: it changes when what the function does changes."""

from __future__ import annotations

import datetime
import decimal
import functools
import re
import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["code_mark"]

#: have a `repr` that says all of them, and is the same in each process
_PLAIN: tuple[type, ...] = (str, int, float, complex, bool, bytes, type(None), range, decimal.Decimal)
_PLAIN += (datetime.date, datetime.time, datetime.timedelta)
_HOLDERS = (list, tuple, set, frozenset, dict)
#: a function whose results are kept
_CACHED: Any = type(functools.lru_cache(int))
_CALLED: tuple[type, ...] = (types.FunctionType, type, _CACHED, functools.partial)


def code_mark(function: Callable[..., Any], *said: str) -> str:
    """Return eight digits. Functions, classes and values of the same module count, those of libraries do not.

    Of a function that another one wraps, such as one of Spark's `udf`, both count. Values are plain ones, collections, and objects of
    the module's own classes with their attributes. Others count by their type alone: their `repr` may differ from process to process.
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
    yield _said(getattr(function, "__defaults__", None), home)
    by_name = getattr(function, "__kwdefaults__", None)
    if by_name:
        yield _said(by_name, home)
    names: list[str] = []
    yield from _of_code(code, names)
    used = [(name, scope[name]) for name in dict.fromkeys(names) if name in scope]
    used += zip(code.co_freevars, [_content(cell) for cell in getattr(function, "__closure__", None) or ()])
    for name, value in used:
        yield from _used(name, value, home, seen)


def _used(name: str, value: Any, home: Any, seen: set[int]) -> Iterator[str]:
    """Yield what counts of a value that code of the module `home` uses by this name."""
    if isinstance(value, _CACHED):
        value = value.__wrapped__
    if isinstance(value, functools.partial):
        for said, one in [("", value.func), *enumerate(value.args), *value.keywords.items()]:
            yield from _used(f"{name}({said})", one, home, seen)
    elif isinstance(value, types.FunctionType):
        if value.__module__ == home:
            yield name
            yield from _parts(value, seen)
    elif isinstance(value, type):
        if value.__module__ == home and id(value) not in seen:
            seen.add(id(value))
            for base in value.__bases__:
                yield from _used(f"{name}({base.__name__})", base, home, seen)
            for member, content in vars(value).items():
                inner = _inner(content)
                if not member.startswith("__") or isinstance(inner, types.FunctionType):
                    yield from _used(f"{name}.{member}", inner, home, seen)
    elif isinstance(value, (*_PLAIN, *_HOLDERS, re.Pattern)) or _is_own(value, home):
        yield f"{name}={_said(value, home)}"
        for one in _held(value, home, set()):
            yield from _used(name, one, home, seen)


def _inner(content: Any) -> Any:
    """Return the function of a static method, or of a property."""
    if isinstance(content, types.FunctionType):
        return content
    for name in ("__func__", "fget", "func"):
        if isinstance(inner := getattr(content, name, None), types.FunctionType):
            return inner
    return content


def _is_own(value: Any, home: Any) -> bool:
    """Return whether it is an object with attributes, of a class of this module."""
    return type(value).__module__ == home and hasattr(value, "__dict__")


def _held(value: Any, home: Any, within: set[int]) -> Iterator[Any]:
    """Functions and classes that a collection or an object holds, its own class among them."""
    if isinstance(value, _CALLED):
        yield value
    elif id(value) in within:
        return
    elif isinstance(value, _HOLDERS) or _is_own(value, home):
        within.add(id(value))
        inside = value
        if not isinstance(value, _HOLDERS):
            yield type(value)
            inside = vars(value)
        for one in inside.values() if isinstance(inside, dict) else inside:
            yield from _held(one, home, within)


def _said(value: Any, home: Any, within: tuple[int, ...] = ()) -> str:
    """A value as text that is the same in each process; one that holds itself is said once."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, re.Pattern):  # a `repr` of theirs ends after 200 characters
        return f"{value.pattern!r}/{value.flags}"
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if id(value) in within:
        return kind
    say = functools.partial(_said, home=home, within=(*within, id(value)))
    if isinstance(value, dict):
        return f"{{{', '.join(f'{say(key)}: {say(one)}' for key, one in value.items())}}}"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(say, value)))}}}"
    if isinstance(value, (list, tuple)):
        ends = "[]" if isinstance(value, list) else "()"
        return f"{ends[0]}{', '.join(map(say, value))}{ends[1]}"
    return f"{kind}{say(vars(value))}" if _is_own(value, home) else kind


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
