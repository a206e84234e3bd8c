"""Sub-units that say nothing: the user is told, once for each silence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

__all__ = ["SILENCE", "Unresponsive"]

#: seconds without a word from a sub-unit after which the user is told
SILENCE = 5.0


class _Unit(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def subs(self) -> Iterable[int]: ...


class Unresponsive:
    """The times at which each sub-unit was heard last."""

    def __init__(self) -> None:
        self._heard: dict[int, float] = {}
        self._told: set[int] = set()

    def heard(self, incarnation: int, now: float) -> None:
        """Note that a sub-unit said something."""
        self._heard[incarnation] = now
        self._told.discard(incarnation)

    def forget(self, incarnation: int) -> None:
        """Forget a sub-unit that is gone."""
        self._heard.pop(incarnation, None)
        self._told.discard(incarnation)

    def find(self, units: Iterable[_Unit], now: float, but: Collection[int] = ()) -> Iterator[str]:
        """Yield a line for each sub-unit that has been silent for long and was not told of; those in `but` may be."""
        for incarnation in but:
            self.heard(incarnation, now)
        living = set[int]()
        for unit in units:
            for incarnation in unit.subs:
                living.add(incarnation)
                if now - self._heard.get(incarnation, now) > SILENCE and incarnation not in self._told:
                    self._told.add(incarnation)
                    yield (
                        f"no word from {unit.name}/{incarnation} for {SILENCE:.0f} s: user code that does not "
                        "return, or a frozen process"
                    )
        for incarnation in self._heard.keys() - living:
            self.forget(incarnation)
