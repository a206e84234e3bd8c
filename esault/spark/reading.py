"""The next rows of a landed table for a job: none, the parts that came since it last read, or all of it.

No Spark and no disk in here but the table's log. What a job has read stands in the log of the table it makes
(`Entry.inputs`), in the very entry that makes its rows visible: there is no second place that could disagree after a
crash, and a job that begins again after one reads on where the last visible entry ends.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from esault.errors import SinkError
from esault.sinks.landing.entry import Entry, Input, Part, encode
from esault.sinks.landing.schema import Schema
from esault.sinks.landing.state import TableState

__all__ = ["Log", "Reading", "mark_of", "noted", "read_next", "read_of"]


class Log(Protocol):
    """The interface of a table's log; `CommitLog` is one."""

    def at(self, version: int | None = None) -> TableState:
        """The state at a version, the newest by default. SinkError: no such version, or no longer."""
        ...

    def entries(self, after: int, until: int) -> Iterable[tuple[int, Entry]]:
        """The entries `after` < version <= `until`. SinkError when one is gone."""
        ...


@dataclass(frozen=True)
class Reading:
    """A reading to do: `parts` of a table whose columns are `schema` at version `until`."""

    parts: tuple[Part, ...]
    schema: Schema
    #: parts may have other columns than `schema`
    evolved: bool
    #: no row stands in the table twice, up to `until`
    distinct: bool
    #: what will have been read then
    inputs: tuple[Input, ...]
    #: of increments: the runs that wrote the parts
    runs: frozenset[str] = frozenset()
    #: why all is read, and what the job has made before goes; None: the parts come on top of it
    why: str | None = None
    #: of each value of these columns the newest row counts; empty: all do
    primary_key: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows in the parts."""
        return sum(part.rows for part in self.parts)


def mark_of(entry: Entry) -> str:
    """Return the mark that tells an entry from another one with its number, in another life of the table."""
    return f"{zlib.crc32(encode(entry)):08x}"


def read_of(inputs: Iterable[Input], name: str) -> Input | None:
    """Return how far the table `name` was read; None: never."""
    return next((one for one in inputs if one.name == name), None)


def noted(inputs: Sequence[Input], name: str) -> Input | None:
    """Return what is noted under `name` behind the tables, of which one may be called so, too; None: nothing."""
    return next((one for one in reversed(inputs) if one.name == name), None)


def read_next(
    name: str, log: Log, done: tuple[Input, ...], rules: str, until: int | None = None, full: bool = False
) -> Reading | None:
    """Return what comes after `done`; None when there is nothing.

    `rules` names how the job treats rows: when it changes all is read again. `until`: no further than that version (the
    newest by default). `full`: read all, whatever is done. SinkError when the table cannot be read.
    """
    state = log.at(until)
    before = read_of(done, name)
    why = "it is the first time" if before is None else "it was asked for" if full else None
    added: list[Part] = []
    runs: set[str] = set()
    if before is not None and why is None:
        why, added, runs = _since(name, log, before, state.version)
        if why is None and noted(done, "rules") != Input("rules", 0, rules):
            why = "what it is to do has changed"
        if why is None and not added:
            return None
        if why is None and state.primary_key:
            why = f"{name} has a row for each {', '.join(state.primary_key)}, and those of before may be others now"
    if why is not None:
        assert state.files is not None
        added = list(state.files.values())
    ((_, last),) = log.entries(state.version - 1, state.version)
    inputs: tuple[Input, ...] = (Input(name, state.version, mark_of(last)), Input("rules", 0, rules))
    if full and done:  # who reads it whole sees by this that it is another table now
        before = noted(done, "full")
        inputs += (Input("full", 1 if before is None else before.version + 1),)
    key = state.primary_key
    return Reading(tuple(added), state.schema, state.evolved, state.distinct, inputs, frozenset(runs), why, key)


def _since(name: str, log: Log, before: Input, until: int) -> tuple[str | None, list[Part], set[str]]:
    """The parts that came after `before` and their runs, or why that cannot be told.

    Parts that were compacted since are read in their new form, unless that also holds rows that were read before: then
    in the old one, whose files stay for long enough (see `vacuum`).
    """
    if before.version > until:
        return f"{name} was made anew", [], set()
    try:
        entries = list(log.entries(before.version - 1, until))
    except SinkError:
        return f"the log of {name} no longer tells what came after version {before.version}", [], set()
    if mark_of(entries[0][1]) != before.mark:
        return f"{name} was made anew", [], set()
    unread: dict[str, Part] = {}
    runs: set[str] = set()
    for _, entry in entries[1:]:
        if entry.kind == "replace":
            return f"{name} was replaced", [], set()
        if entry.kind == "rows":
            runs |= {entry.run or ""}
            if not set(entry.remove) <= unread.keys():
                return f"rows of {name} were changed", [], set()
        elif not set(entry.remove) <= unread.keys():
            continue
        for path in entry.remove:
            del unread[path]
        unread.update((part.path, part) for part in entry.add)
    return None, list(unread.values()), runs
