"""The bolt behind `stream.distinct(...)`: of what is the same within a time, the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esault.topology.bolt import Bolt

__all__ = ["LATE", "Distinct"]

#: the stream of tuples that came so late that what they repeat may be forgotten
LATE = "late"


class Distinct(Bolt[Any, Any, Any, Any]):
    """It emits a tuple unless one of its key was emitted less than `within` seconds before or after it.

    `time` gives a value's time, None: the clock does. State is the times of those that were emitted and may still be repeated.
    """

    __slots__ = ("time", "times", "within")

    def __init__(self, within: float, time: Callable[[Any], float] | None) -> None:
        self.within = within
        self.time = time
        self.times: tuple[float, ...] = ()

    def process(self, key: Any, value: Any) -> None:
        """Emit the value if it is none that was."""
        if self.time is None:
            at = over = self.context.now()
        else:
            at, over = self.time(value), self.context.watermark(key)
        for time in self.times:
            if abs(at - time) < self.within:
                return
        if at < over:
            self.emit(key, value, LATE)
            return
        self.times = (*[time for time in self.times if time > over - self.within], at)
        self.emit(key, value)

    def __getstate__(self) -> dict[str, Any]:
        return {"times": self.times}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.times = tuple(state["times"])
