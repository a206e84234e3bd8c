"""The loop that runs coroutines for a sub-unit, a step at a time. The shell gives it, so that nothing here waits for the world."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

__all__ = ["EventLoop"]


class EventLoop(Protocol):
    """Runs in the thread that calls `step`."""

    def start(self, call: Coroutine[Any, Any, None]) -> None:
        """Run this as a task, from the next step on."""
        ...

    def step(self, seconds: float) -> bool:
        """Run what is ready, for so many seconds at most; whether there may be more at once."""
        ...

    @property
    def wake_at(self) -> float:
        """Return the time at which a timer is due, by the clock; infinite where there is none."""
        ...

    def fileno(self) -> int:
        """Can be read when something came that a task waits for."""
        ...

    def close(self) -> None:
        """Cancel what is open."""
        ...
