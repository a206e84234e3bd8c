"""State of checkpoints in memory."""

from __future__ import annotations

from typing import Any

from esault.messages.checkpoint import Piece

__all__ = ["MemoryVault"]


class _File:
    def __init__(self, vault: MemoryVault, name: str, base: bool) -> None:
        self._vault, self._name, self._base = vault, name, base
        self._items: dict[Any, bytes | None] = {}

    def add(self, key: Any, state: bytes | None) -> None:
        self._items[key] = state

    def finish(self) -> Piece:
        self._vault.pieces[self._name] = self._items
        size = sum(len(state) for state in self._items.values() if state is not None)
        return Piece(self._name, self._base, len(self._items), size, 0)

    def drop(self) -> None:
        self._items.clear()


class MemoryVault:
    """Pieces by name: key -> packed state, None where there is none any more."""

    def __init__(self) -> None:
        self.pieces: dict[str, dict[Any, bytes | None]] = {}

    def read(self, piece: Piece) -> list[tuple[Any, bytes | None]]:
        """What was written."""
        return list(self.pieces[piece.name].items())

    def create(self, number: int, incarnation: int, base: bool) -> _File:
        """A piece of a sub-unit."""
        return _File(self, f"{number}-{incarnation}", base)
