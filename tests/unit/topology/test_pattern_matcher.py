"""The matcher of patterns by itself: partial matches in, an event, and what goes on, is complete or is over."""

from __future__ import annotations

from esault.patterns import pattern
from esault.topology.pattern_matcher import Matcher, so_far


class Run:
    """All events so far through one matcher."""

    def __init__(self, asked):
        self.matcher = Matcher(asked.stages())
        self.partials, self.values, self.complete = [], {}, []

    def on(self, *values):
        for value in values:
            number = len(self.values) + 1
            self.values[number] = value
            self.partials, done = self.matcher.step(self.partials, number, float(number), value, self.values)
            self.complete += [so_far(self.matcher.of, match, self.values) for match in done]
        return self

    def at_the_end(self):
        """What is complete when time is over."""
        return [so_far(self.matcher.of, p, self.values) for p in self.partials if self.matcher.given_up(p)]


def is_(letter):
    return lambda value: value == letter
