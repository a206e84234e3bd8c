"""Servers that tests of one group share: begun when the first of them asks, ended behind the last.

A server that is started takes seconds of processor time, and one that idles to the end of all tests takes some, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
_HELD: dict[Any, Any] = {}
_ENDS = contextlib.ExitStack()


def held(begin: Callable[[], contextlib.AbstractContextManager[T]]) -> T:
    """Return what this context gives: the same until `let_go`."""
    if begin not in _HELD:
        _HELD[begin] = _ENDS.enter_context(begin())
    found: T = _HELD[begin]
    return found


def server(module: ModuleType, *libraries: str) -> Any:
    """Return the running server of a module of this folder; skips where it, or a library that asks it, is not on this machine."""
    for library in libraries:
        pytest.importorskip(library)
    try:
        return held(module.running)
    except module.NotToBeHadError as error:
        pytest.skip(str(error))


def let_go() -> None:
    """End all."""
    _HELD.clear()
    _ENDS.close()
