"""The state directory of a topology: pieces, and a manifest for each complete checkpoint.

A checkpoint is complete when its manifest has its name. What no manifest that is kept speaks of is removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint, Piece
from esault.state import manifest
from esault.state.files import write_whole
from esault.state.piece_file import check_piece
from esault.state.spool import SPOOL

__all__ = ["StateDir"]

#: complete checkpoints that are kept
KEPT = 2
#: the folder of the Spark engine
SPARK = "spark"
#: names the checkpoint after which all was over
ENDED = "ended"
#: names the folder in what sinks stage, over all runs that it sees
LINEAGE = "lineage"
_MANIFEST = re.compile(r"checkpoint-\d{8}\.json")
_PIECE = re.compile(r"(\d{8})-\d+(-base|-in-flight)?\.state")


class StateDir:
    """One topology's, used by one run at a time. Close it to let go of it.

    The lock is that of an open file, which forked processes share: it lasts until the last process of the run is gone.
    """

    def __init__(self, path: Path, locked: bool = True) -> None:
        """`locked=False`: for a process of the run that holds the lock already.

        Raises UsageError when another run has it, CheckpointError when it cannot be made.
        """
        self.path = path
        self._lock = -1
        if not locked:
            return
        try:
            path.mkdir(0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if not os.access(path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
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

    def keep(self, kept: CompletedCheckpoint) -> None:
        """The checkpoint is complete from here on. Raises CheckpointError."""
        try:
            write_whole(self._manifest(kept.number), manifest.encode(kept))
        except OSError as error:
            raise CheckpointError(
                f"checkpoint {kept.number} cannot be completed in {self.path}: {error.strerror or error}; free space or mend "
                "permissions. The checkpoints before it stay as they are"
            ) from error
        self.prune()

    def _manifest(self, number: int) -> Path:
        return self.path / f"checkpoint-{number:08d}.json"

    @property
    def of_spark(self) -> bool:
        """Return whether a run of the Spark engine, which keeps its own here, did not finish."""
        folder = self.path / SPARK
        return (folder / "layout.json").exists() and not (folder / "ended").exists()

    def manifests(self) -> list[Path]:
        """Of all complete checkpoints, the newest first."""
        return sorted(
            (path for path in self.path.glob("checkpoint-*.json") if _MANIFEST.fullmatch(path.name)), reverse=True
        )

    def newest(self) -> tuple[CompletedCheckpoint | None, list[str]]:
        """The newest checkpoint of which every byte is there, and what is amiss with newer ones.

        Raises CheckpointError when there are some and none is whole: starting anew would silently lose what they stand for.
        """
        amiss: list[str] = []
        paths = self.manifests()
        for path in paths:
            try:
                kept = manifest.read(path)
                for piece in _pieces(kept):
                    check_piece(self.path / piece.name, piece)
            except CheckpointError as error:
                amiss.append(str(error))
            else:
                return kept, amiss
        if paths:
            raise CheckpointError(
                f"no checkpoint in {self.path} is whole: {'; '.join(amiss)}. Nothing was changed there; bring the files back, or "
                "choose another directory with --state to begin anew"
            )
        return None, amiss

    @property
    def ended(self) -> bool:
        """Return whether the run that wrote the newest checkpoint has come to its end, and all its sinks have committed."""
        newest = self.manifests()[:1]
        try:
            return bool(newest) and (self.path / ENDED).read_text() == newest[0].name
        except (OSError, ValueError):
            return False

    def lineage(self) -> str:
        """Return the identity of this folder, which is made when it is first asked for and stays, also when a run begins anew. Raises CheckpointError."""
        path = self.path / LINEAGE
        with contextlib.suppress(OSError, ValueError):
            if found := path.read_text().strip():
                return found
        made = secrets.token_hex(16)
        try:
            write_whole(path, made.encode())
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be written: {error.strerror or error}; free space or mend permissions"
            ) from error
        return made

    @property
    def spooled(self) -> bool:
        """Return whether rows are here that a spout has read and that may be nowhere else."""
        return any(path.stat().st_size for path in (self.path / SPOOL).glob("*/*.rows"))

    def mark_ended(self) -> None:
        """There is nothing to go on with. Raises CheckpointError."""
        newest = self.manifests()[:1]
        if newest:
            try:
                write_whole(self.path / ENDED, newest[0].name.encode())
            except OSError as error:
                raise CheckpointError(
                    f"{self.path / ENDED} cannot be written: {error.strerror or error}; all rows are committed, and the next run "
                    "needs --restart"
                ) from error

    def clear(self) -> None:
        """Begin anew: nothing of earlier runs stays. Raises CheckpointError."""
        self._remove([*self.manifests(), self.path / ENDED, self.path / SPOOL, self.path / SPARK])
        self._remove([path for path in self.path.iterdir() if _PIECE.fullmatch(path.name) or _part(path)])

    def tidy(self) -> None:
        """A run goes on from what is here: half-written files of a run that was killed go. Raises CheckpointError."""
        self._remove([path for path in self.path.iterdir() if _part(path)])

    @property
    def last_number(self) -> int:
        """Of the newest checkpoint, be it damaged; 0: there is none. Later ones have higher numbers: nothing is written over."""
        newest = self.manifests()[:1]
        return int(newest[0].stem.rpartition("-")[2]) if newest else 0

    def _remove(self, paths: list[Path]) -> None:
        try:
            for path in paths:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"{error.filename or self.path} cannot be removed: {error.strerror or error}; mend permissions, or choose another "
                "directory with --state"
            ) from error

    def prune(self) -> None:
        """Remove what no kept checkpoint needs. What cannot be removed stays, and does no harm."""
        kept, over = self.manifests()[:KEPT], self.manifests()[KEPT:]
        needed: set[str] = set()
        newest = 0
        for path in kept:
            try:
                checkpoint = manifest.read(path)
            except CheckpointError:
                return  # what it needs is not known
            needed |= {piece.name for piece in _pieces(checkpoint)}
            newest = max(newest, checkpoint.number)
        with contextlib.suppress(OSError):
            for path in over:
                path.unlink(missing_ok=True)
            for path in self.path.iterdir():
                piece = _PIECE.fullmatch(path.name.removeprefix(".").removesuffix(".part"))
                # A piece of a later number is being written, or waits for its manifest.
                if piece is not None and path.name not in needed and int(piece[1]) <= newest:
                    path.unlink(missing_ok=True)

    def close(self) -> None:
        """Another run may use it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _pieces(kept: CompletedCheckpoint) -> Iterator[Piece]:
    for unit in kept.units.values():
        yield from unit.pieces


def _part(path: Path) -> bool:
    """Return whether a run was killed while it wrote this."""
    return path.name.startswith(".") and path.name.endswith(".part")
