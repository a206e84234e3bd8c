"""Streams: what units send, and what one can do with it.

It is one module of over 300 lines: each method of a stream needs its parameters and their documentation in full, for
editors and type checkers.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.draft import Draft, OutletDraft, UnitDraft
from esault.topology.error_policy import ErrorPolicy
from esault.topology.event_time import Idle
from esault.topology.function import check_function
from esault.topology.grouping import Grouping, by_key
from esault.topology.joinable import Joinable
from esault.topology.known_names import named_keywords
from esault.topology.pattern import Pattern
from esault.topology.pattern_bolt import TIMED_OUT, PatternBolt
from esault.topology.pattern_matcher import Matcher
from esault.topology.reduce import Reduce
from esault.topology.sink import Sink
from esault.topology.split_keys import add_split_window
from esault.topology.stream_operators import StreamOperators
from esault.topology.timed_bolt import Unwindowed
from esault.topology.unit_options import FAIL, UnitOptions, WindowOptions
from esault.topology.window import WindowKind
from esault.topology.windowing import LATE

__all__ = ["Stream"]

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
VO = TypeVar("VO")
W = TypeVar("W")
T = TypeVar("T")


class Stream(StreamOperators[K, V], Joinable[K, V]):
    """Tuples with keys of type K and values of type V, as a unit or a function step sends them.

    Made by `Topology.spout`, `Topology.bolt` and the methods here. Using a stream twice sends its tuples to both
    places. Every method raises TopologyError for a mistake in its arguments, and then has changed nothing.
    """

    def __init__(self, draft: Draft, outlet: OutletDraft, beside: Mapping[str, Stream[Any, Any]] | None = None) -> None:
        """Not for users; `beside` holds the streams beside a unit's main one, None where there cannot be any."""
        self._draft = draft
        self._outlet = outlet
        self._beside = beside

    @classmethod
    def of_unit(cls, draft: Draft, unit: UnitDraft) -> Stream[Any, Any]:
        """Not for users: the main stream of a unit, which knows those beside it."""
        beside = {name: Stream[Any, Any](draft, outlet) for name, outlet in unit.streams.items() if name}
        return Stream(draft, unit.streams[""], beside)

    def __repr__(self) -> str:
        steps = "".join(f" > {step.kind}" for step in self._outlet.steps)
        return f"<Stream {self._outlet.label!r}{steps} of topology {self._draft.name!r}>"

    def __getitem__(self, name: str) -> Stream[Any, Any]:
        """A stream beside the main one, of those that the bolt was given as `streams=(...)`."""
        if self._beside is None:
            raise TopologyError(
                f"unit {self._outlet.unit!r}: only the stream that bolt(...) returned has streams beside it; "
                f"take [{name!r}] from that one"
            )
        if name not in self._beside:
            declared = ", ".join(repr(n) for n in self._beside) or "none"
            raise TopologyError(
                f"unit {self._outlet.unit!r}: it declares no stream {name!r} (declared: {declared}); "
                f"add it to its bolt(...): streams=({name!r},)"
            )
        return self._beside[name]

    @named_keywords
    def bolt(
        self,
        name: str,
        factory: Callable[[], Bolt[K, V, KO, VO] | BatchBolt[K, V, KO, VO]],
        grouping: Grouping | None = None,
        *,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        streams: Sequence[str] = (),
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
        expire_by: str = "processing",
        tick_every: float | None = None,
        replicas: int = 1,
        concurrency: int | None = None,
        buffer: int | None = None,
        overflow: str | None = None,
        chain: bool = True,
        keys_in_memory: int | None = None,
    ) -> Stream[KO, VO]:
        """Process the tuples with objects that `factory` makes; the stream of what they emit.

        Args:
            name: unique; ties state to code over restarts.
            factory: a class, a `functools.partial` of one, or any callable without arguments; no object.
            grouping: which sub-unit gets a tuple, and what one object stands for: `by_key()`, `shuffle()`,
                `broadcast()`, `single()`, `partial_key()` or one's own. Required.
            parallelism: how many sub-units it starts with, from `min_parallelism` to `max_parallelism`
                (None: as many as there are slots), between which it then grows and shrinks.
            streams: names of streams beside the main one, for `self.emit(key, value, stream=name)`.
            on_error: what happens when the bolt raises: `fail()`, `skip()` or `dead_letter(path)`.
            idle_after: seconds without a tuple after which an object is put away, its state kept.
            expire_after: seconds without a tuple after which an object is finished and forgotten.
            expire_by: "processing", by the clock, or "event": `expire_after` counts from the time of the key's newest tuple to the watermark.
            tick_every: seconds between two calls of `tick`.
            replicas: active replicas of each sub-unit, up to 4: all process every tuple, and what follows gets the first result for
                each row, so that the death of one interrupts nothing. For `by_key()` and `shuffle()`; see
                docs/explanation/replicas.md for what `process` must be like.
            concurrency: calls of `async def process` that one sub-unit has open at most, one at a time per key; 64 if it is
                not said.
            buffer: tuples that wait in one sub-unit's inbox at most, with `overflow="drop"`: what comes when it is full is
                dropped and counted. None: nothing is dropped, senders wait.
            overflow: "drop", with `buffer`.
            keys_in_memory: keys whose objects one sub-unit holds in memory at most; the states of the others are on a disk until
                a tuple of theirs comes. None: all are in memory, until that runs short.
            chain: it may run in the process of the unit before it, where it keeps nothing and takes `shuffle()`; False: never.
        """
        options = UnitOptions.of_call(locals())
        return self.of_unit(self._draft, self._draft.add_bolt(name, factory, self._inputs(grouping), options))

    def map(self, function: Callable[[V], W], *, name: str | None = None, on_error: ErrorPolicy = FAIL) -> Stream[K, W]:
        """The same keys with `function(value)` as values. It runs in the process of the unit before it."""
        return self._step("map", function, name, on_error)

    def filter(
        self,
        function: Callable[[V], object],
        *,
        name: str | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stream[K, V]:
        """The tuples for which `function(value)` is true."""
        return self._step("filter", function, name, on_error)

    def flat_map(
        self,
        function: Callable[[V], Iterable[W]],
        *,
        name: str | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stream[K, W]:
        """For each tuple as many as `function(value)` has values, under its key; a generator function will do."""
        return self._step("flat_map", function, name, on_error)

    def key_by(
        self,
        function: Callable[[V], KO],
        *,
        name: str | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> Stream[KO, V]:
        """The same values under the keys `function(value)`."""
        return self._step("key_by", function, name, on_error)

    def reduce(
        self,
        name: str,
        function: Callable[[T, V], T],
        *,
        initial: T,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
        expire_by: str = "processing",
        buffer: int | None = None,
        overflow: str | None = None,
        keys_in_memory: int | None = None,
    ) -> Stream[K, T]:
        """Keep a total per key and emit each new one: `function(total, value)`, the first from a copy of `initial`.

        It is a bolt with `by_key()` and takes a bolt's arguments. The function returns a new total and does not
        change the old one, which was emitted.
        """
        where = f"unit {name!r}"
        check_function(where, function, takes=("the total", "the value"))
        if callable(initial):
            raise TopologyError(f"{where}: initial={initial!r} is to be called, not a total; write the value itself")
        try:
            copy.deepcopy(initial)
        except Exception as error:
            raise TopologyError(
                f"{where}: each key starts from a copy of initial, and {initial!r} has none: {error}"
            ) from error
        inputs = self._inputs(by_key())
        factory = functools.partial(Reduce, function, initial)
        return self.of_unit(self._draft, self._draft.add_bolt(name, factory, inputs, UnitOptions.of_call(locals())))

    def timed(
        self,
        time: Callable[[V], float],
        *,
        lateness: float = 0.0,
        idle: float | Idle | None = None,
        ahead: float | None = None,
    ) -> Stream[K, V]:
        """The same tuples, whose event time starts here: watermarks go along with them from here on.

        Args:
            time: gives a value's time, seconds since the epoch.
            lateness: seconds that a tuple may be behind the newest one and still be on time.
            idle: seconds without anything to read after which windows do not wait for this sub-unit; None: they do, behind a
                bolt for 1 s. `Idle(seconds, advance=True)`: while all are idle, time goes on with the clock.
            ahead: seconds that a time may be ahead of the clock; one further ahead is not believed: its tuple goes to the stream
                "late" of the first window it comes to. None: all are.
        """
        return Stream(self._draft, self._draft.add_timed(self._outlet, time, lateness, idle, ahead))

    @named_keywords
    def window(
        self,
        name: str,
        factory: Callable[[], Bolt[K, V, KO, VO]],
        window: WindowKind,
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
        ordered: bool = False,
        split_hot_keys: bool = False,
        grouping: Grouping | None = None,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        streams: Sequence[str] = (),
        on_error: ErrorPolicy = FAIL,
        tick_every: float | None = None,
        buffer: int | None = None,
        overflow: str | None = None,
    ) -> Stream[KO, VO]:
        """Process the tuples of each key and window with an object of its own, whose `finish` is called when the window closes.

        What comes when its window has closed goes to the stream "late", which needs no declaration.

        Args:
            name: as in `bolt`, as are the arguments not named here.
            factory: makes a `Bolt`; its objects have `self.key` and `self.window`, with `.start` and `.end`.
            window: `TumblingWindow(size)`, `SlidingWindow(size, every)`, `SessionWindow(gap)` or `CountWindow(n, every=None)`.
            time: gives a value's time, seconds since the epoch; None: what was said further up, for the same values.
            lateness, idle, ahead: as in `timed`, which starts event time right before the window, unless it has started further up.
            by: "event", or "processing": a tuple is in the window of the moment, and the clock closes it.
            updates: what becomes of a window's result where it has several, the panes, for each of which `finish` is called: "accumulate":
                each is of all tuples so far; "discard": of those since the pane before, with a new object; "retract": as "accumulate", and
                values of `finish` become pairs `(value, 1)`, before which those of the pane before come again as `(value, -1)`. "drop":
                there is one result. `self.pane` says which it is.
            allowed_lateness: seconds behind its end for which a window takes late tuples; each has a pane at once.
            early_count, early_seconds: a pane before the end each so many tuples, or so many seconds by the clock after the first tuple
                that is in none yet.
            last_pane: the end of `allowed_lateness` has a pane, which says that it is the last.
            ordered: tuples wait for the window's end, or its next pane, and are processed in the order of their times.
            split_hot_keys: the tuples of a key that brings too many for one sub-unit go to several, and what their objects hold is put
                together by `combine(self, other)` of the bolt before `finish`. The work is done in a unit NAME.partial, which has
                `parallelism` and the like; unit NAME combines.
            grouping: `by_key()`.
        """
        inputs = self._inputs(by_key() if grouping is None else grouping)
        times = (time,) * len(inputs)
        options, windowed = UnitOptions.of_call(locals()), WindowOptions.of_call(locals(), times=times)
        if split_hot_keys:
            whole, late = add_split_window(self._draft, name, factory, inputs, options, windowed)
            made = self.of_unit(self._draft, whole)
            made._beside = {**(made._beside or {}), LATE: Stream[Any, Any](self._draft, late)}
            return made
        return self.of_unit(self._draft, self._draft.add_bolt(name, factory, inputs, options, windowed))

    def union(self, *others: Stream[Any, Any]) -> Stream[Any, Any]:
        """The tuples of this stream and of others as one stream; order holds within each of them."""
        from esault.topology.union import Union  # which derives from this class

        for other in others:
            if not isinstance(other, Stream) or other._draft is not self._draft:
                raise TopologyError(
                    f"union behind {self!r}: {other!r} is no stream of topology {self._draft.name!r}; unite streams of one topology"
                )
        return Union(self._draft, (self, *others)) if others else self

    def pattern(
        self,
        name: str,
        pattern: Pattern[V],
        *,
        time: Callable[[V], float] | None = None,
        lateness: float | None = None,
        idle: float | Idle | None = None,
        ahead: float | None = None,
        parallelism: int = 1,
        min_parallelism: int = 1,
        max_parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        buffer: int | None = None,
        overflow: str | None = None,
    ) -> Stream[K, dict[str, list[V]]]:
        """Find the pattern in the tuples of each key, in the order of their times: a match is a dict of values by the names of stages.

        A tuple is matched when the watermark has passed it. What comes later goes to the stream "late"; a match that has begun and is not
        complete when its time is over, to "timed_out". The rest as in `window`.
        """
        where = f"unit {name!r}"
        if not isinstance(pattern, Pattern):
            raise TopologyError(
                f"{where}: {pattern!r} ({type(pattern).__name__}) is no pattern; write Pattern().begin('first', lambda value: ...)"
            )
        factory = functools.partial(PatternBolt, Matcher(pattern.checked(where)))
        options = UnitOptions.of_call(locals(), streams=(TIMED_OUT,))
        inputs = self._inputs(by_key())
        windowed = WindowOptions(Unwindowed(), (time,) * len(inputs), lateness, idle, ahead)
        unit = self._draft.add_bolt(name, factory, inputs, options, windowed)
        return self.of_unit(self._draft, unit)

    def sink(self, name: str, sink: Sink) -> None:
        """Write the tuples to `sink`, an object, in the process of the unit before it; its name is unique."""
        self._draft.add_sink(self._outlet, name, sink)

    def _combined(self, combine: Any) -> Stream[Any, Any]:
        return Stream(self._draft, self._draft.add_combine(self._outlet, combine))

    def _unit(self, name: str, factory: Callable[[], Any], options: UnitOptions) -> Stream[Any, Any]:
        return self.of_unit(self._draft, self._draft.add_bolt(name, factory, self._inputs(by_key()), options))

    def _step(
        self, kind: str, function: Callable[[Any], Any], name: str | None, on_error: ErrorPolicy
    ) -> Stream[Any, Any]:
        return Stream(self._draft, self._draft.add_step(self._outlet, kind, function, name, on_error))
