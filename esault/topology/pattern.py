"""Patterns of tuples: the stages that a match goes through, in Flink's words of contiguity."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from esault.errors import TopologyError
from esault.topology.arguments import check_name, check_seconds
from esault.topology.function import accepts, check_function
from esault.value_class import value_class

__all__ = ["ANY", "NEXT", "STRICT", "Negative", "Pattern", "Skip", "Stage", "Stages"]

V = TypeVar("V")
#: a condition on a value, or on a value and what has matched so far: stage -> values
Condition = Callable[..., object]

#: what may stand between two tuples of a match: nothing; what does not match; anything, matching tuples included
STRICT, NEXT, ANY = "next", "followed_by", "followed_by_any"


@value_class(frozen=True)
class Negative:
    """A stage that must not come; `strict`: not right behind the tuple before it."""

    name: str
    where: tuple[Condition, ...]
    strict: bool


@value_class(frozen=True)
class Stage:
    """A stage that takes from `least` to `most` tuples."""

    name: str
    where: tuple[Condition, ...]
    contiguity: str
    #: between the tuples of the stage
    inner: str = NEXT
    least: int = 1
    most: float = 1
    optional: bool = False
    #: what must not come between the stage before and this one
    negatives: tuple[Negative, ...] = ()


@value_class(frozen=True)
class Skip:
    """The others that a match drops: those that begin before one of its tuples, which `to` and `stage` name."""

    #: "none", "next", "past_last", "first" or "last"
    to: str = "none"
    stage: str = ""


@value_class(frozen=True)
class Stages:
    """A pattern as it is matched."""

    stages: tuple[Stage, ...]
    #: what must not come behind the last one
    negatives: tuple[Negative, ...]
    within: float
    skip: Skip


class Pattern(Generic[V]):
    """A sequence of stages that tuples of one key go through, in the order of their times. Each method returns a longer pattern.

    `where` is a function of a value, or of a value and what has matched so far, a dict of lists by the names of stages. All methods raise
    TopologyError for a mistake in their arguments.
    """

    def __init__(self) -> None:
        self._stages: tuple[Stage, ...] = ()
        self._negatives: tuple[Negative, ...] = ()
        self._within: float | None = None
        self._skip = Skip()

    def __repr__(self) -> str:
        return f"<Pattern {' > '.join(self._names) or 'empty'}>"

    @property
    def _names(self) -> list[str]:
        names = [name for s in self._stages for name in (*[n.name for n in s.negatives], s.name)]
        return names + [negative.name for negative in self._negatives]

    # stages -----------------------------------------------------------------------------------------

    def begin(self, name: str, where: Condition | None = None) -> Pattern[V]:
        """Begin with a tuple for which `where` is true; without it, any."""
        if self._stages:
            raise TopologyError(f"pattern: it begins with {self._stages[0].name!r} already; write followed_by(...)")
        return self._with_stage(name, where, STRICT, begins=True)

    def next(self, name: str, where: Condition | None = None) -> Pattern[V]:
        """Go on with the very next tuple of the key (strict contiguity)."""
        return self._with_stage(name, where, STRICT)

    def followed_by(self, name: str, where: Condition | None = None) -> Pattern[V]:
        """Go on with the next tuple that matches; others may come in between (relaxed contiguity)."""
        return self._with_stage(name, where, NEXT)

    def followed_by_any(self, name: str, where: Condition | None = None) -> Pattern[V]:
        """Go on with each tuple that matches, a match for each (non-deterministic relaxed contiguity)."""
        return self._with_stage(name, where, ANY)

    def not_next(self, name: str, where: Condition) -> Pattern[V]:
        """The very next tuple is none of these."""
        return self._with_negative(name, where, strict=True)

    def not_followed_by(self, name: str, where: Condition) -> Pattern[V]:
        """None of these comes before the next stage; at the end of a pattern, none before `within` is over."""
        return self._with_negative(name, where, strict=False)

    # of the last stage ------------------------------------------------------------------------------

    def where(self, condition: Condition) -> Pattern[V]:
        """Ask one more condition of the last stage: all must be true."""
        if self._negatives:
            last = self._negatives[-1]
            checked = _condition(f"pattern, stage {last.name!r}", condition)
            new = dataclasses.replace(last, where=(*last.where, *checked))
            return self._copy(negatives=(*self._negatives[:-1], new))
        last_stage = self._last("where")
        checked = _condition(f"pattern, stage {last_stage.name!r}", condition)
        return self._change("where", where=(*last_stage.where, *checked))

    def times(self, least: int, most: int | None = None) -> Pattern[V]:
        """The last stage takes so many tuples, or from `least` to `most`."""
        most = least if most is None else most
        for number in (least, most):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise TopologyError(f"pattern: times({least!r}, {most!r}) takes whole numbers from 1 on")
        if most < least:
            raise TopologyError(
                f"pattern: times({least}, {most}) is from {least} to fewer; write times({most}, {least})"
            )
        return self._change("times", least=least, most=most)

    def one_or_more(self) -> Pattern[V]:
        """The last stage takes any number of tuples, one at least: a match for each number of them."""
        return self._change("one_or_more", least=1, most=math.inf)

    def times_or_more(self, least: int) -> Pattern[V]:
        """The last stage takes `least` tuples or more."""
        return self._change("times_or_more", least=self.times(least)._stages[-1].least, most=math.inf)

    def optional(self) -> Pattern[V]:
        """The last stage may be left out."""
        return self._change("optional", optional=True)

    def consecutive(self) -> Pattern[V]:
        """Nothing may come between the tuples of the last stage."""
        return self._change("consecutive", inner=STRICT)

    def allow_combinations(self) -> Pattern[V]:
        """Of the tuples that the last stage may take, any may be left out: a match for each choice."""
        return self._change("allow_combinations", inner=ANY)

    # of the whole -----------------------------------------------------------------------------------

    def within(self, seconds: float) -> Pattern[V]:
        """All of a match is less than so many seconds of event time from its first tuple. Required: it is the end of state."""
        return self._copy(within=check_seconds("pattern", "within", seconds))

    def skip_to_next(self) -> Pattern[V]:
        """A match drops all others that begin with the same tuple."""
        return self._copy(skip=Skip("next"))

    def skip_past_last(self) -> Pattern[V]:
        """A match drops all others that begin before it ends: each tuple is in one match at most."""
        return self._copy(skip=Skip("past_last"))

    def skip_to_first(self, stage: str) -> Pattern[V]:
        """A match drops all others that begin before its first tuple of this stage."""
        return self._copy(skip=Skip("first", stage))

    def skip_to_last(self, stage: str) -> Pattern[V]:
        """A match drops all others that begin before its last tuple of this stage."""
        return self._copy(skip=Skip("last", stage))

    def checked(self, where: str) -> Stages:
        """Return the pattern as it is matched. Raises TopologyError."""
        if not self._stages:
            raise TopologyError(
                f"{where}: the pattern has no stages; write Pattern().begin('first', lambda value: ...)"
            )
        if self._within is None:
            raise TopologyError(
                f"{where}: nothing says when a match that has begun is given up, so that what has begun would be kept for ever; end the "
                "pattern with .within(seconds)"
            )
        if all(stage.optional for stage in self._stages):
            raise TopologyError(f"{where}: all stages are optional, so that no tuple at all would match; one must come")
        skip = self._skip
        if skip.stage and skip.stage not in {stage.name for stage in self._stages}:
            raise TopologyError(f"{where}: the pattern has no stage {skip.stage!r} that a match could skip to")
        return Stages(self._stages, self._negatives, self._within, skip)

    # making -----------------------------------------------------------------------------------------

    def _copy(
        self,
        stages: Sequence[Stage] | None = None,
        negatives: Sequence[Negative] | None = None,
        within: float | None = None,
        skip: Skip | None = None,
    ) -> Pattern[V]:
        made = Pattern[V]()
        made._stages = self._stages if stages is None else tuple(stages)
        made._negatives = self._negatives if negatives is None else tuple(negatives)
        made._within = self._within if within is None else within
        made._skip = self._skip if skip is None else skip
        return made

    def _with_stage(self, name: str, where: Condition | None, contiguity: str, begins: bool = False) -> Pattern[V]:
        if not begins:
            self._last(contiguity)
        stage = Stage(self._new_name(name), _condition(f"pattern, stage {name!r}", where), contiguity)
        return self._copy((*self._stages, dataclasses.replace(stage, negatives=self._negatives)), ())

    def _with_negative(self, name: str, where: Condition, strict: bool) -> Pattern[V]:
        self._last("not_next" if strict else "not_followed_by")
        if where is None:
            raise TopologyError(f"pattern, stage {name!r}: it says what must not come; give it a condition")
        negative = Negative(self._new_name(name), _condition(f"pattern, stage {name!r}", where), strict)
        return self._copy(negatives=(*self._negatives, negative))

    def _new_name(self, name: str) -> str:
        check_name("pattern, stage", name)
        if name in self._names:
            raise TopologyError(f"pattern: it has a stage {name!r} already; names of stages are unique")
        return name

    def _last(self, word: str) -> Stage:
        if not self._stages:
            raise TopologyError(f"pattern: {word}(...) needs a stage before it; write Pattern().begin('first', ...)")
        return self._stages[-1]

    def _change(self, word: str, **changes: Any) -> Pattern[V]:
        last = self._last(word)
        if self._negatives:
            raise TopologyError(
                f"pattern: {word}(...) is about the last stage, and {self._negatives[-1].name!r} must not come at all"
            )
        return self._copy((*self._stages[:-1], dataclasses.replace(last, **changes)))


def _condition(where: str, condition: Condition | None) -> tuple[Condition, ...]:
    if condition is None:
        return ()
    if callable(condition) and not accepts(condition, 1):
        check_function(where, condition, takes=("the value", "what has matched so far"))
    else:
        check_function(where, condition, takes=("the value",))
    return (condition,)
