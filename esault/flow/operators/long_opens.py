"""The time that `open` takes, where it is called for each key."""

from __future__ import annotations

import math
from logging import Logger, LoggerAdapter
from typing import Any

__all__ = ["LongOpens"]

#: seconds in `open`, and calls of it, behind which it is said that it is called for each key
LONG_OPENS, MANY_OPENS = 1.0, 5


class LongOpens:
    """Says, once, if `open` takes long for each key: those who come from elsewhere expect one call."""

    __slots__ = ("_calls", "_seconds")

    def __init__(self) -> None:
        self._calls, self._seconds = 0, 0.0

    def took(self, unit: str, seconds: float, cls: type, logger: Logger | LoggerAdapter[Any]) -> None:
        """Note a call."""
        self._calls += 1
        self._seconds += seconds
        if self._seconds >= LONG_OPENS and self._calls >= MANY_OPENS:
            logger.warning(
                f"unit {unit!r}: {cls.__name__}.open has taken {self._seconds:.1f} s for {self._calls} objects: it is called for "
                "each key. What all keys share, such as a model or a client, is opened once by open_shared(self, context)"
            )
            self._seconds = -math.inf
