"""A mark of a function's code, and of what it uses of its own module: it changes when what the function does changes."""

from __future__ import annotations

import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["code_mark"]


def code_mark(function: Callable[..., Any], *said: str) -> str:
    """Return eight digits. Functions and plain values of the same module count, those of libraries do not."""
    return f"{zlib.crc32(repr([*_parts(function, set()), *said]).encode()):08x}"


def _parts(function: Callable[..., Any], seen: set[int]) -> Iterator[str]:
    code = getattr(function, "__code__", None)
    if code is None or id(code) in seen:
        return
    seen.add(id(code))
    yield repr(getattr(function, "__defaults__", None))
    names: list[str] = []
    yield from _of_code(code, names)
    scope = getattr(function, "__globals__", {})
    home = scope.get("__name__")
    used = [(name, scope[name]) for name in dict.fromkeys(names) if name in scope]
    used += zip(code.co_freevars, [_content(cell) for cell in getattr(function, "__closure__", None) or ()])
    for name, value in used:
        if isinstance(value, types.FunctionType) and value.__module__ == home:
            yield name
            yield from _parts(value, seen)
        elif isinstance(value, (str, int, float, bool, bytes, tuple, frozenset, type(None))):
            yield f"{name}={value!r}"


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
