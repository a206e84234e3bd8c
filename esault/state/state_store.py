"""The store in which the sub-units of a host write their state, and read what others wrote."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from esault.messages.checkpoint import Piece
from esault.payload.codec import Codec
from esault.payload.schema import Schema
from esault.state.piece_file import PieceWriter, read_piece, read_schema

__all__ = ["FileStateStore"]


class FileStateStore:
    """Pieces in the state directory. What is written here is part of nothing until a manifest speaks of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # One for all: a codec holds a buffer of a megabyte until the collector finds it.
        self._codec = Codec()

    def create(self, number: int, incarnation: int, base: bool, in_flight: bool = False) -> PieceWriter:
        """A file for a sub-unit's part of a checkpoint; `in_flight`: for rows in flight. Raises CheckpointError."""
        kind = "-in-flight" if in_flight else "-base" if base else ""
        return PieceWriter(self._path / f"{number:08d}-{incarnation}{kind}.state", base, self._codec)

    def read(self, piece: Piece) -> Iterable[tuple[Any, bytes | None]]:
        """Return what was written. Raises CheckpointError."""
        return read_piece(self._path / piece.name)

    def schema(self, piece: Piece) -> Schema | None:
        """Return the description of the classes in it; None: a version that did not say wrote it. Raises CheckpointError."""
        return read_schema(self._path / piece.name)
