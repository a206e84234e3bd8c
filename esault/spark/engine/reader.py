"""A spout in a worker: it gives the tuples from one position on, as many as the driver counted."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, KeysView, ValuesView
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from esault.errors import SourceError
from esault.flow.operators.batch_emitter import BatchEmitter
from esault.flow.operators.user_error import described
from esault.flow.worker.spout_reader import reads_by
from esault.payload.codec import Codec
from esault.payload.column import is_array, plain
from esault.spark.engine.job import Job
from esault.spark.engine.runner import Runner
from esault.spark.engine.runners import Runners
from esault.spark.engine.source_part import spools
from esault.spark.engine.worker_error import WorkerError
from esault.state.spool import SpoolReader, spool_folder
from esault.topology.columns import Columns
from esault.topology.spout import EndOfStream, Spout

__all__ = ["read_range"]

#: tuples that a spout is asked for at a time
READ_ROWS = 2048
#: seconds that tuples may be late that the driver has seen already
PATIENCE = 60.0

#: (run, unit, part) -> (row that comes next, spout, rows from that one on that it has given already) of those that were read here last
_HERE: dict[tuple[str, str, int], tuple[int, Spout[Any, Any], Any]] = {}


def read_range(job: Job, runners: Runners, frame: Any) -> Iterator[None]:
    """Read a range of rows and push them through what stands behind the spout, step by step. Raises WorkerError."""
    _, unit, part, row, position, count, marks, _, _ = frame
    place = (job.run, unit, part)
    for other in [p for p in _HERE if p[0] != job.run]:
        _close(other[1], _HERE.pop(other)[1])
    at, spout, rest = _HERE.pop(place, (-1, None, ()))
    if spout is None or at != row:
        if spout is not None:
            _close(unit, spout)
        spout, rest = _opened(job, runners.root, part, position, row), ()
    end = row + count
    marks = [*marks, (end, 0.0)]
    try:
        for (at, due), (last, _) in pairwise(marks):
            first = max(at, row)
            while first < last:
                rows = _read_full(spout, unit, min(READ_ROWS, last - first), rest)
                rows, rest = _divided(rows, last - first)
                _push(runners.root, spout, part, first, due, rows)
                first += len(rows)
                yield
    except BaseException:
        _close(unit, spout)  # another one is opened for what is done again
        raise
    _HERE[place] = (end, spout, rest)


def _divided(rows: Any, count: int) -> tuple[Any, Any]:
    """The first so many rows, and the rest.

    A source may give more than it was asked for, such as all tuples of so many lines. The driver has counted by its own reads: what
    lies behind the range comes with the next one, or from the position that stands there.
    """
    if len(rows) <= count:
        return rows, ()
    if not isinstance(rows, Columns):
        return rows[:count], rows[count:]
    keys, values = rows.keys, rows.values
    parts = [
        Columns(None if keys is None else _sliced(keys, first, last), _sliced(values, first, last))
        for first, last in ((0, count), (count, len(rows)))
    ]
    return parts[0], parts[1]


def _sliced(column: Any, first: int, last: int) -> Any:
    if hasattr(column, "to_pylist"):  # of Arrow
        return column.slice(first, last - first)
    return (list(column) if isinstance(column, (KeysView, ValuesView)) else column)[first:last]


def _close(unit: str, spout: Spout[Any, Any]) -> None:
    """Close one that is needed no more; an error is told and ends nothing: it may be of a run that is over."""
    try:
        spout.close()
    except Exception as error:
        print(f"unit {unit!r}, close: {described(error)}", file=sys.stderr)


def _opened(job: Job, runner: Runner, part: int, position: bytes | None, row: int) -> Spout[Any, Any]:
    unit = job.fresh_plan().units[runner.plan.name]
    spout = unit.spout
    assert spout is not None
    if spools(unit):
        spout = SpoolReader(spool_folder(Path(job.shared), unit.name, part))
    spout = spout.without_pace()  # what the driver has seen is due by now
    spout.context = runner.context
    name = unit.name
    _call(name, "open", lambda: spout.open(runner.context))
    if position is not None:
        value = Codec().unpack(position)
        _call(name, "seek", lambda: spout.seek(value))
    return spout


def _read_full(spout: Spout[Any, Any], unit: str, limit: int, before: Any = ()) -> Any:
    """Read so many rows, which begin with those of `before`: where a source stops for a moment must not show in what is sent. Columns of a user's come as they are given."""
    rows = before if len(before) else _read(spout, unit, limit)
    if reads_by(type(spout)) == "read_columns":  # lists, of a source in the box
        while len(rows) < limit:
            more = _read(spout, unit, limit - len(rows))
            rows = Columns(None if rows.keys is None else [*rows.keys, *more.keys], [*rows.values, *more.values])
        return rows
    while not isinstance(rows, Columns) and len(rows) < limit:
        more = _read(spout, unit, limit - len(rows))
        if isinstance(more, Columns):
            more = list(zip(plain(more.keys), plain(more.values)))
        rows = [*rows, *more]
    return rows


def _read(spout: Spout[Any, Any], unit: str, limit: int) -> Any:
    until = time.monotonic() + PATIENCE
    read = getattr(spout, reads_by(type(spout)))
    while True:
        try:
            rows = _call(unit, "read", lambda: read(limit))
        except EndOfStream:
            rows = None
        if rows:
            return rows
        if rows is None or time.monotonic() > until:
            raise WorkerError(
                f"unit {unit!r}: {type(spout).__name__} gave the driver tuples that it does not give a worker from the same "
                "position; on Spark a source must be there for all workers, and give the same tuples again after seek(position)"
            )
        time.sleep(0.01)


def _push(runner: Runner, spout: Spout[Any, Any], part: int, first: int, due: float, rows: Any) -> None:
    name = runner.plan.name
    emitter = runner.emitter
    assert isinstance(emitter, BatchEmitter)
    if isinstance(rows, Columns):
        keys, values = _call(name, "read", lambda: emitter.columns(rows.keys, rows.values))
    else:
        try:
            keys, values = zip(*rows)
        except (TypeError, ValueError):
            raise WorkerError(
                f"unit {name!r}: {type(spout).__name__}.read must return (key, value) pairs, got {rows[0]!r}"
            ) from None
        if not emitter.trusted:
            for key, value in zip(keys, values):
                _call(name, "read", partial(emitter.check, key, value))
    ids = None
    if runner.plan.wants_id:
        ids = [f"{name}.{part}:{i}" for i in range(first, first + len(keys))]
    if not (is_array(keys) or is_array(values)):
        keys, values = list(keys), list(values)
    runner.push("", due, keys, values, ids)


def _call(unit: str, hook: str, call: Any) -> Any:
    try:
        return call()
    except EndOfStream:
        raise
    except SourceError as error:
        raise WorkerError(f"unit {unit!r}: {error}") from None
    except Exception as error:
        raise WorkerError(f"unit {unit!r}, {hook}: {described(error)}") from None
