"""The contracts of spouts and sinks as checks to run on one's own: what the engine relies on, also after a crash.

Plain functions that raise AssertionError: they work in any test framework, and in none.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from esault.payload.codec import Codec
from esault.testing.sink_contract import check_sink
from esault.testing.split_contract import check_splits, pairs
from esault.topology.context import Context
from esault.topology.split_source import SplitSource
from esault.topology.spout import EndOfStream, Spout, has_position, is_acknowledged

__all__ = ["check_sink", "check_spout"]

#: what reads ask for, in turns: each of these is one way to read the whole
_LIMITS = ((1000,), (1,), (3, 1, 7), (100, 2))


class _Clock:
    """Each look at it is ten seconds later, so that a spout that waits for time has nothing to wait for."""

    def __init__(self) -> None:
        self._now = 1e9

    def __call__(self) -> float:
        self._now += 10
        return self._now


def check_spout(
    make: Callable[[], Spout[Any, Any]],
    *,
    order: str = "all",
    parts: int = 3,
    positions: int = 25,
    idle: int = 60,
    now: Callable[[], Callable[[], float]] = _Clock,
    grow: Callable[[], object] | None = None,
    repeats: bool = False,
) -> int:
    """Check that a spout keeps what the engine relies on, and return the number of its rows. Raises AssertionError, which names the law.

    `make` returns a new spout, not opened, over the same data each time: a few dozen rows are plenty. `order="key"`: only the
    order of rows with the same key is the same each time. `parts`: sub-units to divide it among, where it says `parallel`.
    `positions`: as many are gone on from, evenly chosen. `idle`: so many empty reads in a row are the end of a spout that
    never ends. `now` makes the clock that the spout finds in its context, in seconds. `repeats`: of one that is acknowledged, and gives no
    names, all may come again behind a kill: at least once.

    The laws: making, checking and copying one opens nothing; `read(limit)` gives `limit` rows at most, and the same rows whatever the
    limits are; between reads every other hook may be called, and changes nothing; nothing comes before the time that `next_due` names. Of one with positions: there is one before the
    first read; one can travel; right after `seek` the position is the one that was sought; behind `seek` come the rows that came
    behind that position, no more and no less, and none behind the end. Of one that is acknowledged and cannot seek: where the one before was
    killed, and nothing acknowledged, a new one is told the last position that was kept, by `commit` right behind `open`. Rows before it do
    not come again, or by `row_ids` have the names that they had. Of one with parts: together they have each row once.

    Of a `SplitSource`: all objects name the same splits, each once; each split keeps the laws of positions; splits that are read in several
    objects, and handed over from one to another, have each row once. `grow` adds a split outside: an object that is open names it then.
    """
    made = make()
    if isinstance(made, SplitSource):
        return check_splits(make, now, grow, parts, positions, idle)  # type: ignore[arg-type]
    assert grow is None, f"grow is for a SplitSource, which {type(made).__name__} is not"
    return _Checked(make, order, positions, idle, now, repeats).check(parts)


class _Checked:
    def __init__(
        self,
        make: Callable[[], Spout[Any, Any]],
        order: str,
        positions: int,
        idle: int,
        now: Callable[[], Callable[[], float]],
        repeats: bool,
    ) -> None:
        assert order in ("all", "key"), f"order={order!r}: write 'all' or 'key'"
        self._make, self._by_key, self._positions, self._idle, self._now = make, order == "key", positions, idle, now
        self._repeats = repeats

    def check(self, parts: int) -> int:
        made = self._make()
        assert isinstance(made, Spout), f"make() returned {made!r}, which is no Spout"
        whole = self._all(made)
        self._same(
            self._all(copy.deepcopy(self._make())), whole, "a copy of a spout that was not opened reads the same"
        )
        for limits in _LIMITS[1:]:
            rows = self._all(self._make(), limits)
            self._same(rows, whole, f"the same rows come whatever the limits are: limits {limits} in turn")
        if has_position(made):
            for limits in _LIMITS:
                self._check_positions(limits)
        elif is_acknowledged(made):
            for limits in _LIMITS:
                self._check_acknowledged(limits)
        if made.parallel:
            divided = [row for part in range(parts) for row in self._all(self._make(), part=part, parts=parts)]
            assert sorted(map(repr, divided)) == sorted(map(repr, whole)), (
                f"{parts} parts have each row once between them: {_differing(divided, whole)}"
            )
        return len(whole)

    def _check_positions(self, limits: Sequence[int]) -> None:
        spout = self._opened(self._make())
        places: list[tuple[int, Any]] = [(0, _travelled(spout.position(), "before the first read"))]
        rows: list[Any] = []
        for portion in self._portions(spout, limits):
            rows += portion
            places.append((len(rows), _travelled(spout.position(), f"behind row {len(rows)}")))
        places.append((len(rows), _travelled(spout.position(), "at the end")))
        spout.close()
        for count, position in [*places[:: max(1, len(places) // self._positions)], places[-1]]:
            self._go_on(position, rows[:count], rows, limits)

    def _check_acknowledged(self, limits: Sequence[int]) -> None:
        places: list[tuple[int, Any]] = []
        rows, names = self._named(self._make(), limits, places)
        for count, position in places[:: max(1, len(places) // self._positions)]:
            known = set(names[:count]) - {None}
            again, called = self._named(self._make(), limits, [], told=[position])
            if self._repeats:
                behind = again[max(0, len(again) - len(rows) + count) :]
                self._same(
                    behind, rows[count:], f"told commit({position!r}) right behind open, all rows behind it come"
                )
                continue
            after = [row for row, name in zip(again, called) if name is None or name not in known]
            law = (
                f"told commit({position!r}) right behind open, rows before it come not, or by row_ids with their names"
            )
            self._same(rows[:count] + after, rows, law)

    def _named(
        self, spout: Spout[Any, Any], limits: Sequence[int], places: list[tuple[int, Any]], told: Sequence[Any] = ()
    ) -> tuple[list[Any], list[str | None]]:
        """Return all rows and their names, None where it names none; `places`: where it stood behind how many rows. Nothing is acknowledged."""
        self._opened(spout)
        for position in told:
            spout.commit(position)
        rows: list[Any] = []
        names: list[str | None] = []
        named = type(spout).row_ids is not Spout.row_ids
        for portion in self._portions(spout, limits, acknowledges=False):
            rows += portion
            ids: Sequence[str] | None = spout.row_ids() if named else None
            assert ids is None or len(ids) == len(portion), (
                f"row_ids names each row of the last read: {len(portion)} rows, {len(ids or ())} names"
            )
            names += [None] * len(portion) if ids is None else ids
            if portion:
                places.append((len(rows), _travelled(spout.position(), f"behind row {len(rows)}")))
        spout.close()
        return rows, names

    def _go_on(self, position: Any, before: list[Any], whole: list[Any], limits: Sequence[int]) -> None:
        """Seek this position, be killed before anything was read, seek what was told then, and read on from there."""
        spout = self._opened(self._make())
        spout.seek(_travelled(position, "sought"))
        found = _travelled(spout.position(), "right after seek")
        assert found == position, (
            f"right after seek the position is what was sought: sought {position!r}, and position() says {found!r}"
        )
        spout.close()
        spout = self._opened(self._make())
        spout.seek(found)
        after = [row for portion in self._portions(spout, limits) for row in portion]
        spout.close()
        self._same(before + after, whole, f"behind seek({position!r}) come the rows that came behind that position")

    def _all(
        self, spout: Spout[Any, Any], limits: Sequence[int] = _LIMITS[0], part: int = 0, parts: int = 1
    ) -> list[Any]:
        self._opened(spout, part, parts)
        rows = [row for portion in self._portions(spout, limits) for row in portion]
        spout.close()
        return rows

    def _opened(self, spout: Spout[Any, Any], part: int = 0, parts: int = 1) -> Spout[Any, Any]:
        spout.check()
        spout.context = Context("spout", part=part, parts=parts, now=self._now())
        spout.open(spout.context)
        return spout

    def _portions(
        self, spout: Spout[Any, Any], limits: Sequence[int], acknowledges: bool = True
    ) -> Iterator[list[Any]]:
        """Yield what each read gives, with all other hooks called between; ends where the stream does, or with many empty reads."""
        empty, turn, positioned, nothing_before = 0, 0, acknowledges and is_acknowledged(spout), 0.0
        while empty < self._idle:
            limit = limits[turn % len(limits)]
            turn += 1
            try:
                given = spout.read(limit)
            except EndOfStream:
                break
            assert given is not None, "read returned None: return [] when there is nothing yet"
            rows = pairs(given)
            assert len(rows) <= limit, f"read({limit}) gave {len(rows)} rows"
            empty = 0 if rows else empty + 1
            if rows:
                now = spout.context.now()
                assert now >= nothing_before, (
                    f"next_due() said that there is nothing before {nothing_before!r}, and read gave rows at {now!r}"
                )
                due = spout.due()
                assert due is None or isinstance(due, (int, float)), (
                    f"due() is {due!r}: seconds since the epoch, or None"
                )
            coming = spout.next_due()
            assert coming is None or isinstance(coming, (int, float)), (
                f"next_due() is {coming!r}: seconds since the epoch, or None"
            )
            nothing_before = coming or 0.0
            if positioned and turn % 3 == 0:
                spout.commit(spout.position())
            progress, lag = spout.progress(), spout.lag()
            assert progress is None or 0 <= progress[0] <= progress[1], (
                f"progress() is {progress!r}: (read, total), or None"
            )
            assert lag is None or (type(lag) is int and lag >= 0), f"lag() is {lag!r}: a number of tuples, or None"
            yield rows

    def _same(self, rows: list[Any], whole: list[Any], law: str) -> None:
        if self._by_key:
            assert _equal(_by_key(rows), _by_key(whole)), f"{law}: {_differing(rows, whole)}"
        else:
            assert _equal(rows, whole), f"{law}: {_differing(rows, whole)}"


def _by_key(rows: list[Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return found


def _equal(one: Any, other: Any) -> bool:
    """Return whether these are the same rows; arrays, which say for each element whether they are equal, are by what they hold."""
    try:
        return bool(one == other)
    except ValueError:
        return Codec().pack_value(one) == Codec().pack_value(other)


def _travelled(position: Any, when: str) -> Any:
    """Return the position as it comes out of a checkpoint."""
    try:
        return Codec().unpack(Codec().pack_value(position))
    except Exception as error:
        raise AssertionError(f"a position can travel: {when} it is {position!r}: {error}") from error


def _differing(rows: list[Any], whole: list[Any]) -> str:
    """Say where two lists part."""
    at = next(
        (i for i, (one, other) in enumerate(zip(rows, whole)) if not _equal(one, other)), min(len(rows), len(whole))
    )
    return f"{len(rows)} rows, {len(whole)} expected; from row {at} on {rows[at : at + 3]!r}, expected {whole[at : at + 3]!r}"
