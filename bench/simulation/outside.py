"""The world outside of the engine: sources that give rows in virtual time, and tables that outlive every process.

A table checks what sinks are promised: what is committed was prepared, and what was forgotten is never committed.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.simulation.events import Events
from bench.simulation.history import History
from esault.topology.plan import Outlet, SinkPlan, UnitPlan
from esault.topology.sink import Row, Sink
from esault.topology.spout import EndOfStream, Spout

__all__ = ["Broken", "Outside", "Paced", "Table", "with_tables"]


class Broken(Exception):
    """A promise was broken."""


class Paced(Spout[Any, Any]):
    """Rows that come to be one after the other, each at its time."""

    def __init__(self, rows: Sequence[tuple[Any, Any]], times: Sequence[float], events: Events) -> None:
        self._rows, self._times, self._events = rows, times, events
        self._next = 0

    def read(self, limit: int) -> Sequence[tuple[Any, Any]]:
        if self._next >= len(self._rows):
            raise EndOfStream
        there = bisect_right(self._times, self._events.now)
        rows = self._rows[self._next : min(there, self._next + limit)]
        self._next += len(rows)
        return rows

    def next_at(self) -> float:
        """Return when there is something to read, in seconds of the simulation."""
        return self._times[self._next] if self._next < len(self._rows) else 0.0

    def position(self) -> int:
        return self._next

    def seek(self, position: int) -> None:
        self._next = position


class Table:
    """A place that a sink writes to: rows are prepared, then committed; all of it is durable."""

    def __init__(self, name: str, kind: str, outside: Outside) -> None:
        self.name, self.kind, self.outside = name, kind, outside
        self._prepared: dict[int, list[Row]] = {}
        self._committed: set[int] = set()
        self._forgotten: set[int] = set()
        #: rows that can be seen, in the order in which they came to be
        self.rows: list[Row] = []
        #: rows that are missing, by rights: forgotten before they were committed
        self._handles = 0

    def prepare(self, rows: list[Row]) -> int:
        """Make rows durable, and return their handle."""
        self._handles += 1
        self._prepared[self._handles] = rows
        return self._handles

    def commit(self, handle: int) -> None:
        """Show them; a second time changes nothing. Raises Broken for rows that were given up."""
        if handle in self._forgotten:
            raise Broken(f"table {self.name}: {handle} is committed, and was forgotten before")
        if handle not in self._committed:
            self._committed.add(handle)
            self.rows.extend(self._prepared.pop(handle))

    def forget(self, kept: Sequence[int]) -> None:
        """Let go of all that is prepared but these."""
        for handle in [each for each in self._prepared if each not in kept]:
            self._forgotten.add(handle)
            del self._prepared[handle]


class Outside:
    """All tables of a simulation, and whether they can be reached."""

    def __init__(self, events: Events, history: History) -> None:
        self.events, self.history = events, history
        self.tables: dict[str, Table] = {}
        #: until when what is asked of them fails
        self.away_until = 0.0

    def table(self, name: str, kind: str) -> Table:
        """Return the table of this name, which is made where it is asked for first."""
        if name not in self.tables:
            self.tables[name] = Table(name, kind, self)
        return self.tables[name]

    def ask(self) -> None:
        """Raise OSError where they cannot be reached just now."""
        if self.events.now < self.away_until:
            self.history.counts["errors of sinks"] += 1
            raise OSError(errno.ENOSPC, "No space left on device")


class _TableSink(Sink):
    """The base of all sinks of tables: rows are staged in memory until `prepare`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._staged: list[Row] = []

    def __deepcopy__(self, memo: Any) -> _TableSink:
        return type(self)(self._table)

    def write(self, rows: Sequence[Row]) -> None:
        self._table.outside.ask()
        self._staged.extend(rows)

    def prepare(self, epoch: int) -> int:
        self._table.outside.ask()
        handle = self._table.prepare(self._staged)
        self._staged = []
        return handle

    def forget_staged(self, kept: Sequence[Any] = ()) -> None:
        self._table.forget(kept)


class StagedSink(_TableSink):
    """Each sub-unit commits what it has prepared."""

    def commit(self, epoch: int, handle: int) -> None:
        self._table.outside.ask()
        self._table.commit(handle)


class WholeSink(_TableSink):
    """One place commits a checkpoint for the whole run."""

    def commit_all(self, epoch: int, handles: Sequence[int]) -> None:
        self._table.outside.ask()
        for handle in handles:
            self._table.commit(handle)

    def commit(self, epoch: int, handle: int) -> None:
        self._table.outside.ask()
        self._table.commit(handle)


class PlainSink(Sink):
    """Rows can be seen as they come."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def write(self, rows: Sequence[Row]) -> None:
        self._table.outside.ask()
        self._table.rows.extend(rows)


KINDS = {"staged": StagedSink, "whole": WholeSink, "plain": PlainSink}


def with_tables(unit: UnitPlan, outside: Outside, kinds: Mapping[str, str]) -> UnitPlan:
    """Return the unit, chained bolts included, with sinks that write to tables in place of its own; `kinds` by the sink's name."""

    def kept(outlet: Outlet) -> Outlet:
        sinks = []
        for sink in outlet.sinks:
            kind = kinds.get(sink.name, "staged")
            sinks.append(SinkPlan(sink.name, KINDS[kind](outside.table(sink.name, kind))))
        return replace(
            outlet,
            sinks=tuple(sinks),
            branches=tuple(map(kept, outlet.branches)),
            bolts=tuple(with_tables(bolt, outside, kinds) for bolt in outlet.bolts),
        )

    return replace(unit, streams={stream: kept(outlet) for stream, outlet in unit.streams.items()})
