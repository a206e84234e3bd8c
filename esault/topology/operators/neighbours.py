"""The bolts behind `stream.changes()` and `stream.pairwise()`: they look at a tuple and the one before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esault.topology.bolt import Bolt

__all__ = ["Changes", "Pairwise"]


class Pairwise(Bolt[Any, Any, Any, Any]):
    """It emits (the value before, the value) for each tuple of a key but the first."""

    __slots__ = ("before",)

    def __init__(self) -> None:
        #: in a tuple of one: it may be None
        self.before: tuple[Any, ...] = ()

    def process(self, key: Any, value: Any) -> None:
        """Emit the pair."""
        if self.before:
            self.emit(key, (self.before[0], value))
        self.before = (value,)

    def __getstate__(self) -> dict[str, Any]:
        return {"before": self.before}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.before = tuple(state["before"])


class Changes(Bolt[Any, Any, Any, Any]):
    """It emits a tuple whose `of(value)` is another than that of the tuple before it, and the first one."""

    __slots__ = ("before", "of")

    def __init__(self, of: Callable[[Any], Any] | None) -> None:
        self.of = of
        self.before: tuple[Any, ...] = ()

    def process(self, key: Any, value: Any) -> None:
        """Emit the value if it is another."""
        now = value if self.of is None else self.of(value)
        if self.before and self.before[0] == now:
            return
        self.before = (now,)
        self.emit(key, value)

    def __getstate__(self) -> dict[str, Any]:
        return {"before": self.before}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.before = tuple(state["before"])
