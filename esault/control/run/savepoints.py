"""Requests for checkpoints under a name: each begins behind its request, and is answered when it is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from esault.control.checkpoints.checkpoints import Checkpoints
from esault.errors import EsaultError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint

__all__ = ["SavepointRequests", "SavepointStore"]


class SavepointStore(Protocol):
    """Keeps checkpoints under names; the runtime gives it."""

    def check(self, name: str) -> None:
        """Check that one of this name can be made. Raises UsageError."""
        ...

    def create(self, kept: CompletedCheckpoint, name: str) -> object:
        """Keep it, and return where, as a text says it. Raises UsageError, CheckpointError."""
        ...


@dataclass
class _Wanted:
    name: str
    #: number of the first checkpoint that will do
    number: int
    #: what is said to who asked; None: not yet
    said: dict[str, Any] | None = None


class SavepointRequests:
    """Those of one run."""

    def __init__(self, store: SavepointStore) -> None:
        self._store = store
        self._wanted: list[_Wanted] = []

    def ask(self, name: str, checkpoints: Checkpoints) -> Callable[[], dict[str, Any] | None]:
        """Ask for one, and return what gives the answer once there is one. Raises UsageError."""
        self._store.check(name)
        if any(each.name == name for each in self._wanted):
            raise UsageError(f"savepoint {name!r} is being made")
        wanted = _Wanted(name, checkpoints.ask())
        self._wanted.append(wanted)
        return lambda: wanted.said

    def complete(self, completed: CompletedCheckpoint) -> None:
        """A checkpoint is complete: keep it under the names that wait for it."""
        for wanted in [each for each in self._wanted if each.number <= completed.number]:
            self._wanted.remove(wanted)
            try:
                path = self._store.create(completed, wanted.name)
            except EsaultError as error:  # the checkpoint is complete all the same
                wanted.said = {"error": str(error)}
            else:
                wanted.said = {
                    "done": True,
                    "savepoint": wanted.name,
                    "path": str(path),
                    "checkpoint": completed.number,
                    "bytes": completed.total_size,
                    "seconds": completed.completed_at - completed.begun_at,
                }

    def given_up(self, text: str) -> None:
        """Answer those who wait: the checkpoint could not be taken."""
        for wanted in self._wanted:
            wanted.said = {"error": f"no checkpoint could be taken: {text}"}
        self._wanted.clear()
