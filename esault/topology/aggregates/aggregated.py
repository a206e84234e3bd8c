"""The bolt behind `stream.aggregate(...)`, and the step before it that combines what goes into the same window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from esault.topology.aggregates.aggregate import Aggregate
from esault.topology.bolt import Bolt
from esault.topology.window import TimeWindow

__all__ = ["Aggregated", "Combine", "LateResults", "Partial", "is_one_value"]

#: (time, what is known of several values, None) or (time, None, a value)
Partial = tuple[Any, tuple[Any, ...] | None, Any]

#: a batch whose rows go into nearly as many windows as there are rows is not worth it ...
FEW = 0.7
#: ... and so many batches after it are not tried
UNTRIED = 15


class Aggregated(Bolt[Any, Any, Any, Any]):
    """It keeps what is known of its key's values, and emits the aggregates by their names: at the end of its window, or each new state."""

    __slots__ = ("aggregates", "combined", "known", "paned", "windowed")

    def __init__(
        self, aggregates: Mapping[str, Aggregate], windowed: bool, combined: bool, paned: bool = False
    ) -> None:
        self.aggregates = aggregates
        self.windowed = windowed
        #: its window has several results, and each says which it is
        self.paned = paned
        #: values are `Partial`
        self.combined = combined
        #: in the order of the aggregates; empty before the first value
        self.known: list[Any] = []

    def process(self, key: Any, value: Any) -> None:
        """Take one value in, or what is known of several."""
        each = self.aggregates.values()
        if self.combined:
            _, partial, value = value
            if partial is not None:
                self._merge([of.read(wired) for of, wired in zip(each, partial)])
                return
        known = self.known
        try:
            self.known = [of.add(a, value) for of, a in zip(each, known)] if known else [of.first(value) for of in each]
        except Exception as error:  # all of them take it in, or none
            culprit = self._leave_out(value)
            if culprit is None or type(error) is not TypeError:
                raise
            raise TypeError(f"{culprit}: {error}") from error
        if not self.windowed:
            self.emit(key, self._results())

    def _merge(self, others: list[Any]) -> None:
        """Take in what is known of several values: all aggregates do, or none."""
        if not self.known:
            self.known = others
            return
        merged: list[Any] = []
        try:
            for of, known, other in zip(self.aggregates.values(), self.known, others):
                merged.append(of.merge(known, other))
        except Exception:
            for of, known, other in zip(self.aggregates.values(), self.known, others[: len(merged)]):
                of.take_out(known, other)
            raise
        self.known = merged

    def _leave_out(self, value: Any) -> str | None:
        """Return which aggregate does not take a value in. Those before it give it back."""
        known = self.known
        for i, (name, of) in enumerate(self.aggregates.items()):
            try:
                of.try_add(known[i], value) if known else of.first(value)
            except Exception:
                for before, a in zip(self.aggregates.values(), known[:i]):
                    before.take_back(a)
                return f"{name!r}, {of!r}"
        return None

    def combine(self, other: Aggregated) -> None:
        """Take in what is known of other values of the same key and window."""
        if other.known:
            each, known = self.aggregates.values(), self.known
            self.known = [of.merge(a, b) for of, a, b in zip(each, known, other.known)] if known else other.known

    def finish(self) -> None:
        """Emit what the window came to."""
        if self.windowed and self.known:
            pane = {"pane": tuple(self.pane)} if self.paned else {}
            self.emit(self.key, {"start": self.window.start, "end": self.window.end, **pane, **self._results()})

    def _results(self) -> dict[str, Any]:
        return {name: of.result(known) for (name, of), known in zip(self.aggregates.items(), self.known)}

    def __getstate__(self) -> dict[str, Any]:
        return {"known": [of.wire(known) for of, known in zip(self.aggregates.values(), self.known)]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.known = [of.read(wired) for of, wired in zip(self.aggregates.values(), state["known"])]


class LateResults:
    """The function that makes dicts of aggregates of what came too late for its window."""

    def __init__(self, aggregates: Mapping[str, Aggregate]) -> None:
        self._aggregates = aggregates

    def __call__(self, partial: Partial) -> dict[str, Any]:
        _, known, value = partial
        return {
            name: of.result(of.first(value) if known is None else of.read(known[i]))
            for i, (name, of) in enumerate(self._aggregates.items())
        }


def is_one_value(partial: Any) -> bool:
    """Return whether a `Partial` holds a value by itself, its last part, as it came."""
    return type(partial) is tuple and len(partial) == 3 and partial[1] is None


class Combine:
    """A function of a batch: it puts what is known of rows that have key and windows in common in their place."""

    def __init__(self, aggregates: Mapping[str, Aggregate], kind: TimeWindow, time: Callable[[Any], float]) -> None:
        self.aggregates = tuple(aggregates.values())
        self.kind = kind
        self.time = time
        self._untried = 0

    def time_of(self, partial: Partial) -> Any:
        """The time of what this made."""
        at, _, value = partial
        return self.time(value) if at is None else at

    def __call__(
        self, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None
    ) -> tuple[Sequence[Any], Sequence[Any], Sequence[str] | None]:
        """Keys, values and ids of a batch, with fewer rows where that can be; what raises here is left to the bolt, row by row."""
        if self._untried:
            self._untried -= 1
            return self.as_they_are(keys, values, ids)
        try:
            return self._combined(keys, values, ids)
        except Exception:
            return self.as_they_are(keys, values, ids)

    def as_they_are(
        self, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None
    ) -> tuple[Sequence[Any], Sequence[Any], Sequence[str] | None]:
        """The batch with nothing combined."""
        return keys, [(None, None, value) for value in values], ids

    def restart(self) -> None:
        """Combine as if there had been no batch before."""
        self._untried = 0

    def _combined(
        self, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None
    ) -> tuple[Sequence[Any], Sequence[Any], Sequence[str] | None]:
        time, indices_of, aggregates = self.time, self.kind.indices, self.aggregates
        # A key is looked up with its type: 1 is no True.
        groups: dict[Any, tuple[int, Any, list[Any]]] = {}
        for i, (key, value) in enumerate(zip(keys, values)):
            at = time(value)
            place = (type(key), key if type(key) is str else repr(key), *indices_of(at))
            group = groups.get(place)
            if group is None:
                groups[place] = (i, at, [of.first(value) for of in aggregates])
            else:
                known = group[2]
                known[:] = [of.add(a, value) for of, a in zip(aggregates, known)]
        if len(groups) > FEW * len(keys):
            self._untried = UNTRIED
            return self.as_they_are(keys, values, ids)
        found = list(groups.values())
        return (
            [keys[i] for i, _, _ in found],
            [(at, tuple([of.wire(a) for of, a in zip(aggregates, known)]), None) for _, at, known in found],
            None if ids is None else [ids[i] for i, _, _ in found],
        )
