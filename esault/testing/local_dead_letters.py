"""Dead letters of a run in this process, in memory or in the files that the topology names."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from esault.state.dead_letter_file import DeadLetterFile
from esault.testing.memory_connectors import DeadLetterList

__all__ = ["LocalDeadLetters"]


class LocalDeadLetters:
    """The dead letters of all sub-units: in memory, or in files if the sinks of the run are the `real` ones."""

    def __init__(self, real: bool) -> None:
        self._one = None if real else DeadLetterList()
        self._files: dict[tuple[str | None, int], DeadLetterFile] = {}
        weakref.finalize(self, _close, self._files)

    def of(self, incarnation: int) -> Callable[[str | None], Any]:
        """Return what gives a sub-unit the place of its dead letters, by their path."""

        def at(path: str | None) -> Any:
            place = path, incarnation
            return self._one or self._files.setdefault(place, DeadLetterFile(*place))

        return at

    @property
    def records(self) -> list[dict[str, Any]]:
        """Those in memory."""
        return [] if self._one is None else list(self._one.records)


def _close(files: dict[tuple[str | None, int], DeadLetterFile]) -> None:
    for each in files.values():
        each.close()
