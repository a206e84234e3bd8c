"""The matcher of patterns by itself: what goes on, what is complete and what is over when an event or the end of time comes."""

from __future__ import annotations

import pytest

from esault.patterns import Pattern
from esault.topology.pattern_matcher import Matcher, so_far


class Run:
    """All events so far through one matcher."""

    def __init__(self, pattern):
        self.matcher = Matcher(pattern.within(100).checked("test"))
        self.partials, self.values, self.complete = [], {}, []

    def on(self, values):
        for value in values:
            number = len(self.values) + 1
            self.values[number] = value
            self.partials, done = self.matcher.step(self.partials, number, float(number), value, self.values)
            self.complete += map(self.named, done)
        return self

    def named(self, match):
        return "".join(v for values in so_far(self.matcher.of, match, self.values).values() for v in values)

    def at_the_end(self):
        """What is complete when time is over."""
        return [self.named(partial) for partial in self.partials if self.matcher.given_up(partial)]


def is_(letters):
    return lambda value: value in letters


A = Pattern().begin("a", is_("a"))


@pytest.mark.parametrize(
    ("pattern", "events", "complete", "at_the_end"),
    [
        # what must not come next is known with the next event, and what must not follow only at the end
        (A.not_next("x", is_("x")), "ab", ["a"], []),
        (A.not_next("x", is_("x")), "ax", [], []),
        (A.not_followed_by("x", is_("x")), "abc", [], ["a"]),
        (A.not_followed_by("x", is_("x")), "abx", [], []),
        (A.one_or_more().not_followed_by("x", is_("x")), "abac", [], ["aa", "a", "a"]),
        (A.not_followed_by("x", is_("x")).next("b", is_("b")), "ab", ["ab"], []),
        (A.times(2).not_next("x", is_("x")), "aab", ["aa"], []),
        (A.times_or_more(2), "aaa", ["aa", "aaa", "aa"], []),
        (A.followed_by("b").where(is_("b")).where(is_("bc")), "acb", ["ab"], []),
        (A.next("c", is_("c")).optional().next("b", is_("b")), "ab", ["ab"], []),
        (A.next("c", is_("c")).optional().next("b", is_("b")), "acb", ["acb"], []),
    ],
)
def test_events_are_matched(pattern, events, complete, at_the_end):
    run = Run(pattern).on(events)
    assert (run.complete, run.at_the_end()) == (complete, at_the_end)


def test_a_condition_that_asks_nothing_of_the_match_is_asked_once_for_an_event():
    asked = []

    def condition(value):
        asked.append(value)
        return True

    Run(A.followed_by_any("b", condition)).on("aaab")
    assert asked == list("aab")
