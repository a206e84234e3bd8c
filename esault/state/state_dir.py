"""The state directory of a topology: pieces, and a manifest for each complete checkpoint.

A checkpoint is complete when its manifest has its name. What no manifest that is kept speaks of is removed. In an object store the names of
manifests are given by `fence`, in place of a lock.

It is one module of over 300 lines: what lies in the folder, and in which order it comes and goes, is told in one place.
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
from dataclasses import replace
from pathlib import Path

from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint, Piece
from esault.object_store.object_path import ObjectPath
from esault.state import manifest
from esault.state.fence import Fence
from esault.state.last_run import forget_run
from esault.state.piece_file import check_piece
from esault.state.place import Place, link, put, remove_tree
from esault.state.savepoints import Savepoints, copy_spool, manifest_name
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
_PIECE = re.compile(r"(\d{8})-\d+(-base|-in-flight)?(-[0-9a-f]{8})?\.state")


class StateDir:
    """One topology's, used by one run at a time. Close it to let go of it.

    The lock is that of an open file, which forked processes share: it lasts until the last process of the run is gone.
    """

    def __init__(self, path: Place, locked: bool = True, last_number: int = 0) -> None:
        """`locked=False`: for a process of the run that holds the lock already; in an object store that has claimed the numbers behind `last_number`.

        Raises UsageError when another run has it, CheckpointError when it cannot be made.
        """
        self.path = path
        self.savepoints = Savepoints(path)
        self._fence = Fence(path, last_number) if isinstance(path, ObjectPath) else None
        self._lock = -1
        if not locked or isinstance(path, ObjectPath):
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

    def claim(self, before: int = 0) -> None:
        """In an object store: take the folder over; numbers go on above `before`. Raises UsageError where another run completes checkpoints now."""
        if self._fence is not None:
            self._fence.claim(before)

    def keep(self, kept: CompletedCheckpoint) -> None:
        """The checkpoint is complete from here on. Raises CheckpointError; FencedError where another run has taken the folder over."""
        try:
            self._complete(kept)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint {kept.number} cannot be completed in {self.path}: {error.strerror or error}; free space or mend "
                "permissions. The checkpoints before it stay as they are"
            ) from error
        self.prune()
        self.savepoints.complete(kept.number)

    def _complete(self, kept: CompletedCheckpoint) -> None:
        if self._fence is not None:
            self._fence.complete(kept.number, manifest.encode(kept))
        else:
            put(self._manifest(kept.number), manifest.encode(kept))

    def _manifest(self, number: int) -> Place:
        return self.path / manifest_name(number)

    @property
    def of_spark(self) -> bool:
        """Return whether a run of the Spark engine, which keeps its own here, did not finish."""
        folder = self.path / SPARK
        return (folder / "layout.json").exists() and not (folder / "ended").exists()

    def manifests(self) -> list[Place]:
        """Of all complete checkpoints, the newest first."""
        if self._fence is not None:
            return list(self._fence.checkpoints())
        paths: list[Place] = [path for path in self.path.glob("checkpoint-*.json") if _MANIFEST.fullmatch(path.name)]
        return sorted(paths, key=lambda path: path.name, reverse=True)

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
            put(path, made.encode())
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be written: {error.strerror or error}; free space or mend permissions"
            ) from error
        return made

    @property
    def spooled(self) -> bool:
        """Return whether rows are here that a spout has read and that may be nowhere else."""
        # in an object store there are none: see `check_place`
        return isinstance(self.path, Path) and any(path.stat().st_size for path in (self.path / SPOOL).glob("*/*.rows"))

    def mark_ended(self) -> None:
        """There is nothing to go on with. Raises CheckpointError."""
        newest = self.manifests()[:1]
        if newest:
            try:
                put(self.path / ENDED, newest[0].name.encode())
            except OSError as error:
                raise CheckpointError(
                    f"{self.path / ENDED} cannot be written: {error.strerror or error}; all rows are committed, and the next run "
                    "needs --restart"
                ) from error

    def clear(self) -> None:
        """Begin anew: nothing of earlier runs stays. Raises CheckpointError."""
        forget_run(self.path)
        self._remove([*self.manifests(), self.path / ENDED, self.path / SPOOL, self.path / SPARK])
        self._remove([path for path in self.path.iterdir() if _PIECE.fullmatch(path.name) or _part(path)])

    def adopt(self, source: Place, kept: CompletedCheckpoint) -> CompletedCheckpoint:
        """Begin with a checkpoint of another folder, which has a number above all here: durable in one step, and all else goes.

        Return it with the names that its files have here. Raises CheckpointError.
        """
        forget_run(self.path)
        names = iter(range(len(list(_pieces(kept)))))
        try:
            units = {
                name: replace(
                    unit,
                    chains=tuple(
                        tuple(self._taken(source, piece, kept.number, next(names)) for piece in chain)
                        for chain in unit.chains
                    ),
                    in_flight=tuple(
                        self._taken(source, piece, kept.number, next(names), "-in-flight") for piece in unit.in_flight
                    ),
                )
                for name, unit in kept.units.items()
            }
            if source != self.path and isinstance(self.path, Path):
                _take_spool(source, self.path)
            made = replace(kept, units=units)
            self._complete(made)
        except OSError as error:
            raise CheckpointError(
                f"{source} cannot be brought to {self.path}: {error.strerror or error}; free space or mend permissions"
            ) from error
        needed = {piece.name for piece in _pieces(made)}
        over = [path for path in self.manifests() if path != self._manifest(kept.number)]
        pieces: list[Place] = [
            path for path in self.path.iterdir() if _PIECE.fullmatch(path.name) and path.name not in needed
        ]
        self._remove([*over, *pieces, self.path / ENDED, self.path / SPARK])
        return made

    def _taken(self, source: Place, piece: Piece, number: int, i: int, kind: str = "") -> Piece:
        name = f"{number:08d}-{i}{kind or ('-base' if piece.base else '')}.state"
        link(source / piece.name, self.path / name)
        return replace(piece, name=name)

    def tidy(self) -> None:
        """A run goes on from what is here: half-written files of a run that was killed go. Raises CheckpointError."""
        self._remove([path for path in self.path.iterdir() if _part(path)])

    @property
    def last_number(self) -> int:
        """Of the newest checkpoint, be it damaged; 0: there is none. Later ones have higher numbers: nothing is written over."""
        if self._fence is not None:
            return self._fence.last
        newest = self.manifests()[:1]
        return int(newest[0].stem.rpartition("-")[2]) if newest else 0

    def _remove(self, paths: list[Place]) -> None:
        try:
            for path in paths:
                if isinstance(path, Path) and not path.is_dir():
                    path.unlink(missing_ok=True)
                else:
                    remove_tree(path)
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
        with contextlib.suppress(OSError, CheckpointError):
            for path in [*over, *(self._fence.over() if self._fence is not None else ())]:
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


def _take_spool(source: Place, target: Path) -> None:
    part = target / ".taken.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(0o700)
    copy_spool(source, part)
    shutil.rmtree(target / SPOOL, ignore_errors=True)
    if (part / SPOOL).is_dir():
        (part / SPOOL).rename(target / SPOOL)
    part.rmdir()


def _part(path: Place) -> bool:
    """Return whether a run was killed while it wrote this."""
    return path.name.startswith(".") and path.name.endswith(".part")
