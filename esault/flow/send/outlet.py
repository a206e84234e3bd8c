"""Outlets at work: function steps on whole batches, then sinks, routes and branches, without a wire."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any, Protocol

from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.lineage import Lineage
from esault.flow.operators.user_error import UserError, described
from esault.flow.send.batch_functions import batch_function
from esault.flow.send.fused_steps import fused_steps
from esault.flow.send.route import Route
from esault.flow.send.sink_writer import SinkWriter
from esault.flow.watermark.clock import Clock
from esault.topology.plan import Outlet, UnitPlan
from esault.topology.step import Step

__all__ = ["OutletRunner"]

Columns = tuple[Sequence[Any], Sequence[Any], Sequence[str] | None]
#: told (step, error, key, value) of a row that its policy survives
Survive = Callable[[Step, BaseException, Any, Any], None]


class Receiver(Protocol):
    """Takes batches in this process."""

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        """Take a batch of one root."""
        ...


class Chained(Receiver, Protocol):
    """A bolt in this process, with outlets of its own."""

    def find(self, place: str) -> Receiver | None:
        """Return what takes a batch from a place on, as `OutletRunner.find`."""
        ...


_STOPPING = (KeyboardInterrupt, GeneratorExit)
_FAILED = object()


class OutletRunner:
    """One outlet of the plan with its sinks and routes in place."""

    def __init__(
        self,
        outlet: Outlet,
        writers: Callable[[Any], SinkWriter],
        routes: Callable[[Any, Clock | None], Route],
        clocks: Callable[[Step], Clock],
        survive: Survive,
        clock: Clock | None = None,
        bolts: Callable[[UnitPlan], Chained] | None = None,
        pause: Callable[[float], None] = lambda seconds: None,
        *,
        chance: Callable[[], float],
    ) -> None:
        """`routes` is told what makes the watermarks on the way: the last clock before it, None for none; `bolts` makes chained bolts;
        `pause` waits for so many seconds, and `chance` draws the jitter of waits, in 0 .. 1."""
        self._pause, self._chance = pause, chance
        self._steps = outlet.steps
        self._fused = fused_steps(outlet.steps)
        #: of steps that map, those that are known to do a whole batch quicker
        self._batched = {
            s.name: found for s in outlet.steps if s.kind == "map" and (found := batch_function(s.function))
        }
        #: of steps where event time starts
        self._clocks = {step.name: clocks(step) for step in outlet.steps if step.kind == "timed"}
        for made in self._clocks.values():
            clock = made
        self._survive = survive
        self._sinks = [writers(sink) for sink in outlet.sinks]
        self._routes = [routes(edge, clock) for edge in outlet.edges]
        self._inputs = [f"input:{edge.target}:{edge.input}" for edge in outlet.edges]
        self._bolts = [bolts(bolt) for bolt in outlet.bolts] if bolts is not None else []
        self._branches = [
            OutletRunner(b, writers, routes, clocks, survive, clock, bolts, pause, chance=chance)
            for b in outlet.branches
        ]

    @property
    def only_bolt(self) -> Chained | None:
        """Return the chained bolt that alone gets all, as it is; None where it is not so."""
        others = self._steps or self._sinks or self._routes or self._branches
        return self._bolts[0] if len(self._bolts) == 1 and not others else None

    def find(self, place: str) -> Receiver | None:
        """Return what takes a batch from a place on: "step:NAME", behind all before that step, or "input:UNIT:N"; None: it is elsewhere."""
        for i, step in enumerate(self._steps):
            if place == f"step:{step.name}":
                rest = copy.copy(self)
                rest._steps = self._steps[i:]
                rest._fused = fused_steps(rest._steps)
                return rest
        if place in self._inputs:
            return self._routes[self._inputs.index(place)]
        inside = (inside.find(place) for inside in (*self._bolts, *self._branches))
        return next((found for found in inside if found is not None), None)

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        """Take a batch of one root through the steps to wherever it goes."""
        done = 0
        while done < len(self._steps):
            fused = self._fused.get(done)
            mapped = None if fused is None else fused.mapped(values)
            if fused is not None and mapped is not None:
                values = mapped
                done += fused.count
                continue
            keys, values, ids = self._apply(self._steps[done], keys, values, ids)
            if not keys:
                return
            done += 1
        for sink in self._sinks:
            sink.write(lineage, keys, values, ids, now)
        for route in self._routes:
            route.push(lineage, keys, values, ids, now)
        for bolt in self._bolts:
            bolt.push(lineage, keys, values, ids, now)
        for branch in self._branches:
            branch.push(lineage, keys, values, ids, now)

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        """The same with arrays; functions of steps, and sinks that do not say otherwise, get plain objects."""
        if any(step.kind != "timed" for step in self._steps):
            self.push(lineage, *batch.rows, ids, now)
            return
        for step in self._steps:
            clock = self._clocks[step.name]
            if not clock.observe_columns(batch.values):
                clock.observe(batch.rows[1])
        for sink in self._sinks:
            keys, values = (batch.keys, batch.values) if sink.takes_arrays else batch.rows
            sink.write(lineage, keys, values, ids, now)
        for route in self._routes:
            route.push_arrays(lineage, batch, ids, now)
        for bolt in self._bolts:
            bolt.push(lineage, *batch.rows, ids, now)
        for branch in self._branches:
            branch.push_arrays(lineage, batch, ids, now)

    def _apply(self, step: Step, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> Columns:
        if step.kind == "timed":
            self._clocks[step.name].observe(values)
            return keys, values, ids
        function = step.function
        if step.kind == "combine":
            combined: Columns = function(keys, values, ids)
            return combined
        results, failed = self._results(step, keys, values)
        if failed:
            good = [r is not _FAILED for r in results]
            keys, values, results = (
                list(compress(keys, good)),
                list(compress(values, good)),
                list(compress(results, good)),
            )
            ids = list(compress(ids, good)) if ids is not None else None
        if step.kind == "filter":
            try:
                return _where(results, keys, values, ids)
            except _STOPPING:
                raise
            except BaseException:
                pass
            # A result refuses to be true or false, as an array does. Not in the `except`: what the row raises would come with the same
            # error once more before it.
            results = [r if type(r) is bool else self._row(step, k, v) for k, v, r in zip(keys, values, results)]
            return _where([r is True for r in results], keys, values, ids)
        if step.kind == "map":
            return keys, results, ids
        if step.kind == "key_by":
            return results, values, ids
        flat_keys: list[Any] = []
        flat_values: list[Any] = []
        for key, many in zip(keys, results):
            flat_values += many
            flat_keys += [key] * len(many)
        if ids is not None:
            ids = [f"{id}.{i}" for id, many in zip(ids, results) for i in range(len(many))]
        return flat_keys, flat_values, ids

    def _results(self, step: Step, keys: Sequence[Any], values: Sequence[Any]) -> tuple[Sequence[Any], bool]:
        """Return what the function makes of each value, `_FAILED` where it raises and its policy survives that, and whether there are such."""
        batched = self._batched.get(step.name)
        found = None if batched is None else batched.results(values)
        if found is not None:
            return found, False
        function, failed, rest = step.function, False, iter(values)
        results: list[Any] = []
        while True:
            error: BaseException | None = None
            try:
                # Where one raises, what was made of those before it stays: no function is called twice with what it has taken.
                made = map(function, rest)
                results.extend(map(tuple, made) if step.kind == "flat_map" else made)
            except _STOPPING:
                raise
            except BaseException as raised:
                error = raised
            place = len(results)
            if place == len(values):
                return results if step.kind in ("filter", "flat_map") else tuple(results), failed
            # Not in the `except`: what another try raises would come with this error before it. None: a StopIteration has ended the map.
            results.append(self._row(step, keys[place], values[place], error))
            failed = failed or results[place] is _FAILED

    def _row(self, step: Step, key: Any, value: Any, failed: BaseException | None = None) -> Any:
        """Return what the function makes of a value, by its policy; `failed`: what it has raised already. Raises UserError."""
        policy, tries = step.on_error, 0
        if failed is not None and step.kind == "flat_map" and type(failed) is TypeError and _is_of_engine(failed):
            failed = None  # what it returned are no values: that is said below
        while True:
            try:
                if failed is not None:
                    raised, failed = failed, None
                    raise raised
                result = step.function(value)
                if step.kind == "filter":
                    return bool(result)
                if step.kind != "flat_map":
                    return result
                if not isinstance(result, Iterable):
                    raise TypeError(
                        f"the function of flat_map must return several values, in a list say; got {result!r}"
                    )
                return tuple(result)
            except _STOPPING:
                raise
            except BaseException as error:
                if policy.tries_again(error, tries):
                    self._pause(policy.wait(tries, self._chance()))
                    tries += 1
                    continue
                if policy.kind == "fail":
                    name = getattr(step.function, "__qualname__", type(step.function).__qualname__)
                    raise UserError(f"step {step.name!r} ({name}), key {key!r}: {described(error)}") from error
                self._survive(step, error, key, value)
                return _FAILED


def _where(results: Sequence[Any], keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> Columns:
    """The rows whose result is true."""
    return (
        tuple(compress(keys, results)),
        tuple(compress(values, results)),
        tuple(compress(ids, results)) if ids is not None else None,
    )


def _is_of_engine(error: BaseException) -> bool:
    """Return whether no function of the user's raised it."""
    return error.__traceback__ is not None and error.__traceback__.tb_next is None
