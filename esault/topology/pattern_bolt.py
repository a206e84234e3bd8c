"""The bolt behind `stream.pattern(...)`: tuples of a key in the order of their times, through the automaton."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Any

from esault.topology.pattern_matcher import Matcher, Partial, so_far
from esault.topology.timed_bolt import NEVER, TimedBolt, behind

__all__ = ["TIMED_OUT", "PatternBolt"]

#: the stream of partial matches whose time was over
TIMED_OUT = "timed_out"
#: in the place of a tuple that waited, whose value is not to be held
_GONE: tuple[float, int, Any] = (NEVER, 0, None)


class PatternBolt(TimedBolt):
    """Keeps tuples until the watermark has passed them, then matches them one by one; emits matches, stage -> values."""

    # Slots, so that an object is small: there may be millions.
    __slots__ = ("complete", "first", "matched", "matcher", "number", "over", "partials", "values", "waiting")

    def __init__(self, matcher: Matcher) -> None:
        super().__init__()
        self.matcher = matcher
        #: of tuples that have come, and of those that have been matched: these number the events, in the order of their times
        self.number = self.matched = 0
        #: (time, number, value) in the order of their times, from `first` on: what is before that has been matched, and goes at once, since
        #: to take the first one out of a list moves all others
        self.waiting: list[tuple[float, int, Any]] = []
        self.first = 0
        self.partials: list[Partial] = []
        #: when the first of them is given up
        self.over = NEVER
        #: complete matches that wait for an earlier one to end, which may skip them
        self.complete: list[Partial] = []
        #: the events of partial and complete matches, by their numbers
        self.values: dict[int, Any] = {}

    def take(self, stream: str, value: Any, at: float, watermark: float) -> bool:
        """Keep it."""
        if at < watermark:
            return False
        self.number += 1
        insort(self.waiting, (at, self.number, value), self.first)
        return True

    @property
    def due(self) -> float:
        """Return when the next tuple can be matched, or the first partial match is given up."""
        waiting, first = self.waiting, self.first
        return min(behind(waiting[first][0]), self.over) if first < len(waiting) else self.over

    @property
    def current(self) -> Any:
        """Return the value that is being matched."""
        return self.waiting[self.first][2] if self.first < len(self.waiting) else None

    def advance(self, watermark: float) -> None:
        """Match one tuple, or give partial matches up, whichever comes first. Changes nothing where a condition raises."""
        begins = self.matcher.begins
        if begins is not None and not self.partials and not self.complete and self._pass_by(watermark, begins):
            return
        over, waiting, first = self.over, self.waiting, self.first
        at, _, value = waiting[first] if first < len(waiting) else _GONE
        if at >= watermark or over <= at:
            self._give_up(over)
            return
        number = self.matched + 1
        values = {**self.values, number: value}
        partials, complete = self.matcher.step(self.partials, number, at, value, values)
        self.values, self.matched = values, number
        self._settle(partials, [*self.complete, *complete])
        self._pass()

    def _pass_by(self, watermark: float, begins: Callable[[Any], bool]) -> bool:
        """Leave tuples behind with which no match begins, as most do; return whether that was all for now."""
        before = self.matched
        while self.first < len(self.waiting):
            at, _, value = self.waiting[self.first]
            if at >= watermark:
                break
            try:
                if begins(value):
                    return False
            except BaseException:
                if self.matched == before:
                    raise
                break  # raised again when it is the first, so that who asks knows which one it is
            self.matched += 1
            self._pass()
        return True

    def skip(self) -> Any:
        """Leave out the tuple at which a condition raised."""
        skipped = self.current
        self._pass()
        return skipped

    def _pass(self) -> None:
        """Leave the first one that waits behind."""
        waiting, first = self.waiting, self.first
        waiting[first] = _GONE
        self.first = first = first + 1
        if 2 * first >= len(waiting):
            del waiting[:first]
            self.first = 0

    def _give_up(self, over: float) -> None:
        within = self.matcher.of.within
        given_up = [partial for partial in self.partials if partial.start + within <= over]
        complete = [partial for partial in given_up if self.matcher.given_up(partial)]
        for partial in given_up:
            if not self.matcher.was_complete(partial):
                self.emit(self.key, self._named(partial), stream=TIMED_OUT)
        self._settle([p for p in self.partials if p.start + within > over], [*self.complete, *complete])

    def _settle(self, partials: list[Partial], complete: list[Partial]) -> None:
        """Emit complete matches, the earliest first, each of which skips others; and let go of events that are in none."""
        if self.matcher.of.skip.to == "none":
            for match in complete:
                self.emit(self.key, self._named(match))
            complete = []
        complete.sort(key=lambda match: match.first)
        while complete and complete[0].first <= min((p.first for p in partials), default=complete[0].first):
            match = complete.pop(0)
            self.emit(self.key, self._named(match))
            up_to = self._skips(match)
            partials = [partial for partial in partials if partial.first >= up_to]
            complete = [other for other in complete if other.first >= up_to]
        self._begun(partials)
        self.complete = complete
        used = {number for match in (*partials, *complete) for _, number in match.taken}
        self.values = {number: value for number, value in self.values.items() if number in used}

    def _begun(self, partials: list[Partial]) -> None:
        self.partials = partials
        starts = [partial.start for partial in partials]
        self.over = min(starts) + self.matcher.of.within if starts else NEVER

    def _skips(self, match: Partial) -> int:
        """Return the number of the event before which no match may begin any more."""
        skip = self.matcher.of.skip
        numbers = [n for stage, n in match.taken if not skip.stage or self.matcher.of.stages[stage].name == skip.stage]
        if skip.to == "next":
            return match.first + 1
        if skip.to == "past_last":
            return match.taken[-1][1] + 1
        if not numbers:  # the stage was left out
            return match.first
        return numbers[0] if skip.to == "first" else numbers[-1]

    def _named(self, match: Partial) -> dict[str, list[Any]]:
        return so_far(self.matcher.of, match, self.values)

    @property
    def needed(self) -> bool:
        """Return whether a match may come of what there is."""
        return bool(self.first < len(self.waiting) or self.partials or self.complete)

    def state(self) -> tuple[Any, ...]:
        plain = tuple(map(tuple, self.partials)), tuple(map(tuple, self.complete))
        return self.number, self.matched, tuple(self.waiting[self.first :]), *plain, tuple(self.values.items())

    def restore(self, *state: Any) -> None:
        self.number, self.matched, waiting, partials, complete, values = state
        self.waiting, self.first = [tuple(kept) for kept in waiting], 0
        self._begun(list(map(_partial, partials)))
        self.complete = list(map(_partial, complete))
        self.values = dict(values)


def _partial(state: Any) -> Partial:
    first, start, stage, times, waits, taken = state
    return Partial(first, start, stage, times, waits, tuple(map(tuple, taken)))
