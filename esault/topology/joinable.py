"""Joins of a stream with others: by window, by interval, with tables.

It is one module of over 300 lines: each method of a stream needs its parameters and their documentation in full, for
editors and type checkers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from esault.errors import TopologyError
from esault.topology.as_of_join import AsOfJoin
from esault.topology.draft import Draft, OutletDraft, UnitDraft
from esault.topology.error_policy import ErrorPolicy
from esault.topology.event_time import Idle
from esault.topology.grouping import Grouping, by_key
from esault.topology.interval_join import IntervalJoin, check_within
from esault.topology.join import LEFT, RIGHT, Join, check_keep, check_kind
from esault.topology.table_join import LEFT as TABLE_LEFT
from esault.topology.table_join import TABLE, UNMATCHED, TableJoin, check_missing
from esault.topology.tables_join import TablesJoin
from esault.topology.timed_bolt import Unwindowed
from esault.topology.unit_options import FAIL, UnitOptions, WindowOptions
from esault.topology.window import WindowKind

if TYPE_CHECKING:
    from esault.topology.stream import Stream

__all__ = ["Joinable", "join_in_windows"]

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")


class Joinable(Generic[K, V]):
    """The base of `Stream` that joins it with others."""

    _draft: Draft
    _outlet: OutletDraft

    def _outlets(self) -> list[OutletDraft]:
        return [self._outlet]

    @overload
    def join(
        self,
        name: str,
        other: Stream[K, W],
        window: WindowKind | None = None,
        *,
        within: tuple[float, float] | None = None,
        time: Callable[[Any], float] | tuple[Callable[[V], float] | None, Callable[[W], float] | None] | None = None,
        kind: Literal["inner"] = "inner",
        keep: str = "all",
        lateness: float | None = None,
        idle: float | Idle | None = None,
        ahead: float | None = None,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        buffer: int | None = None,
        overflow: str | None = None,
    ) -> Stream[K, tuple[V, W]]: ...

    @overload
    def join(
        self,
        name: str,
        other: Stream[K, W],
        window: WindowKind | None = None,
        *,
        within: tuple[float, float] | None = None,
        time: Callable[[Any], float] | tuple[Callable[[V], float] | None, Callable[[W], float] | None] | None = None,
        kind: str,
        keep: str = "all",
        lateness: float | None = None,
        idle: float | Idle | None = None,
        ahead: float | None = None,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        buffer: int | None = None,
        overflow: str | None = None,
    ) -> Stream[K, tuple[V | None, W | None]]: ...

    def join(
        self,
        name: str,
        other: Stream[K, W],
        window: WindowKind | None = None,
        *,
        within: tuple[float, float] | None = None,
        time: Callable[[Any], float] | tuple[Callable[[V], float] | None, Callable[[W], float] | None] | None = None,
        kind: str = "inner",
        keep: str = "all",
        lateness: float | None = None,
        idle: float | Idle | None = None,
        ahead: float | None = None,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        buffer: int | None = None,
        overflow: str | None = None,
    ) -> Stream[K, Any]:
        """Pair the tuples of one key that share a window, or whose times are near: values are `(left, right)`, left being of this stream.

        Args:
            window: what pairs share; or else
            within: `(before, after)`, seconds: a tuple of time t is paired with those of `other` from t - before to t + after, both
                included. The interval of each tuple is its own, and nothing falls between two windows.
            time: gives a value's time; a pair of functions where the two sides differ.
            kind: "inner"; "left" also emits `(left, None)` for what had no partner when its window closed, or the watermark passed
                its interval; "right" `(None, right)`, "outer" both.
            keep: "all" emits each pair as soon as it is there. "first" and "last" wait until the window closes, or the interval of
                a tuple of this stream has passed: then the earliest or latest tuple of each side of the window are a pair, or each
                tuple of this stream goes with the earliest or latest of the other.

        The rest as in `window`.
        """
        where = f"unit {name!r}"
        right = _other(self, where, other, "join a stream with another of its topology")
        times = _pair_of_times(where, time)
        if (window is None) == (within is None):
            said = "both window and within are" if window is not None else "neither window nor within is"
            raise TopologyError(
                f"{where}: {said} given, one of which says how long a tuple waits for its partners (without an end all tuples of both "
                "sides would be kept for ever); write within=(before, after) in seconds, or a window such as TumblingWindow(60). To "
                "keep only the newest of each key, join_table(...) or join_tables(...)"
            )
        if within is None:
            return join_in_windows(
                self._draft,
                name,
                [(self._outlet, by_key()), (right, by_key())],
                WindowOptions(window, times, lateness, idle, ahead),
                UnitOptions.of_call(locals()),
                check_kind(where, kind),
                check_keep(where, keep),
                (LEFT, RIGHT),
            )
        check_kind(where, kind)
        if check_keep(where, keep) != "all" and kind not in ("inner", "left"):
            raise TopologyError(
                f"{where}: keep={keep!r} gives each tuple of this stream one partner, and kind={kind!r} asks for those of the other stream "
                "that have none; take 'inner' or 'left', or join from the other side"
            )
        factory = functools.partial(IntervalJoin, *check_within(where, within), kind, keep)
        inputs = [(self._outlet, by_key()), (right, by_key())]
        options = UnitOptions.of_call(locals())
        windowed = WindowOptions(Unwindowed(), times, lateness, idle, ahead)
        return _stream(self, self._draft.add_bolt(name, factory, inputs, options, windowed, (LEFT, RIGHT)))

    def join_table(
        self,
        name: str,
        table: Stream[K, W],
        *,
        as_of: bool = False,
        time: Callable[[Any], float] | tuple[Callable[[V], float] | None, Callable[[W], float] | None] | None = None,
        missing: str = "none",
        wait_most: int | None = None,
        lateness: float | None = None,
        idle: float | Idle | None = None,
        ahead: float | None = None,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
        expire_by: str = "processing",
        keys_in_memory: int | None = None,
    ) -> Stream[K, tuple[V, W | None]]:
        """Emit each tuple with the value that `table` has for its key: `(value, found)`.

        `table` is a stream whose values replace one another, key by key; None as a value takes the key out. What counts is what has
        arrived, or with `as_of` what held at the tuple's own time. It is a bolt with `by_key()` on both sides.

        Args:
            as_of: each tuple gets the version that held at its time, however late that comes: it waits until the watermark has passed
                it. Versions hold from their own times on.
            time: with `as_of`, gives a value's time; a pair of functions where tuples and versions differ. `lateness`, `idle` and
                `ahead` as in `window`.
            missing: of a tuple whose key the table does not have: "none" pairs it with None; "drop" sends it to the stream "unmatched"
                beside the main one; "wait" keeps it, and those behind it, until the key has a value (not with `as_of`).
            wait_most: tuples of a key that wait at most, 1000 if it is not said; beyond, the oldest goes to "unmatched".
            expire_after: seconds without a tuple of either side after which a key's value is forgotten; what waits goes to "unmatched".
                With `as_of`, seconds of event time.
        """
        where = f"unit {name!r}"
        remedy = "the table is a stream whose values replace one another, such as what reduce(...) or a spout of changes returns"
        names = _names(self, where, table, remedy, (TABLE_LEFT, TABLE))
        most = check_missing(where, missing, wait_most)
        inputs = [(outlet, by_key()) for outlet in (*self._outlets(), *table._outlets())]
        if not as_of:
            if any(given is not None for given in (time, lateness, idle, ahead)):
                raise TopologyError(
                    f"{where}: time, lateness, idle and ahead are for a table as of a tuple's own time; write as_of=True with them"
                )
            options = UnitOptions.of_call(locals(), streams=(UNMATCHED,))
            factory: Callable[[], Any] = functools.partial(TableJoin, missing, most)
            return _stream(self, self._draft.add_bolt(name, factory, inputs, options, None, names))
        if missing == "wait" or idle_after is not None:
            said, why = ("idle_after", "keys with as_of are put away when they expire, by expire_after")
            if missing == "wait":
                said, why = "missing='wait'", "each tuple waits until its time has passed, and then no version can come"
            raise TopologyError(f"{where}: {said} does not go with as_of: {why}; leave it out")
        factory = functools.partial(AsOfJoin, missing, expire_after)
        options = UnitOptions.of_call(
            {**locals(), "expire_after": None, "expire_by": "processing"}, streams=(UNMATCHED,)
        )
        UnitOptions(expire_after=expire_after).checked(name)
        times = dict(zip((TABLE_LEFT, TABLE), _pair_of_times(where, time)))
        windowed = WindowOptions(Unwindowed(), [times[side] for side in names], lateness, idle, ahead)
        return _stream(self, self._draft.add_bolt(name, factory, inputs, options, windowed, names))

    def join_tables(
        self,
        name: str,
        other: Stream[K, W],
        *,
        kind: str = "inner",
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
        expire_by: str = "processing",
        keys_in_memory: int | None = None,
    ) -> Stream[K, tuple[V | None, W | None] | None]:
        """Join two tables into a third: `(left, right)`, the newest values of a key, whenever one of them changes.

        A table is a stream whose values replace one another, key by key; None as a value takes the key out. So does the table that this
        makes: it emits None when a key has no pair any more.

        Args:
            kind: "inner": a pair takes both sides; "left" this one, "right" the other, "outer" any of them.
            expire_after: seconds without a tuple of either side after which a key is forgotten; without it state grows with the keys.
        """
        where = f"unit {name!r}"
        names = _names(self, where, other, "join a table with another of its topology", (LEFT, RIGHT))
        options = UnitOptions.of_call(locals())
        inputs = [(outlet, by_key()) for outlet in (*self._outlets(), *other._outlets())]
        factory = functools.partial(TablesJoin, check_kind(where, kind))
        return _stream(self, self._draft.add_bolt(name, factory, inputs, options, None, names))


def join_in_windows(
    draft: Draft,
    name: str,
    inputs: Sequence[tuple[OutletDraft, Grouping]],
    windowed: WindowOptions,
    options: UnitOptions,
    kind: str,
    keep: str,
    names: tuple[str, ...],
) -> Stream[Any, Any]:
    """Add a join by window of two or more streams, and return its stream. Raises TopologyError."""
    from esault.topology.stream import Stream

    window = windowed.window
    if isinstance(window, WindowKind) and not window.timed:
        raise TopologyError(
            f"unit {name!r}: tuples of several streams share no {type(window).__name__}; join by a window of time"
        )
    times: list[Any] = [outlet.time if time is None else time for (outlet, _), time in zip(inputs, windowed.times)]
    factory = functools.partial(Join, kind, names, keep, () if keep == "all" else tuple(times))
    return Stream.of_unit(draft, draft.add_bolt(name, factory, inputs, options, windowed, names))


def _stream(of: Joinable[Any, Any], unit: UnitDraft) -> Stream[Any, Any]:
    from esault.topology.stream import Stream

    return Stream.of_unit(of._draft, unit)


def _other(of: Joinable[Any, Any], where: str, other: Joinable[Any, Any], remedy: str) -> OutletDraft:
    _names(of, where, other, remedy, ("", ""))
    return other._outlet


def _names(of: Joinable[Any, Any], where: str, other: Any, remedy: str, sides: tuple[str, str]) -> tuple[str, ...]:
    """Return what each input is called, one or several for each of the two sides. Raises TopologyError."""
    if not isinstance(other, Joinable) or other._draft is not of._draft:
        raise TopologyError(f"{where}: {other!r} is no stream of topology {of._draft.name!r}; {remedy}")
    return (sides[0],) * len(of._outlets()) + (sides[1],) * len(other._outlets())


def _pair_of_times(where: str, time: Any) -> tuple[Any, Any]:
    times = tuple(time) if isinstance(time, (tuple, list)) else (time, time)
    if len(times) != 2:
        raise TopologyError(f"{where}: time is one function for both sides, or a pair of them, not {time!r}")
    return times
