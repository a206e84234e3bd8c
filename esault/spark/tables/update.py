"""The next update of a table: the rows of its streams that are new, or all of them, and the state of what it reads whole.

No Spark in here. What an update has read stands in the log entry that shows its rows, as for other jobs (`reading`).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from esault.errors import SinkError
from esault.sinks.landing import table_log
from esault.sinks.landing.entry import Input, Part
from esault.sinks.landing.schema import Schema
from esault.sinks.landing.state import TableState
from esault.spark.reading import noted, read_next, read_of

__all__ = ["Rows", "Update", "next_update", "resumed"]


@dataclass(frozen=True)
class Rows:
    """Rows of a table to be read: those of the parts `names` in `folder`."""

    folder: str
    names: tuple[str, ...]
    count: int
    schema: Schema
    evolved: bool


@dataclass(frozen=True)
class Update:
    """One update to make."""

    #: table -> what is read of it
    rows: Mapping[str, Rows]
    #: what will have been read then
    inputs: tuple[Input, ...]
    #: why the table is made anew; None: what comes of the rows is added to it
    why: str | None
    #: the tables whose new rows are read
    stream: tuple[str, ...]

    @property
    def count(self) -> int:
        """Rows of the streams; of a table without any, all rows that are read."""
        return sum(rows.count for name, rows in self.rows.items() if name in self.stream or not self.stream)

    @property
    def parts(self) -> int:
        """Parts that they stand in."""
        return sum(len(rows.names) for name, rows in self.rows.items() if name in self.stream or not self.stream)


def next_update(
    folders: Mapping[str, str],
    stream: Sequence[str],
    rules: str,
    done: tuple[Input, ...],
    full: bool = False,
    until: tuple[Input, ...] | None = None,
) -> Update | None:
    """The next update of a table that reads the tables in `folders` (by name); None: it is up to date.

    `done`: what it has read. `until`: no further than that. SinkError when a table cannot be read, or no longer until then.
    """
    why = None
    for _ in range(2):
        read = {}
        inputs: list[Input] = []
        new = False
        for name in stream:
            stop = None if until is None else read_of(until, name)
            log = table_log(folders[name])
            reading = read_next(name, log, done, rules, None if stop is None else stop.version, full or why is not None)
            state = log.at(None if stop is None else stop.version)
            newest = state if stop is None else log.at()
            if reading is not None and not _there(folders[name], reading.parts, newest):
                if stop is not None:
                    raise SinkError(
                        f"parts that {name} had are gone, since they were put together with others: `esault analyze --full` "
                        "makes all anew"
                    )
                reading = read_next(name, log, done, rules, None, True)
                assert reading is not None
                reading = replace(reading, why=f"parts of {name} are gone, since they were put together with others")
            if reading is None:
                before = read_of(done, name)
                assert before is not None
                inputs.append(before)
                read[name] = Rows(folders[name], (), 0, state.schema, state.evolved)
                continue
            new = True
            if reading.why is not None and why is None:
                why = reading.why
            inputs.append(reading.inputs[0])
            names = tuple(part.path for part in reading.parts)
            read[name] = Rows(folders[name], names, reading.rows, reading.schema, reading.evolved)
        if why is None or full or len(stream) < 2:
            break  # else each of the streams is read whole
    whole = [name for name in folders if name not in stream]
    for name in whole:
        state = table_log(folders[name]).at()
        assert state.files is not None
        inputs.append(_as_it_is(name, state))
        count = sum(part.rows for part in state.files.values())
        read[name] = Rows(folders[name], tuple(state.files), count, state.schema, state.evolved)
    if not stream:
        why = _why_anew(inputs, rules, done, full)
        new = why is not None
    if not new:
        return None
    return Update(read, (*inputs, Input("rules", 0, rules)), why, tuple(stream))


def _there(folder: str, parts: Iterable[Part], now: TableState) -> bool:
    """Tell whether parts can still be read; those that were put together with others are vacuumed some day."""
    kept = now.files or {}
    return all(part.path in kept or os.path.exists(os.path.join(folder, part.path)) for part in parts)


def _as_it_is(name: str, state: TableState) -> Input:
    """All of a table: told by what it was made of, so that a compaction is no change."""
    return Input(name, 0, f"{zlib.crc32(repr((state.inputs, state.schema)).encode()):08x}")


def _why_anew(inputs: Sequence[Input], rules: str, done: tuple[Input, ...], full: bool) -> str | None:
    if not done:
        return "it is the first time"
    if full:
        return "it was asked for"
    if noted(done, "rules") != Input("rules", 0, rules):
        return "what it is to do has changed"
    changed = [one.name for one in inputs if read_of(done, one.name) != one]
    return f"{', '.join(changed)} changed" if changed else None


def resumed(
    folders: Mapping[str, str], stream: Sequence[str], rules: str, done: tuple[Input, ...], begun: tuple[Input, ...]
) -> Update | None:
    """The update that was interrupted when it had read `begun`; None when that can no longer be told."""
    if not stream or not done:
        return None
    try:
        update = next_update(folders, stream, rules, done, until=begun)
    except SinkError:
        return None
    return update if update is not None and update.why is None and update.inputs == begun else None
