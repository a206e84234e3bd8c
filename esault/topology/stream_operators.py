"""Operators of a stream that are made of function steps and bolts: what people reach for, by its name in the field.

It is one module of over 300 lines: each method needs its parameters and their documentation in full, for editors and type
checkers.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from esault.errors import TopologyError
from esault.topology.aggregates.aggregate import Aggregate
from esault.topology.aggregates.aggregated import Aggregated, Combine, LateResults
from esault.topology.arguments import check_name, check_seconds
from esault.topology.bolt import Bolt
from esault.topology.draft import Draft, OutletDraft
from esault.topology.error_policy import ErrorPolicy
from esault.topology.event_time import Idle
from esault.topology.function import check_function, is_async, name_of
from esault.topology.grouping import Grouping
from esault.topology.operators.distinct import LATE, Distinct
from esault.topology.operators.enrich import Enrich
from esault.topology.operators.functions import Branch, Found, Lookup, Reread, Sample
from esault.topology.operators.neighbours import Changes, Pairwise
from esault.topology.operators.paces import THROTTLED, Batches, Debounce, DebounceByEvent, Throttle
from esault.topology.split_keys import PARTIAL
from esault.topology.unit_options import FAIL, UnitOptions
from esault.topology.window import TimeWindow, WindowKind

if TYPE_CHECKING:
    from esault.topology.stream import Stream

__all__ = ["StreamOperators"]

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
W = TypeVar("W")


class StreamOperators(Generic[K, V]):
    """Methods of `Stream` besides bolts, windows and joins. Those with a `name` are units: bolts by_key() with state."""

    _draft: Draft

    # steps: they run in the process of the unit before them ----------------------------------------

    def split(
        self, predicates: Mapping[str, Callable[[V], object]], *, on_error: ErrorPolicy = FAIL
    ) -> dict[str, Stream[K, V]]:
        """The tuples in several streams, by name: each goes to that of the first function that is true of its value.

        Those of which none is are in the stream "rest".
        """
        where = f"split behind {self!r}"
        if not isinstance(predicates, Mapping) or not predicates:
            raise TopologyError(f"{where}: write split({{'large': lambda value: value > 10}}), and not {predicates!r}")
        for name, predicate in predicates.items():
            check_name(f"{where}: the stream", name)
            check_function(f"{where}, {name!r}", predicate, takes=("the value",))
        if "rest" in predicates:
            raise TopologyError(f"{where}: 'rest' is the stream of what no function takes; choose another name")
        functions = list(predicates.values())
        return {
            name: self._step("filter", Branch(functions, chosen), None, on_error)
            for chosen, name in enumerate((*predicates, "rest"))
        }

    def sample(self, fraction: float, *, seed: int | None = None) -> Stream[K, V]:
        """About so large a share of the tuples, by chance: `fraction` is above 0 and at most 1.

        With a `seed` each process draws the same numbers in each run; a tuple that is replayed is drawn anew.
        """
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 < fraction <= 1:
            raise TopologyError(f"sample behind {self!r}: {fraction!r} is a share above 0 and at most 1, such as 0.01")
        return self._step("filter", Sample(fraction, seed), None, FAIL)

    def lookup(
        self,
        table: Mapping[Any, W] | Callable[[], Mapping[Any, W]],
        of: Callable[[V], Any] | None = None,
        *,
        missing: str = "none",
        refresh: float | str | os.PathLike[str] | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stream[K, tuple[V, W | None]]:
        """Pairs `(value, found)`: what a table has under `of(value)`, or under the value itself.

        Args:
            table: a mapping, or a function without arguments that returns one; it is called once in each process, at the first tuple.
            missing: of a value that the table does not have: "none" pairs it with None, "drop" leaves it out.
            refresh: seconds after which the function is called again, in each process by itself; or the path of a file: when that has
                changed. Where all must have the same at a time, use broadcast state.
        """
        where = f"lookup behind {self!r}"
        if is_async(table):
            raise TopologyError(
                f"{where}: {name_of(table)} waits for its answers; write enrich(name, {name_of(table)}(...), of=...)"
            )
        if refresh is not None:
            table = _reread(where, table, refresh)
        if not isinstance(table, Mapping):
            check_function(where, table, takes=())
        if of is not None:
            check_function(f"{where}, of", of, takes=("the value",))
        if _drops(where, missing):
            return self._step("flat_map", Found(table, of), None, on_error)
        return self._step("map", Lookup(table, of), None, on_error)

    # bolts by key ------------------------------------------------------------------------------------

    def distinct(
        self,
        name: str,
        *,
        within: float,
        key: Callable[[V], KO] | None = None,
        by: str = "event",
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        keys_in_memory: int | None = None,
    ) -> Stream[Any, V]:
        """The tuples without those that repeat their key: one is left out less than `within` seconds from one that was emitted.

        Its state goes when the watermark, or the clock, is `within` seconds past the key's last tuple. What is late and not known to
        be a repeat goes to the stream "late" beside the main one.

        Args:
            key: makes the key from the value; None: the stream's own.
            by: "event", the times that `timed` or `time=` gives, or "processing", the clock.
        """
        where = f"unit {name!r}"
        time = self._time_by(where, by)
        within = check_seconds(where, "within", within)
        options = UnitOptions.of_call(locals(), streams=(LATE,), expire_after=within, expire_by=by)
        keyed = self._keyed(key, on_error)
        return keyed._same_values(keyed._unit(name, functools.partial(Distinct, within, time), options))

    def changes(
        self,
        name: str,
        of: Callable[[V], Any] | None = None,
        *,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
        expire_by: str = "processing",
        keys_in_memory: int | None = None,
    ) -> Stream[K, V]:
        """The tuples whose value, or `of(value)`, is another than that of the key's tuple before; the first one of each key as well."""
        if of is not None:
            check_function(f"unit {name!r}, of", of, takes=("the value",))
        return self._unit(name, functools.partial(Changes, of), UnitOptions.of_call(locals()))

    def pairwise(
        self,
        name: str,
        *,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
        expire_by: str = "processing",
        keys_in_memory: int | None = None,
    ) -> Stream[K, tuple[V, V]]:
        """Pairs `(before, value)` of each tuple of a key with the one before it."""
        return self._unit(name, Pairwise, UnitOptions.of_call(locals()))

    def throttle(
        self,
        name: str,
        count: int,
        seconds: float,
        *,
        by: str = "processing",
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        keys_in_memory: int | None = None,
    ) -> Stream[K, V]:
        """At most `count` tuples of each key in any `seconds`; the others go to the stream "throttled" beside the main one.

        `by` as in `distinct`; by event time what comes more than `seconds` behind the watermark goes to the stream "late".
        """
        where = f"unit {name!r}"
        time = self._time_by(where, by)
        seconds = check_seconds(where, "seconds", seconds)
        factory = functools.partial(Throttle, _count(where, count), seconds, time)
        # By event time what was let through counts for tuples that are up to `seconds` late.
        late, lasts = ((), seconds) if time is None else ((LATE,), 2 * seconds)
        options = UnitOptions.of_call(locals(), streams=(THROTTLED, *late), expire_after=lasts, expire_by=by)
        return self._same_values(self._unit(name, factory, options))

    def debounce(
        self,
        name: str,
        seconds: float,
        *,
        by: str = "processing",
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        keys_in_memory: int | None = None,
    ) -> Stream[K, V]:
        """The last tuple of each burst: one of whose key nothing comes for `seconds`. At the end of the stream the last of each key.

        `by` as in `distinct`; by event time it is emitted when the watermark has come so far, and what comes more than `seconds` behind
        that goes to the stream "late".
        """
        where = f"unit {name!r}"
        time = self._time_by(where, by)
        seconds = check_seconds(where, "seconds", seconds)
        factory: Callable[[], Bolt[Any, Any, Any, Any]] = (
            functools.partial(Debounce, seconds) if time is None else functools.partial(DebounceByEvent, seconds, time)
        )
        late = () if time is None else (LATE,)
        return self._unit(name, factory, UnitOptions.of_call(locals(), streams=late, expire_after=None))

    def batch(
        self,
        name: str,
        count: int,
        seconds: float | None = None,
        *,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        keys_in_memory: int | None = None,
    ) -> Stream[K, list[V]]:
        """Lists of the values of a key: of `count`, or of fewer when `seconds` by the clock have passed since the first of them.

        What is left when the stream ends is emitted then.
        """
        where = f"unit {name!r}"
        if seconds is not None:
            seconds = check_seconds(where, "seconds", seconds)
        factory = functools.partial(Batches, _count(where, count), seconds)
        return self._unit(name, factory, UnitOptions.of_call(locals(), expire_after=None))

    def enrich(
        self,
        name: str,
        function: Callable[[Any], Awaitable[W]],
        of: Callable[[V], Any] | None = None,
        *,
        missing: str = "none",
        cache: float | None = None,
        concurrency: int | None = None,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stream[K, tuple[V, W]]:
        """Pairs `(value, answer)` with the answer of `async def function(value)`, a service that is asked, or of a table of `esault.lookups`.

        Args:
            of: makes from the value what the function is asked; None: the value itself.
            missing: where the answer is None: "none" pairs the value with it, "drop" leaves it out.
            cache: seconds for which an answer serves all tuples of its key; None: each tuple asks. Key the stream by what the answer
                depends on. Answers are state: they move, and are kept by checkpoints.
            concurrency: calls that one sub-unit has open at most, one at a time per key; 64 if it is not said.
        """
        where = f"unit {name!r}"
        if not callable(function) or not is_async(function):
            raise TopologyError(
                f"{where}: {name_of(function)} does not wait for anything; write `async def`, or use map(...) for what answers at once"
            )
        if of is not None:
            check_function(f"{where}, of", of, takes=("the value",))
        if cache is not None:
            cache = check_seconds(where, "cache", cache)
        # Without a cache the object of a key knows nothing, and stays no longer than calls of its key follow each other.
        options = UnitOptions.of_call(locals(), expire_after=60.0 if cache is None else cache)
        made = self._unit(name, functools.partial(Enrich, function, cache, of, _drops(where, missing)), options)
        unit = self._draft.units[name]
        unit.settings = dataclasses.replace(unit.settings, check=getattr(function, "check", None))
        return made

    def aggregate(
        self,
        name: str,
        aggregates: Mapping[str, Aggregate],
        window: WindowKind | None = None,
        *,
        time: Callable[[V], float] | None = None,
        lateness: float | None = None,
        idle: float | Idle | None = None,
        ahead: float | None = None,
        by: str = "event",
        updates: str = "drop",
        allowed_lateness: float = 0,
        early_count: int | None = None,
        early_seconds: float | None = None,
        last_pane: bool = False,
        combine: bool = True,
        split_hot_keys: bool = False,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
        expire_by: str = "processing",
        keys_in_memory: int | None = None,
    ) -> Stream[K, dict[str, Any]]:
        """A dict of aggregates of each key, by their names: `aggregate("sales", {"n": count(), "paid": sum("paid")})`.

        With a window one for each key and window when that closes, with its "start" and "end", and with `updates` with "pane", the kind, index
        and `is_last` of the pane; without one, the new dict at each tuple.

        Args:
            aggregates: name -> one of `esault.aggregates`.
            window, time, lateness, idle, ahead, by, updates, allowed_lateness, early_count, early_seconds, last_pane: as in `Stream.window`.
            combine: tuples of a batch that go into the same windows of time are combined before they travel, where that makes them
                fewer. The stream "late" then has dicts of aggregates of what was late, in place of the tuples.
            split_hot_keys: as in `window`: sub-units share the tuples of a key that brings too many for one.
            idle_after, expire_after, expire_by, keys_in_memory: as in `bolt`, without a window.
        """
        where = f"unit {name!r}"
        _check_aggregates(
            where, aggregates, () if window is None else ("start", "end", *["pane"] * (updates != "drop"))
        )
        combined = False
        stream: Any = self
        if window is None:
            given: dict[str, Any] = {"time": time, "lateness": lateness, "idle": idle, "ahead": ahead}
            given |= {"early_count": early_count, "early_seconds": early_seconds}
            said = [argument for argument, value in given.items() if value is not None]
            said += ["by"] * (by != "event") + ["updates"] * (updates != "drop")
            said += ["allowed_lateness"] * bool(allowed_lateness) + ["last_pane"] * bool(last_pane)
            said += ["split_hot_keys"] * bool(split_hot_keys)
            if said:
                raise TopologyError(f"{where}: {' and '.join(said)} is for windows; give it one, or leave that out")
            made = self._unit(
                name, functools.partial(Aggregated, aggregates, False, False, False), UnitOptions.of_call(locals())
            )
        else:
            if any(given is not None for given in (idle_after, expire_after, keys_in_memory)):
                raise TopologyError(
                    f"{where}: a window ends by itself; leave idle_after, expire_after and keys_in_memory out"
                )
            outlets = self._outlets()
            known: set[Any] = {outlet.time for outlet in outlets} if time is None else {time}
            # A tuple that is too far ahead to be believed stands for itself alone.
            believed = ahead is None and all(outlet.ahead is None for outlet in outlets)
            # An early pane counts tuples, and by the clock it is not known yet which window a tuple goes into.
            combine = combine and early_count is None and by == "event"
            if combine and isinstance(window, TimeWindow) and believed and len(known) == 1 and None not in known:
                (of,) = known
                if time is not None and not any(outlet.has_time for outlet in outlets):
                    stream = stream.timed(time, lateness=0.0 if lateness is None else lateness, idle=idle)
                    lateness = idle = None
                stream, combined, time = stream._combined(Combine(aggregates, window, of)), True, None
            made = stream.window(
                name,
                functools.partial(Aggregated, aggregates, True, combined, updates != "drop"),
                window,
                time=time,
                lateness=lateness,
                idle=idle,
                ahead=ahead,
                by=by,
                updates=updates,
                allowed_lateness=allowed_lateness,
                early_count=early_count,
                early_seconds=early_seconds,
                last_pane=last_pane,
                split_hot_keys=split_hot_keys,
                parallelism=parallelism,
                min_parallelism=min_parallelism,
                max_parallelism=max_parallelism,
                on_error=on_error,
            )
        if not split_hot_keys:  # else what comes to the unit is not what is aggregated
            unit = self._draft.units[name]
            unit.settings = dataclasses.replace(unit.settings, aggregates=dict(aggregates))
        if combined:
            taker = self._draft.units[f"{name}.{PARTIAL}" if split_hot_keys else name]
            taker.settings = dataclasses.replace(taker.settings, combined=True)
            made._beside = {**(made._beside or {}), LATE: made[LATE].map(LateResults(aggregates), name="results")}
        return made

    if TYPE_CHECKING:  # what Stream does

        def _combined(self, combine: Combine) -> Stream[Any, Any]: ...

        def _unit(self, name: str, factory: Callable[[], Any], options: UnitOptions) -> Stream[Any, Any]: ...

        def _step(
            self, kind: str, function: Callable[[Any], Any], name: str | None, on_error: ErrorPolicy
        ) -> Stream[Any, Any]: ...

        def _outlets(self) -> list[OutletDraft]: ...

    def _inputs(self, grouping: Grouping | None) -> list[tuple[OutletDraft, Any]]:
        return [(outlet, grouping) for outlet in self._outlets()]

    def _keyed(self, key: Callable[[V], Any] | None, on_error: ErrorPolicy) -> StreamOperators[Any, V]:
        return self if key is None else self._step("key_by", key, None, on_error)

    def _same_values(self, made: Stream[Any, V]) -> Stream[Any, V]:
        """Say of a unit that emits at once what it takes or nothing: what gave a value its time before gives it behind, too."""
        times = {outlet.time for outlet in self._outlets()}
        if len(times) == 1:
            (made._outlet.time,) = times
        return made

    def _time_by(self, where: str, by: str) -> Callable[[Any], float] | None:
        """Return the function that gives a value's time; None: the clock does. Raises TopologyError."""
        if by == "processing":
            return None
        if by != "event":
            raise TopologyError(f"{where}: by={by!r}; it goes by 'event' or by 'processing' time")
        times = [outlet.time for outlet in self._outlets()]
        if None in times:
            raise TopologyError(
                f"{where}: nothing says when a tuple of {self!r} happened; write .timed(lambda value: value['at']) before it, or "
                "by='processing' to go by the clock"
            )
        if len(set(times)) > 1:
            raise TopologyError(
                f"{where}: the streams of {self!r} have their times in different ways; bring them into one form by map, and say .timed(...)"
            )
        return times[0]


def _check_aggregates(where: str, aggregates: object, own: Collection[str]) -> None:
    if not isinstance(aggregates, Mapping) or not aggregates:
        raise TopologyError(
            f"{where}: write aggregate(name, {{'n': count(), 'paid': sum('paid')}}), and not {aggregates!r}"
        )
    for each, of in aggregates.items():
        if not isinstance(each, str):
            raise TopologyError(f"{where}: the name of an aggregate is a text, not {each!r}")
        if not isinstance(of, Aggregate):
            raise TopologyError(
                f"{where}: {each!r} is {of!r}, and no aggregate; take one from esault.aggregates, such as count() or sum('paid')"
            )
        if each in own:
            raise TopologyError(f"{where}: {each!r} is what the window says of itself; choose another name")


def _drops(where: str, missing: object) -> bool:
    if missing not in ("none", "drop"):
        raise TopologyError(f"{where}: missing={missing!r} is 'none' or 'drop'")
    return missing == "drop"


def _reread(where: str, table: object, refresh: object) -> Reread:
    if isinstance(table, Mapping):
        raise TopologyError(
            f"{where}: refresh={refresh!r} calls a function again, and the table is {type(table).__name__}, which stays as it is; pass a "
            "function that reads it"
        )
    check_function(where, table, takes=())
    if isinstance(refresh, (str, os.PathLike)):
        return Reread(cast(Any, table), os.fspath(refresh))
    return Reread(cast(Any, table), check_seconds(where, "refresh", refresh))


def _count(where: str, count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise TopologyError(f"{where}: count={count!r} must be a whole number of tuples from 1 on")
    return count
