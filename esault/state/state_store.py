"""The store in which the sub-units of a host write their state, and read what others wrote."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from esault.background import in_background
from esault.errors import CheckpointError
from esault.messages.checkpoint import Piece
from esault.object_store.object_path import ObjectPath
from esault.payload.codec import Codec
from esault.payload.schema import Schema
from esault.state.locked_folder import LockedFolder, remove_stale
from esault.state.piece_file import PieceWriter, read_piece, read_schema
from esault.state.place import Place

__all__ = ["FileStateStore", "FiledPiece", "UploadedPiece", "piece_writer"]

_PREFIX = "esault-piece-"


class UploadedPiece:
    """A piece for an object store: written to a file of this machine first, and put there as a whole in the background."""

    def __init__(self, path: ObjectPath, base: bool, codec: Codec) -> None:
        """Raises CheckpointError where nothing can be written."""
        self._path = path
        try:
            self._folder = LockedFolder(_PREFIX)
        except OSError as error:
            raise CheckpointError(
                f"state cannot be written on its way to {path}: {error.strerror or error}; free space, or name another place with TMPDIR"
            ) from error
        self._file = self._folder.path / path.name
        self._writer = PieceWriter(self._file, base, codec)
        self.add = self._writer.add

    def finish(self, schema: Schema) -> Future[Piece]:
        """Begin to put it there, with what the classes in it look like; it is durable when the future is done. Raises CheckpointError, as does that."""
        self._writer.end(schema)

        def put() -> Piece:
            try:
                piece = self._writer.put()
                self._path.upload(self._file)
            finally:
                self._folder.close()
            return piece

        return in_background(put)

    def drop(self) -> None:
        """Give it up; nothing stays."""
        self._writer.drop()
        self._folder.close()


class FiledPiece:
    """A piece in a folder, which is made durable in the background: to wait for a disk takes as long as thousands of tuples."""

    def __init__(self, path: Path, base: bool, codec: Codec) -> None:
        """Raises CheckpointError where nothing can be written."""
        self._writer = PieceWriter(path, base, codec)
        self.add, self.drop = self._writer.add, self._writer.drop

    def finish(self, schema: Schema) -> Future[Piece]:
        """Write the rest; it is durable when the future is done. Raises CheckpointError, as does that."""
        self._writer.end(schema)
        return in_background(self._writer.put)


def piece_writer(path: Place, base: bool, codec: Codec) -> FiledPiece | UploadedPiece:
    """Return what writes a piece to this place. Raises CheckpointError."""
    return FiledPiece(path, base, codec) if isinstance(path, Path) else UploadedPiece(path, base, codec)


class FileStateStore:
    """Pieces in the state directory. What is written here is part of nothing until a manifest speaks of it."""

    def __init__(self, path: Place, waits: bool = False) -> None:
        """`waits`: have a file made durable by the call that ends it, and not by a thread: a simulation and LocalRuntime have one, and a clock that stands still."""
        self._path = path
        self._waits = waits
        # One for all: a codec holds a buffer of a megabyte until the collector finds it.
        self._codec = Codec()
        # In an object store a run that was taken for dead may write beside this one: their names differ.
        self._own = f"-{secrets.token_hex(4)}" if isinstance(path, ObjectPath) else ""
        if isinstance(path, ObjectPath):
            remove_stale(_PREFIX)

    def create(
        self, number: int, incarnation: int, base: bool, in_flight: bool = False
    ) -> PieceWriter | FiledPiece | UploadedPiece:
        """A file for a sub-unit's part of a checkpoint; `in_flight`: for rows in flight. Raises CheckpointError."""
        kind = "-in-flight" if in_flight else "-base" if base else ""
        path = self._path / f"{number:08d}-{incarnation}{kind}{self._own}.state"
        if self._waits and isinstance(path, Path):
            return PieceWriter(path, base, self._codec)
        return piece_writer(path, base, self._codec)

    def read(self, piece: Piece) -> Iterable[tuple[Any, bytes | None]]:
        """Return what was written. Raises CheckpointError."""
        return read_piece(self._path / piece.name)

    def schema(self, piece: Piece) -> Schema | None:
        """Return the description of the classes in it; None: a version that did not say wrote it. Raises CheckpointError."""
        return read_schema(self._path / piece.name)
