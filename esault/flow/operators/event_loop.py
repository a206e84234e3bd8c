"""The loop that runs coroutines for a sub-unit, a step at a time. The shell gives it, so that nothing here waits for the world."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol

__all__ = ["EventLoop"]


class EventLoop(Protocol):
    """Runs in the thread that calls `step`."""

    def start(self, call: Coroutine[Any, Any, None]) -> None:
        """Run this as a task, from the next step on, or in the step that runs."""
        ...

    def step(self, seconds: float) -> bool:
        """Run what is ready, for so many seconds at most; whether there may be more at once."""
        ...

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Let others run for so long, in a task."""
        ...

    def future(self) -> Any:
        """Return what tasks can await until `set_result` is called, an asyncio.Future."""
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
