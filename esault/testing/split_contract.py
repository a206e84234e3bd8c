"""The contract of sources of splits as a check: each split is the same rows, in whichever object it is read."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

from esault.payload.codec import Codec
from esault.payload.column import plain
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.split_source import SplitReader, SplitSource
from esault.topology.spout import EndOfStream

__all__ = ["check_splits", "pairs"]

#: what reads ask for, in turns
_LIMITS = ((1000,), (1,), (3, 1, 7))

#: (key, value, name) of a row; the name is its number in the split where the reader gives none
_Row = tuple[Any, Any, str]


def check_splits(
    make: Callable[[], SplitSource[Any, Any]],
    now: Callable[[], Callable[[], float]],
    grow: Callable[[], object] | None,
    parts: int,
    positions: int,
    idle: int,
) -> int:
    """Check a source of splits, and return the number of its rows; see `check_spout`. Raises AssertionError."""
    return _Checked(make, now, idle).check(grow, parts, positions)


def pairs(given: Any) -> list[Any]:
    """Return what a read gave as pairs of plain objects, whether it came as rows or as columns, also those of Arrow."""
    if not isinstance(given, Columns):
        return list(given)
    keys = [None] * len(given) if given.keys is None else plain(given.keys)
    return list(zip(keys, plain(given.values)))


class _Checked:
    def __init__(
        self, make: Callable[[], SplitSource[Any, Any]], now: Callable[[], Callable[[], float]], idle: int
    ) -> None:
        self._make, self._now, self._idle = make, now, idle

    def check(self, grow: Callable[[], object] | None, parts: int, positions: int) -> int:
        source = self._opened(copy.deepcopy(self._make()))
        ids = self._ids(source)
        assert self._ids(self._opened(self._make())) == ids, "splits() names the same splits in another object"
        whole = {id: self._read(source.open_split(id, None), _LIMITS[0]) for id in ids}
        for id in ids:
            self._check_split(id, whole[id], positions)
        self._check_parts(ids, whole, max(1, min(parts, len(ids))))
        if grow is not None:
            self._check_growth(source, ids, grow)
        source.close()
        return sum(map(len, whole.values()))

    def _check_split(self, id: str, whole: list[_Row], positions: int, added: bool = False) -> None:
        for limits in _LIMITS:
            source = self._opened(self._make())
            reader = source.open_added_split(id) if added else source.open_split(id, None)
            places: list[tuple[int, Any]] = [(0, _travelled(id, reader.position()))]
            rows: list[_Row] = []
            for portion in self._portions(reader, limits):
                rows += _named(reader, portion, len(rows))
                places.append((len(rows), _travelled(id, reader.position())))
            _same(rows, whole, f"split {id!r} gives the same rows whatever the limits are: limits {limits} in turn")
            for count, position in [*places[:: max(1, len(places) // positions)], places[-1]]:
                # The one before was killed: it is not closed.
                again = self._opened(self._make()).open_split(id, position)
                found = _travelled(id, again.position())
                assert found == position, (
                    f"split {id!r}: opened at {position!r}, its position is that one, and position() says {found!r}"
                )
                rest = self._read(again, limits, count)
                _same(whole[:count] + rest, whole, f"split {id!r}: opened at {position!r} it gives the rows behind it")
            reader.close()
            source.close()

    def _check_parts(self, ids: Sequence[str], whole: dict[str, list[_Row]], parts: int) -> None:
        """Deal the splits out to several objects, read them in turns, and half way through hand each to another."""
        sources = [self._opened(self._make()) for _ in range(parts)]
        readers = {id: source.open_split(id, None) for id, source in zip(ids, cycle(sources))}
        rows: dict[str, list[_Row]] = {id: [] for id in ids}
        for id, reader in readers.items():
            for portion in self._portions(reader, (2,)):
                rows[id] += _named(reader, portion, len(rows[id]))
                if 2 * len(rows[id]) >= len(whole[id]):
                    break
        for id, source in zip(ids, cycle(sources[1:] + sources[:1])):
            position = _travelled(id, readers[id].position())
            readers[id].close()
            rows[id] += self._read(source.open_split(id, position), _LIMITS[0], len(rows[id]))
        for source in sources:
            source.close()
        for id in ids:
            _same(rows[id], whole[id], f"split {id!r}, handed over from one object to another, has each row once")

    def _check_growth(self, source: SplitSource[Any, Any], ids: Sequence[str], grow: Callable[[], object]) -> None:
        assert source.discovery_interval is not None, (
            f"{type(source).__name__} gets splits while it is read: it says discovery_interval, in seconds"
        )
        grow()
        after = self._ids(source)
        assert set(ids) <= set(after), (
            f"a split is named until it has been read: {sorted(set(ids) - set(after))!r} are gone"
        )
        fresh = [id for id in after if id not in ids]
        assert fresh, "splits() of an object that is open names what appeared while it is"
        for id in fresh:
            self._check_split(id, self._read(source.open_added_split(id), _LIMITS[0]), 3, added=True)

    def _opened(self, source: SplitSource[Any, Any]) -> SplitSource[Any, Any]:
        source.check()
        source.context = Context("spout", now=self._now())
        source.open(source.context)
        return source

    def _ids(self, source: SplitSource[Any, Any]) -> list[str]:
        while (found := source.splits()) is None:  # not known yet
            time.sleep(0.01)
        ids = list(found)
        assert all(isinstance(id, str) for id in ids), f"splits() returns the names of splits, each a str: {ids!r}"
        assert len(set(ids)) == len(ids), f"splits() names each split once: {ids!r}"
        return ids

    def _read(self, reader: SplitReader[Any, Any], limits: Sequence[int], before: int = 0) -> list[_Row]:
        rows: list[_Row] = []
        for portion in self._portions(reader, limits):
            rows += _named(reader, portion, before + len(rows))
        reader.close()
        return rows

    def _portions(self, reader: SplitReader[Any, Any], limits: Sequence[int]) -> Any:
        """Yield what each read gives, with all other hooks called between."""
        assert isinstance(reader, SplitReader), f"open_split returned {reader!r}, which is no SplitReader"
        empty = 0
        for limit in cycle(limits):
            try:
                given = reader.read(limit)
            except EndOfStream:
                return
            assert given is not None, "read returned None: return [] when there is nothing yet"
            rows = pairs(given)
            assert len(rows) <= limit, f"read({limit}) gave {len(rows)} rows"
            empty = 0 if rows else empty + 1
            if empty >= self._idle:
                return
            lag, due = reader.lag(), reader.due()
            assert lag is None or (type(lag) is int and lag >= 0), f"lag() is {lag!r}: a number of tuples, or None"
            assert due is None or isinstance(due, (int, float)), f"due() is {due!r}: seconds since the epoch, or None"
            reader.commit(reader.position())
            yield rows


def _named(reader: SplitReader[Any, Any], rows: list[Any], first: int) -> list[_Row]:
    ids = reader.row_ids() if rows else []
    if ids is None:
        ids = [str(first + i) for i in range(len(rows))]
    assert len(ids) == len(rows), (
        f"row_ids() gives a name for each of the {len(rows)} rows of the last read, got {len(ids)}"
    )
    return [(key, value, id) for (key, value), id in zip(rows, ids)]


def _travelled(id: str, position: Any) -> Any:
    try:
        return Codec().unpack(Codec().pack_value(position))
    except Exception as error:
        raise AssertionError(f"a position can travel: that of split {id!r} is {position!r}: {error}") from error


def _same(rows: list[_Row], whole: list[_Row], law: str) -> None:
    at = next((i for i, (one, other) in enumerate(zip(rows, whole)) if one != other), min(len(rows), len(whole)))
    assert rows == whole, (
        f"{law}: {len(rows)} rows, {len(whole)} expected; from row {at} on {rows[at : at + 3]!r}, expected {whole[at : at + 3]!r}"
    )
