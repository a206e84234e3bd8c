"""The bolt behind `stream.enrich(...)`: each tuple with the answer of a service, which is asked once per key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from esault.topology.bolt import Bolt

__all__ = ["Enrich"]


class Enrich(Bolt[Any, Any, Any, Any]):
    """It emits (value, answer); an answer serves all tuples of its key for `cache` seconds, None: each tuple asks."""

    __slots__ = ("answer", "asked", "cache", "drops", "function", "of")

    def __init__(
        self,
        function: Callable[[Any], Awaitable[Any]],
        cache: float | None,
        of: Callable[[Any], Any] | None = None,
        drops: bool = False,
    ) -> None:
        self.function = function
        self.cache = cache
        self.of = of
        #: a tuple whose answer is None goes no further
        self.drops = drops
        self.answer: Any = None
        #: when that was, by the clock
        self.asked: float | None = None

    async def process(self, key: Any, value: Any) -> None:
        """Ask, unless the answer is known."""
        asked = value if self.of is None else self.of(value)
        if self.cache is None:
            answer = await self._ask(asked)
        else:
            if self.asked is None or self.context.now() >= self.asked + self.cache:
                self.answer = await self._ask(asked)
                self.asked = self.context.now()
            answer = self.answer
        if answer is not None or not self.drops:
            self.emit(key, (value, answer))

    def process_known(self, key: Any, value: Any) -> bool:
        """Emit with the answer that is known, and return True; False: it has to be asked for, by `process`."""
        if self.cache is None:
            # a table with a cache
            known: Callable[[Any, Any], tuple[bool, Any]] | None = getattr(self.function, "known", None)
            if known is None:
                return False
            is_known, answer = known(value if self.of is None else self.of(value), self.context)
            if not is_known:
                return False
        elif self.asked is None or self.context.now() >= self.asked + self.cache:
            return False
        else:
            if self.of is not None:
                self.of(value)  # a value that it refuses is refused, whatever is known
            answer = self.answer
        if answer is not None or not self.drops:
            self.emit(key, (value, answer))
        return True

    def _ask(self, asked: Any) -> Awaitable[Any]:
        # a table with a cache counts in the metrics of this unit
        counted: Callable[[Any, Any], Awaitable[Any]] | None = getattr(self.function, "counted", None)
        return self.function(asked) if counted is None else counted(asked, self.context)

    def __getstate__(self) -> dict[str, Any]:
        return {} if self.asked is None else {"answer": self.answer, "asked": self.asked}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.answer, self.asked = state.get("answer"), state.get("asked")
