"""Functions of steps that are known to do a whole batch quicker than each of its values: `json.loads`, and what only calls it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from json import loads
from types import CodeType, FunctionType
from typing import Any

from esault.payload.json_lines import decode_each

__all__ = ["BatchFunction", "batch_function"]

#: batches for which it is not tried again, at most, where it brought nothing
LONGEST_REST = 64

_LOADS = json.loads


def _by_module(text: Any) -> Any:
    return json.loads(text)


def _by_name(text: Any) -> Any:
    return loads(text)


class BatchFunction:
    """Decodes batches of JSON texts."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        #: batches for which it is not tried, and for how many it was not the last time
        self._rest = self._rested = 0

    def results(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """Return what the function makes of each value; None where it is to be called, which also tells what raises."""
        if self._rest:
            self._rest -= 1
            return None
        found = decode_each(values) if _calls_loads(self._function) else None
        if found is None:
            self._rest = self._rested = min(LONGEST_REST, 2 * self._rested + 1)
        else:
            self._rested = 0
        return found


def batch_function(function: Callable[..., Any]) -> BatchFunction | None:
    """Return what does batches of this function of a value; None where it is not known."""
    return BatchFunction(function) if _calls_loads(function) else None


def _calls_loads(function: Callable[..., Any]) -> bool:
    """Return whether it is `json.loads`, or hands its only argument to that and returns what comes."""
    if function is _LOADS:
        return True
    if type(function) is not FunctionType or function.__closure__ or function.__defaults__:
        return False
    code, names = function.__code__, function.__globals__
    if _same(code, _by_module.__code__):
        return names.get("json") is json and json.loads is _LOADS
    return _same(code, _by_name.__code__) and names.get("loads") is _LOADS


def _same(code: CodeType, other: CodeType) -> bool:
    """Return whether two functions do the same, as far as their names mean the same."""
    return (
        code.co_names == other.co_names
        and code.co_argcount == other.co_argcount
        and code.co_posonlyargcount == code.co_kwonlyargcount == 0
        and code.co_code == other.co_code
    )
