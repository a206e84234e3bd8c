"""Waits between attempts to reach a server that is away."""

from __future__ import annotations

import random
from collections.abc import Callable

from esault.topology.error_policy import Backoff

__all__ = ["Waits"]

_BACKOFF = Backoff()


class Waits:
    """Seconds to wait, each time twice as many up to a limit, and a part of them left to chance: not all come back at one moment."""

    def __init__(self, backoff: Backoff = _BACKOFF, chance: Callable[[], float] = random.random) -> None:
        self._backoff, self._chance = backoff, chance
        self._tries = 0

    def next(self) -> float:
        """Return the seconds before the next attempt."""
        self._tries += 1
        return self._backoff.wait(self._tries - 1, self._chance())

    def begin_again(self) -> None:
        """The server has answered: the next wait is short."""
        self._tries = 0
