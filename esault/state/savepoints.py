"""Savepoints: checkpoints that are kept under a name until they are removed, each in a folder that needs nothing else."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from esault.errors import CheckpointError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint
from esault.object_store.object_path import ObjectPath
from esault.state import manifest
from esault.state.files import sync_file, sync_folder
from esault.state.place import Place, link, put, remove_tree
from esault.state.spool import SPOOL

__all__ = ["SAVEPOINTS", "Savepoints", "copy_spool", "is_whole", "manifest_name"]

#: the folder of all savepoints in a state directory
SAVEPOINTS = "savepoints"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
#: checkpoints that are complete behind one when its sinks have committed it for certain
COMMITTED_BEHIND = 2


def manifest_name(number: int) -> str:
    """Return the name of the file that makes checkpoint `number` complete."""
    return f"checkpoint-{number:08d}.json"


class Savepoints:
    """Those of one state directory. Files of state have a second name (a hard link) here, and are copied where that cannot be.

    In an object store the manifest, which comes last, is what makes a savepoint.
    """

    def __init__(self, state_dir: Place) -> None:
        self._state_dir = state_dir
        self.path = state_dir / SAVEPOINTS
        #: what sinks may not have committed yet: number -> manifests
        self._open: dict[int, list[Place]] = {}

    def names(self) -> list[str]:
        """Return the names, sorted."""
        if not self.path.is_dir():
            return []
        return sorted(each.name for each in self.path.iterdir() if _NAME.fullmatch(each.name) and is_whole(each))

    def folder(self, name: str) -> Place:
        """Return where the savepoint of this name is, or would be. Raises UsageError for what is no name."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"a savepoint cannot be named {name!r}: letters, digits, '.', '_' and '-', 100 at most, a letter or digit first"
            )
        return self.path / name

    def check(self, name: str) -> None:
        """Check that a savepoint of this name can be made. Raises UsageError."""
        folder = self.folder(name)
        if is_whole(folder) or (isinstance(folder, Path) and folder.exists()):
            raise UsageError(
                f"there is a savepoint {name!r} already, in {folder}: choose another name, or remove it with "
                f"`esault checkpoint remove {self._state_dir} {name}`"
            )

    def create(self, kept: CompletedCheckpoint, name: str, committed: bool = False) -> Place:
        """Keep this checkpoint of the state directory under a name, durable in one step, and return its folder.

        `committed`: sinks have committed all that belongs to it. Raises UsageError, CheckpointError.
        """
        made = replace(kept, handles=()) if committed else kept

        def fill(folder: Place) -> CompletedCheckpoint:
            for unit in kept.units.values():
                for piece in unit.pieces:
                    link(self._state_dir / piece.name, folder / piece.name)
            if isinstance(folder, Path):
                copy_spool(self._state_dir, folder)
            return made

        target = self.build(name, fill)
        if made.handles:
            self._open.setdefault(kept.number, []).append(target / manifest_name(kept.number))
        return target

    def build(self, name: str, fill: Callable[[Place], CompletedCheckpoint]) -> Place:
        """Make a savepoint, durable in one step, and return its folder. `fill` writes all but the manifest into a folder, and returns that.

        Raises UsageError, CheckpointError, and what `fill` raises.
        """
        self.check(name)
        target = self.folder(name)
        part = target if isinstance(target, ObjectPath) else self.path / f".{name}.part"
        try:
            self.path.mkdir(0o700, exist_ok=True)
            remove_tree(part)
            part.mkdir(0o700)
            kept = fill(part)
            put(part / manifest_name(kept.number), manifest.encode(kept))
            if isinstance(part, Path):
                part.rename(str(target))
                sync_folder(part.parent)
        except OSError as error:
            _give_up(part)
            raise CheckpointError(
                f"savepoint {name!r} cannot be kept in {self.path}: {error.strerror or error}; free space or mend permissions"
            ) from error
        except BaseException:
            _give_up(part)
            raise
        return target

    def go_on_from(self, kept: CompletedCheckpoint) -> None:
        """Note which savepoints this run's sinks will have committed, since it goes on from `kept`."""
        for name in self.names():
            for path in self.folder(name).glob("checkpoint-*.json"):
                with contextlib.suppress(CheckpointError):
                    made = manifest.read(path)
                    if made.handles and made.number <= kept.number:
                        self._open.setdefault(kept.number, []).append(path)

    def complete(self, number: int) -> None:
        """Checkpoint `number` is complete: those well before it have been committed, and need not say what sinks prepared.

        A savepoint may be used after years, when nothing of what was staged then is left.
        """
        for before in [each for each in self._open if each + COMMITTED_BEHIND <= number]:
            for path in self._open.pop(before):
                with contextlib.suppress(
                    CheckpointError, OSError
                ):  # then it is committed once more, which does no harm
                    if path.exists():
                        put(path, manifest.encode(replace(manifest.read(path), handles=())))

    def remove(self, name: str) -> None:
        """Remove it. Raises UsageError where there is none, CheckpointError."""
        folder = self.folder(name)
        if not is_whole(folder):
            raise UsageError(
                f"there is no savepoint {name!r} in {self.path}; there are: {', '.join(self.names()) or 'none'}"
            )
        try:
            # half of one is never seen
            if isinstance(folder, ObjectPath):
                for path in list(folder.glob("checkpoint-*.json")):
                    path.unlink()
                remove_tree(folder)
            else:
                part = folder.with_name(f".{name}.part")
                remove_tree(part)
                folder.rename(part)
                remove_tree(part)
        except OSError as error:
            raise CheckpointError(
                f"savepoint {name!r} cannot be removed: {error.strerror or error}; mend permissions of {self.path}"
            ) from error


def is_whole(folder: Place) -> bool:
    """Return whether it is the folder of a savepoint, and not what was left of one that is being made, or was."""
    return folder.is_dir() if isinstance(folder, Path) else any(True for _ in folder.glob("checkpoint-*.json"))


def _give_up(part: Place) -> None:
    with contextlib.suppress(OSError, CheckpointError):
        remove_tree(part)


def copy_spool(source: Place, target: Path) -> None:
    """Copy what spouts that cannot seek have read. It may be written to meanwhile: the half of a block at the end is no row. Raises OSError."""
    for folder in _folders(source / SPOOL) if isinstance(source, Path) else ():
        to = target / SPOOL / folder.name
        to.mkdir(0o700, parents=True)
        for path in sorted(folder.iterdir()):
            with contextlib.suppress(FileNotFoundError):  # no checkpoint that is kept needs it any more
                copied = to / path.name
                shutil.copyfile(path, copied)
                copied.chmod(0o600)
                sync_file(copied)
        sync_folder(to)
    if (target / SPOOL).is_dir():
        sync_folder(target / SPOOL)


def _folders(spool: Path) -> Iterator[Path]:
    if spool.is_dir():
        yield from (each for each in sorted(spool.iterdir()) if each.is_dir())
