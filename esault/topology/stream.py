"""Streams: what units send, and what one can do with it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.draft import BoltOptions, Draft, OutletDraft, UnitDraft
from esault.topology.error_policy import ErrorPolicy, fail
from esault.topology.function import check_function
from esault.topology.grouping import Grouping, by_key
from esault.topology.parallelism import Parallelism
from esault.topology.reduce import Reduce
from esault.topology.sink import Sink

__all__ = ["Stream"]

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
VO = TypeVar("VO")
W = TypeVar("W")
T = TypeVar("T")

_FAIL = fail()


class Stream(Generic[K, V]):
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
        on_error: ErrorPolicy = _FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
        tick_every: float | None = None,
        concurrency: int | None = None,
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
            tick_every: seconds between two calls of `tick`.
            concurrency: not supported yet.
        """
        options = BoltOptions(
            Parallelism(parallelism, min_parallelism, max_parallelism),
            streams,
            on_error,
            idle_after,
            expire_after,
            tick_every,
            concurrency,
        )
        return self.of_unit(self._draft, self._draft.add_bolt(name, factory, [(self._outlet, grouping)], options))

    def map(
        self, function: Callable[[V], W], *, name: str | None = None, on_error: ErrorPolicy = _FAIL
    ) -> Stream[K, W]:
        """The same keys with `function(value)` as values. It runs in the process of the unit before it."""
        return self._step("map", function, name, on_error)

    def filter(
        self,
        function: Callable[[V], object],
        *,
        name: str | None = None,
        on_error: ErrorPolicy = _FAIL,
    ) -> Stream[K, V]:
        """The tuples for which `function(value)` is true."""
        return self._step("filter", function, name, on_error)

    def flat_map(
        self,
        function: Callable[[V], Iterable[W]],
        *,
        name: str | None = None,
        on_error: ErrorPolicy = _FAIL,
    ) -> Stream[K, W]:
        """For each tuple as many as `function(value)` has values, under its key; a generator function will do."""
        return self._step("flat_map", function, name, on_error)

    def key_by(
        self,
        function: Callable[[V], KO],
        *,
        name: str | None = None,
        on_error: ErrorPolicy = _FAIL,
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
        on_error: ErrorPolicy = _FAIL,
        idle_after: float | None = None,
        expire_after: float | None = None,
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
        return self.bolt(
            name,
            functools.partial(Reduce, function, initial),
            by_key(),
            parallelism=parallelism,
            min_parallelism=min_parallelism,
            max_parallelism=max_parallelism,
            on_error=on_error,
            idle_after=idle_after,
            expire_after=expire_after,
        )

    def sink(self, name: str, sink: Sink) -> None:
        """Write the tuples to `sink`, an object, in the process of the unit before it; its name is unique."""
        self._draft.add_sink(self._outlet, name, sink)

    def _step(
        self, kind: str, function: Callable[[Any], Any], name: str | None, on_error: ErrorPolicy
    ) -> Stream[Any, Any]:
        return Stream(self._draft, self._draft.add_step(self._outlet, kind, function, name, on_error))
