"""The state directory of a topology: pieces, and a manifest for each complete checkpoint.

A checkpoint is complete when its manifest has its name. What no manifest that is kept speaks of is removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zlib import crc32

from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import Piece
from esault.state.files import write_whole
from esault.state.piece_file import PieceWriter, check_piece

__all__ = ["FORMAT", "Manifest", "StateDir"]

FORMAT = 1
#: complete checkpoints that are kept
KEPT = 2
_PIECE = re.compile(r"(\d{8})-\d+(-base)?\.state")


class Manifest:
    """What belongs to one checkpoint. `pieces`: (unit, sub-unit) -> its pieces, the base first; `about`: anything else, as JSON."""

    def __init__(self, number: int, pieces: dict[tuple[str, int], list[Piece]], about: dict[str, Any]) -> None:
        self.number = number
        self.pieces = pieces
        self.about = about

    @property
    def names(self) -> set[str]:
        """Of all its files."""
        return {piece.name for chain in self.pieces.values() for piece in chain}

    def as_bytes(self) -> bytes:
        """A line of JSON and a line with its checksum."""
        pieces = [[unit, sub, [asdict(piece) for piece in chain]] for (unit, sub), chain in self.pieces.items()]
        text = json.dumps({"format": FORMAT, "number": self.number, "pieces": pieces, "about": self.about})
        return f"{text}\n{crc32(text.encode()):08x}\n".encode()

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Raises CheckpointError."""
        try:
            text, checksum, *_ = path.read_bytes().decode().split("\n")
            if f"{crc32(text.encode()):08x}" != checksum:
                raise ValueError("its checksum is another one")
            content = json.loads(text)
            if content["format"] > FORMAT:
                raise CheckpointError(
                    f"{path} is in format {content['format']}, written by a newer eSault; this one reads up to {FORMAT}: "
                    "install the newer one"
                )
            pieces = {(unit, sub): [Piece(**piece) for piece in chain] for unit, sub, chain in content["pieces"]}
            return cls(content["number"], pieces, content["about"])
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is damaged, or no manifest of eSault: {error}") from error


class StateDir:
    """One topology's, used by one run at a time. Close it to let go of it."""

    def __init__(self, path: Path, create: bool = True) -> None:
        """Raises UsageError when another run has it, CheckpointError when it cannot be made."""
        self.path = path
        try:
            if create:
                path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CheckpointError(
                f"the state directory {path} cannot be used: {error.strerror or error}; mend permissions or choose another "
                "with --state"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise UsageError(
                f"another run uses the state directory {path}; end it, or choose another with --state"
            ) from None
        for part in path.glob(".*.part"):  # of a run that was killed while it wrote
            part.unlink(missing_ok=True)

    def create(self, number: int, incarnation: int, base: bool) -> PieceWriter:
        """A file for a sub-unit's part of a checkpoint. Raises CheckpointError."""
        return PieceWriter(self.path / f"{number:08d}-{incarnation}{'-base' if base else ''}.state", base)

    def keep(self, manifest: Manifest) -> None:
        """The checkpoint is complete from here on. Raises CheckpointError."""
        try:
            write_whole(self._manifest(manifest.number), manifest.as_bytes())
        except OSError as error:
            raise CheckpointError(
                f"checkpoint {manifest.number} cannot be completed in {self.path}: {error.strerror or error}; free space or mend "
                "permissions. The checkpoints before it stay as they are"
            ) from error
        self.prune()

    def _manifest(self, number: int) -> Path:
        return self.path / f"checkpoint-{number:08d}.json"

    def manifests(self) -> list[Path]:
        """Of all complete checkpoints, the newest first."""
        return sorted(self.path.glob("checkpoint-*.json"), reverse=True)

    def newest(self) -> tuple[Manifest | None, list[str]]:
        """The newest checkpoint of which every byte is there, and what is amiss with newer ones.

        Raises CheckpointError when there are some and none is whole: starting anew would silently lose what they stand for.
        """
        amiss: list[str] = []
        paths = self.manifests()
        for path in paths:
            try:
                manifest = Manifest.read(path)
                for chain in manifest.pieces.values():
                    for piece in chain:
                        check_piece(self.path / piece.name, piece)
            except CheckpointError as error:
                amiss.append(str(error))
            else:
                return manifest, amiss
        if paths:
            raise CheckpointError(
                f"no checkpoint in {self.path} is whole: {'; '.join(amiss)}. Nothing was changed there; bring the files back, or "
                "choose another directory with --state to begin anew"
            )
        return None, amiss

    def prune(self) -> None:
        """Remove what no kept checkpoint needs. What cannot be removed stays, and does no harm."""
        kept, over = self.manifests()[:KEPT], self.manifests()[KEPT:]
        needed: set[str] = set()
        newest = 0
        for path in kept:
            try:
                manifest = Manifest.read(path)
            except CheckpointError:
                return  # what it needs is not known
            needed |= manifest.names
            newest = max(newest, manifest.number)
        for path in over:
            path.unlink(missing_ok=True)
        for path in self.path.iterdir():
            piece = _PIECE.fullmatch(path.name)
            # A piece of a later number is being written, or waits for its manifest.
            if piece is not None and path.name not in needed and int(piece[1]) <= newest:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Another run may use it."""
        os.close(self._lock)
