"""State of checkpoints in memory."""

from __future__ import annotations

from typing import Any

from esault.messages.checkpoint import Piece
from esault.payload.schema import Schema

__all__ = ["MemoryStateStore"]


class _File:
    def __init__(self, state_store: MemoryStateStore, name: str, base: bool) -> None:
        self._state_store, self._name, self._base = state_store, name, base
        self._items: list[tuple[Any, bytes | None]] = []

    def add(self, key: Any, state: bytes | None) -> None:
        self._items.append((key, state))

    def finish(self, schema: Schema) -> Piece:
        self._state_store.pieces[self._name] = self._items
        self._state_store.schemas[self._name] = schema
        size = sum(len(state) for _, state in self._items if state is not None)
        return Piece(self._name, self._base, len(self._items), size, 0)

    def drop(self) -> None:
        self._items.clear()


class MemoryStateStore:
    """Pieces by name: (key, packed state), None where there is none any more. No dict by key: it would take 1 for True."""

    def __init__(self) -> None:
        self.pieces: dict[str, list[tuple[Any, bytes | None]]] = {}
        self.schemas: dict[str, Schema] = {}

    def schema(self, piece: Piece) -> Schema | None:
        """Return the description of the classes in it."""
        return self.schemas.get(piece.name)

    def read(self, piece: Piece) -> list[tuple[Any, bytes | None]]:
        """Return what was written."""
        return list(self.pieces[piece.name])

    def create(self, number: int, incarnation: int, base: bool, in_flight: bool = False) -> _File:
        """A piece of a sub-unit; `in_flight`: for rows in flight."""
        return _File(self, f"{number}-{incarnation}{'-in-flight' if in_flight else ''}", base)
