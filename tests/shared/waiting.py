"""How tests wait for what other processes do: they ask again and again, and take a small part of a core for that."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["PATIENCE", "until"]

T = TypeVar("T")
#: seconds, on a machine that does much else
PATIENCE = 200.0
#: seconds between two questions, at least and at most
SHORTEST, LONGEST = 0.05, 0.25
#: a question that takes long itself, as to a database or to files that grow, is asked after so many times what it took
SHARE = 3.0


def until(condition: Callable[[], T], seconds: float = PATIENCE, look: Callable[[], object] = lambda: None) -> T:
    """Wait until the condition gives something, and give that. `look`, after each question in vain, may raise."""
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        found = condition()
        if found:
            return found
        look()
        time.sleep(min(LONGEST, max(SHORTEST, SHARE * (time.monotonic() - began))))
    raise AssertionError(f"not within {seconds} s")
