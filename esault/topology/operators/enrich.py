"""The bolt behind `stream.enrich(...)`: each tuple with the answer of a service, which is asked once per key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from esault.topology.bolt import Bolt

__all__ = ["Enrich"]


class Enrich(Bolt[Any, Any, Any, Any]):
    """It emits (value, answer); an answer serves all tuples of its key for `cache` seconds, None: each tuple asks."""

    __slots__ = ("answer", "asked", "cache", "function")

    def __init__(self, function: Callable[[Any], Awaitable[Any]], cache: float | None) -> None:
        self.function = function
        self.cache = cache
        self.answer: Any = None
        #: when that was, by the clock
        self.asked: float | None = None

    async def process(self, key: Any, value: Any) -> None:
        """Ask, unless the answer is known."""
        if self.cache is None:
            self.emit(key, (value, await self.function(value)))
            return
        if self.asked is None or self.context.now() >= self.asked + self.cache:
            self.answer = await self.function(value)
            self.asked = self.context.now()
        self.emit(key, (value, self.answer))

    def __getstate__(self) -> dict[str, Any]:
        return {} if self.asked is None else {"answer": self.answer, "asked": self.asked}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.answer, self.asked = state.get("answer"), state.get("asked")
