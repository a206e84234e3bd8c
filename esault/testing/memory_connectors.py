"""Connectors in memory: rows that a test gives, and lists of what comes out."""

from __future__ import annotations

import copy
import itertools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from esault.payload.undone import Undone
from esault.state.dead_letter_file import DeadLetterFile
from esault.testing.sent import Sent
from esault.topology.plan import Outlet, SinkPlan, UnitPlan
from esault.topology.sink import Sink
from esault.topology.spout import Spout

__all__ = ["CollectingSink", "DeadLetterList", "LocalDeadLetters", "collecting", "given"]


def given(rows: Iterable[tuple[Any, Any]] | Spout[Any, Any], part: int = 0) -> Spout[Any, Any]:
    """Return a spout of these tuples; of a spout, such as a table, one of its own. What is not divided is all given by part 0."""
    if isinstance(rows, Spout):
        if not part or rows.parallel:
            return copy.deepcopy(rows)
        rows = ()
    made = Sent()
    made.add(() if part else rows)
    made.end()
    return made


_HANDLES = itertools.count(1)
_WRITTEN = itertools.count(1)


class CollectingSink(Sink):
    """In place of a sink: keeps what is committed. What is prepared outlives the process, as it must.

    Rows are numbered as they are written: sub-units commit in any order, and of a key that has moved the newer row may come first.
    """

    def __init__(self, landed: list[Any], prepared: dict[int, list[Any]], wants_id: bool) -> None:
        self._landed = landed
        self._prepared = prepared
        self.wants_id = wants_id  # type: ignore[misc]
        self._staged: list[Any] = []

    def write(self, rows: Sequence[Any]) -> None:
        self._staged.extend(zip(_WRITTEN, rows))

    def prepare(self, epoch: int) -> int:
        handle = next(_HANDLES)
        self._prepared[handle] = self._staged
        self._staged = []
        return handle

    def commit(self, epoch: int, handle: Any) -> None:
        self._landed.extend(self._prepared.pop(handle, []))


def collecting(unit: UnitPlan, landed: Mapping[str, list[Any]], prepared: dict[int, list[Any]]) -> UnitPlan:
    """Return the unit, chained bolts included, with sinks that put rows into `landed`, by name, in place of its own."""

    def kept(outlet: Outlet) -> Outlet:
        return replace(
            outlet,
            sinks=tuple(
                SinkPlan(s.name, CollectingSink(landed[s.name], prepared, type(s.sink).wants_id)) for s in outlet.sinks
            ),
            branches=tuple(map(kept, outlet.branches)),
            bolts=tuple(collecting(bolt, landed, prepared) for bolt in outlet.bolts),
        )

    return replace(unit, streams={stream: kept(outlet) for stream, outlet in unit.streams.items()})


class DeadLetterList:
    """Dead letters in memory."""

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []
        self._undone = Undone()

    def __str__(self) -> str:
        return "memory"

    @property
    def records(self) -> list[dict[str, Any]]:
        """Those that hold: what was written behind a checkpoint that all went back to comes again."""
        return [record for record in self._records if record not in self._undone]

    def put(self, record: dict[str, Any]) -> None:
        if not self._undone.note(record):
            self._records.append(record)

    def sync(self) -> None:
        """Memory is as durable as it gets."""


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
