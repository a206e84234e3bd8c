"""The automaton behind `stream.pattern(...)`: partial matches, and what an event makes of each.

It follows Flink's (`flink-cep`, `NFACompiler`): where a stage may be left, one partial match goes on in it and another in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from esault.topology.function import accepts
from esault.topology.pattern import ANY, STRICT, Negative, Stage, Stages

__all__ = ["Matcher", "Partial", "so_far"]

#: an event that was taken: (stage, its number)
Taken = tuple[int, int]


class Partial(NamedTuple):
    """A match that has begun. Plain values, which travel as they are."""

    #: number and time of its first event
    first: int
    start: float
    #: the stage it is in, and how many events it has taken there
    stage: int
    times: int
    #: it has let an event pass since: only what belongs to its stage can go on with it
    waits: bool
    taken: tuple[Taken, ...]


class Matcher:
    """Partial matches and complete ones out of partial matches and an event; keeps no state."""

    def __init__(self, of: Stages) -> None:
        self.of = of
        self._stages = of.stages
        negatives = [*of.negatives, *(negative for stage in of.stages for negative in stage.negatives)]
        conditions = [c for stage in of.stages for c in stage.where] + [c for each in negatives for c in each.where]
        #: whether a condition, by its identity, is asked about what has matched so far, too; an object with `__call__` may have no hash
        self._iterative = {id(condition): not accepts(condition, 1) for condition in conditions}
        first = of.stages[0]
        asked = any(self._iterative[id(condition)] for condition in first.where)
        #: whether a match begins with a value, where none has begun; None: that is not known by the value alone
        self.begins: Callable[[Any], bool] | None = (
            None if first.optional or not first.least or asked else _all_of(first.where)
        )

    def __reduce__(self) -> Any:
        """Be made anew where it is copied or goes elsewhere: conditions have another identity there."""
        return Matcher, (self.of,)

    def step(
        self, partials: Sequence[Partial], number: int, at: float, value: Any, values: Mapping[int, Any]
    ) -> tuple[list[Partial], list[Partial]]:
        """Return what goes on, and what is complete; `values` holds the events that were taken, by their numbers."""
        event = _Event(self, number, value, values)
        going: list[Partial] = []
        complete: list[Partial] = []
        for partial in (*partials, Partial(number, at, 0, 0, False, ())):
            found = list(self._after(partial, event))
            if None in found:
                continue  # what must not come has come
            for new in found:
                assert new is not None
                if not new.taken:
                    continue  # it has not begun
                if new.stage == len(self._stages) and not new.waits:
                    complete.append(new)
                    continue
                took = len(new.taken) > len(partial.taken)
                if took and self._ends(new) and not self.of.negatives:
                    complete.append(new)
                if not took or self._goes_on(new):
                    going.append(new)
        return going, complete

    def given_up(self, partial: Partial) -> bool:
        """Return whether a partial match is complete when its time is over: none of what must not follow has come."""
        negatives = self.of.negatives
        if not negatives or partial.stage == len(self._stages):
            return bool(negatives)
        return not partial.waits and self._ends(partial) and not any(negative.strict for negative in negatives)

    def was_complete(self, partial: Partial) -> bool:
        """Return whether a partial match goes on from a complete one, or is one in the end."""
        if self.of.negatives:
            return self.given_up(partial)
        stage = self._stages[partial.stage]
        enough = partial.times >= stage.least if partial.times else stage.optional
        return enough and all(later.optional for later in self._stages[partial.stage + 1 :])

    # what an event makes of one ---------------------------------------------------------------------

    def _after(self, partial: Partial, event: _Event) -> Iterator[Partial | None]:
        """Yield the partial matches that this one becomes; None: it is over."""
        if partial.stage < len(self._stages):
            yield from self._in_stage(partial, partial.stage, partial.times, partial.waits, event)
        elif self._forbidden(partial, partial.stage, event):
            yield None
        else:
            yield partial

    def _in_stage(
        self, partial: Partial, index: int, count: int, waits: bool, event: _Event
    ) -> Iterator[Partial | None]:
        stage = self._stages[index]
        # A stage that is repeated hears of what must not follow it before it is full, as in Flink.
        if (not count and self._forbidden(partial, index, event)) or (
            count and self._follows_forbidden(index, event, partial)
        ):
            yield None
            return
        if count < stage.most:
            contiguity = stage.inner if count else stage.contiguity
            matches = event.matches(stage, partial)
            if matches:
                taken = (*partial.taken, (index, event.number))
                yield partial._replace(stage=index, times=count + 1, waits=False, taken=taken)
            if contiguity == ANY or (contiguity != STRICT and not matches):
                yield partial._replace(stage=index, times=count, waits=True)
        if not waits and (count >= stage.least or (not count and stage.optional)):
            if index + 1 < len(self._stages):
                yield from self._in_stage(partial, index + 1, 0, False, event)
            elif count and self.of.negatives:
                yield self._behind_last(partial, event)

    def _behind_last(self, partial: Partial, event: _Event) -> Partial | None:
        """Behind all stages there is only what must not come."""
        end = len(self._stages)
        if self._forbidden(partial, end, event):
            return None
        later = any(not negative.strict for negative in self.of.negatives)
        return partial._replace(stage=end, times=0, waits=later)

    def _negatives(self, index: int) -> tuple[Negative, ...]:
        return self.of.negatives if index == len(self._stages) else self._stages[index].negatives

    def _forbidden(self, partial: Partial, index: int, event: _Event) -> bool:
        """Return whether this event must not come, for what waits for stage `index`."""
        if not partial.taken:
            return False
        # Those before stages that were left out hold until an event is taken.
        first = partial.taken[-1][0] + 1
        fresh = not partial.waits
        return any(
            event.is_all_of(negative.where, partial)
            for between in range(first, index + 1)
            for negative in self._negatives(between)
            if not negative.strict or fresh
        )

    def _follows_forbidden(self, index: int, event: _Event, partial: Partial) -> bool:
        return any(
            event.is_all_of(negative.where, partial) for negative in self._negatives(index + 1) if not negative.strict
        )

    def _ends(self, partial: Partial) -> bool:
        """Return whether all stages that must come have come."""
        index = partial.stage
        return partial.times >= self._stages[index].least and all(s.optional for s in self._stages[index + 1 :])

    def _goes_on(self, partial: Partial) -> bool:
        """Return whether another event may be taken, or forbidden."""
        more = partial.times < self._stages[partial.stage].most or partial.stage + 1 < len(self._stages)
        return more or bool(self.of.negatives)


class _Event:
    """An event, whose conditions are asked once where they depend on nothing else."""

    def __init__(self, matcher: Matcher, number: int, value: Any, values: Mapping[int, Any]) -> None:
        self.number = number
        self._value = value
        self._values = values
        self._matcher = matcher
        self._known: dict[int, bool] = {}

    def matches(self, stage: Stage, partial: Partial) -> bool:
        return self.is_all_of(stage.where, partial)

    def is_all_of(self, conditions: Sequence[Callable[..., object]], partial: Partial) -> bool:
        """Return whether all these conditions are true."""
        return all(self._is(condition, partial) for condition in conditions)

    def _is(self, condition: Callable[..., object], partial: Partial) -> bool:
        place = id(condition)
        if self._matcher._iterative[place]:
            return bool(condition(self._value, so_far(self._matcher.of, partial, self._values)))
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = bool(condition(self._value))
        return known


def _all_of(conditions: Sequence[Callable[..., object]]) -> Callable[[Any], bool]:
    if len(conditions) == 1:
        return lambda value, condition=conditions[0]: bool(condition(value))  # type: ignore[misc]
    return lambda value: all(condition(value) for condition in conditions)


def so_far(of: Stages, partial: Partial, values: Mapping[int, Any]) -> dict[str, list[Any]]:
    """Return the values that were taken, by the names of stages."""
    found: dict[str, list[Any]] = {}
    for stage, number in partial.taken:
        found.setdefault(of.stages[stage].name, []).append(values[number])
    return found
