"""Slots: places for sub-units, asked for and given back without knowing who manages them (eSault paper, resource interface)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["OneHost", "Resources", "Slot"]


@dataclass(frozen=True)
class Slot:
    """One place on one host."""

    host: str
    number: int


class Resources(Protocol):
    """Whoever has slots: this machine, the hosts of a cluster."""

    @property
    def total(self) -> int:
        """All slots there are."""
        ...

    @property
    def free(self) -> int:
        """Those that nobody has."""
        ...

    def allocate(self, count: int) -> list[Slot]:
        """Up to `count` slots; fewer, or none, when there are not so many."""
        ...

    def release(self, slots: Iterable[Slot]) -> None:
        """Give slots back. One that is free already stays free."""
        ...


class OneHost:
    """The slots of this machine."""

    def __init__(self, host: str, slots: int) -> None:
        self._all = [Slot(host, i) for i in range(slots)]
        self._free = set(self._all)

    @property
    def total(self) -> int:
        """All slots there are."""
        return len(self._all)

    @property
    def free(self) -> int:
        """Those that nobody has."""
        return len(self._free)

    def allocate(self, count: int) -> list[Slot]:
        """Up to `count` slots, the lowest numbers first."""
        given = sorted(self._free, key=lambda slot: slot.number)[:count]
        self._free.difference_update(given)
        return given

    def release(self, slots: Iterable[Slot]) -> None:
        """Give slots back."""
        self._free.update(slot for slot in slots if slot in self._all)
