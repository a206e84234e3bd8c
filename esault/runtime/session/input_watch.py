"""Input that has come for a run of which no process is there: its sources are read behind what the checkpoint has, and nothing is kept.

Only sources that can seek are looked at so. What is read here is read again by the run: no position is committed, and no message
acknowledged.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Any

from esault.errors import UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit
from esault.payload.codec import Codec
from esault.topology.context import Context
from esault.topology.located import Located
from esault.topology.plan import Plan, UnitPlan
from esault.topology.split_source import SplitReader, SplitSource
from esault.topology.spout import EndOfStream, Spout, has_position

__all__ = ["InputWatch", "check_watched"]


def check_watched(plan: Plan) -> None:
    """Check that all sources can be looked at while nothing runs. Raises UsageError that names the one that cannot."""
    for name, unit in plan.units.items():
        spout = unit.spout
        if spout is None or isinstance(spout, SplitSource):
            continue
        if not has_position(spout) or spout.reads_command:
            raise UsageError(
                f"--scale-to-zero: unit {name!r} reads {type(spout).__name__}, which cannot be looked at while nothing runs: it has no "
                "position to go on from. Let what it gives go into Kafka or into files, and read those; or leave --scale-to-zero out"
            )


class InputWatch:
    """The sources of a run, opened behind what its newest checkpoint has. `close` it."""

    def __init__(self, located: Located, params: Mapping[str, Any], kept: CompletedCheckpoint) -> None:
        """Raises what sources raise that cannot be read."""
        self._opened = contextlib.ExitStack()
        self._spouts: list[tuple[str, Spout[Any, Any]]] = []
        #: when each is to be read again, where it has said so
        self._due: dict[int, float] = {}
        self._sources: list[tuple[str, _Splits]] = []
        try:
            plan = located.build(dict(params)).plan()
            for name, unit in plan.units.items():
                if unit.spout is not None:
                    self._open(located, params, unit, kept.units.get(name))
        except BaseException:
            self.close()
            raise

    def _open(self, located: Located, params: Mapping[str, Any], unit: UnitPlan, before: CompletedUnit | None) -> None:
        if before is not None and before.finished:
            return
        if isinstance(unit.spout, SplitSource):
            self._sources.append((unit.name, _Splits(unit.spout, _context(unit.name, 0, 1), before, self._opened)))
            return
        parts = before.parallelism if before is not None else unit.parallelism
        for part in range(parts):
            # Each part is an object of its own, as in the run.
            spout = located.build(dict(params)).plan().units[unit.name].spout
            assert spout is not None
            spout.context = _context(unit.name, part, parts)
            self._opened.callback(spout.close)
            spout.open(spout.context)
            packed = before.positions.get(part) if before is not None else None
            if packed is not None:
                position, *_ = Codec().unpack(packed)
                spout.seek(position)
            self._spouts.append((unit.name, spout))

    def found(self) -> str | None:
        """Return the name of a unit for which there is input, or that has come to its end; None: there is none. Raises what sources raise."""
        for number, (name, spout) in enumerate(self._spouts):
            if time.time() < self._due.get(number, 0.0):
                continue
            if _gives(spout):
                return name
            self._due[number] = spout.next_due() or 0.0
        return next((name for name, splits in self._sources if splits.found()), None)

    def close(self) -> None:
        """Close all sources."""
        self._opened.close()


def _context(unit: str, part: int, parts: int) -> Context:
    return Context(unit, part=part, parts=parts, logger=logging.getLogger("esault.scale_to_zero"))


def _gives(source: Spout[Any, Any] | SplitReader[Any, Any]) -> bool:
    try:
        return bool(source.read(1))
    except EndOfStream:
        return True


class _Splits:
    """The splits of one source that have not ended, and those that are new."""

    def __init__(
        self,
        source: SplitSource[Any, Any],
        context: Context,
        before: CompletedUnit | None,
        opened: contextlib.ExitStack,
    ) -> None:
        source.context = context
        opened.callback(source.close)
        source.open(context)
        self._source = source
        self._known = set() if before is None else set(before.splits)
        self._readers: list[SplitReader[Any, Any]] = []
        self._next_at = 0.0
        for id, place in {} if before is None else before.splits.items():
            if not place.ended:
                position, *_ = Codec().unpack(place.position)
                reader = source.open_split(id, position)
                opened.callback(reader.close)
                self._readers.append(reader)

    def found(self) -> bool:
        """Return whether a split gives something, has ended, or is new."""
        if any(_gives(reader) for reader in self._readers):
            return True
        interval, now = self._source.discovery_interval, time.monotonic()
        if interval is None or now < self._next_at:
            return False
        self._next_at = now + interval
        return not self._known.issuperset(self._source.splits() or ())
