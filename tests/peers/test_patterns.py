"""What tests of Flink's CEP say that patterns match, for the same events; the facts alone, each with its origin.

Events are texts that come in this order; a condition looks for a letter in them. Flink lets a pattern have no end; here it is far away.
"""

from __future__ import annotations

import pytest

from esault.patterns import Pattern
from esault.topology.pattern_bolt import PatternBolt
from esault.topology.pattern_matcher import Matcher

FAR = 10**6


class Matched(PatternBolt):
    """The bolt alone, which notes what it emits."""

    def __init__(self, pattern, within=FAR):
        super().__init__(Matcher(pattern.within(within).checked("pattern")))
        self.key, self.matches, self.timed_out = "key", [], []

    def emit(self, key, value, stream=None):
        values = [each for values in value.values() for each in values]
        (self.matches if stream is None else self.timed_out).append(" ".join(values))


def matches(pattern, events, times=None, within=FAR):
    bolt = Matched(pattern, within)
    for number, event in enumerate(events.split()):
        at = number if times is None else times[number]
        assert bolt.take("", event, at, 0)
    while bolt.waiting:
        bolt.advance(FAR // 2)
    return bolt


def has(letter):
    return lambda value: letter in value


def begin(letter):
    return Pattern().begin("begin-" + letter, has(letter))


A, B, C = begin("a"), begin("b"), begin("c")
ANY, NEXT, STRICT = "followed_by_any", "followed_by", "next"


def then(pattern, word, letter, name=None):
    return getattr(pattern, word)(name or letter, has(letter))


def not_c(many, contiguity):
    """a b+ !c d."""
    return then(many(then(A, contiguity, "b")).not_followed_by("no", has("c")), NEXT, "d")


def not_c_before(many, contiguity):
    """a !c b+ d."""
    return then(many(then(A.not_followed_by("no", has("c")), contiguity, "b")), NEXT, "d")


def one_or_more(pattern):
    return pattern.one_or_more()


def combinations(pattern):
    return pattern.one_or_more().allow_combinations()


NOT_FOLLOWED = "a1 b1 b2 b3 c1 b4 b5 b6 d1"
BEFORE = "a1 b1 c1 b4 b5 b6 d1"

CASES = {
    # NFAITCase
    "testNoConditionNFA": (Pattern().begin("1").followed_by("2"), "a b c d e", ["a b", "b c", "c d", "d e"]),
    "testAnyWithNoConditionNFA": (
        Pattern().begin("1").followed_by_any("2"),
        "a b c d e",
        ["a b", "a c", "a d", "a e", "b c", "b d", "b e", "c d", "c e", "d e"],
    ),
    "testStrictContinuityWithResults": (then(A, STRICT, "b"), "a b", ["a b"]),
    "testStrictContinuityNoResults": (then(A, STRICT, "b"), "a c b", []),
    "testBranchingPattern": (
        then(then(then(begin("s"), ANY, "m"), ANY, "n"), ANY, "e"),
        "s m1 m2 m3 n1 n2 e",
        [f"s m{m} n{n} e" for m in (1, 2, 3) for n in (1, 2)],
    ),
    "testZeroOrMore": (
        then(then(C, ANY, "a").one_or_more().allow_combinations().optional(), NEXT, "b"),
        "c a1 a2 b",
        ["c a1 a2 b", "c a1 b", "c a2 b", "c b"],
    ),
    "testEagerZeroOrMore": (
        then(then(C, NEXT, "a").one_or_more().optional(), NEXT, "b"),
        "c a1 a2 d a3 b",
        ["c a1 a2 a3 b", "c a1 a2 b", "c a1 b", "c b"],
    ),
    "testBeginWithZeroOrMore": (
        then(A.one_or_more().optional(), NEXT, "b"),
        "a1 a2 a3 b",
        ["a1 a2 a3 b", "a1 a2 b", "a2 a3 b", "a1 b", "a2 b", "a3 b", "b"],
    ),
    "testZeroOrMoreAfterZeroOrMore": (
        then(combinations(then(combinations(then(C, ANY, "a")).optional(), NEXT, "d")).optional(), NEXT, "e"),
        "c a1 d1 d2 e",
        ["c a1 d1 d2 e", "c a1 d1 e", "c d1 d2 e", "c d1 e", "c a1 e", "c e"],
    ),
    "testZeroOrMoreAfterBranching": (
        then(combinations(then(then(then(C, ANY, "a"), ANY, "f"), ANY, "d")).optional(), NEXT, "e"),
        "c a1 a2 f d1 d2 e",
        [f"c {a} f{d} e" for a in ("a1", "a2") for d in ("", " d1", " d2", " d1 d2")],
    ),
    "testStrictContinuityNoResultsAfterZeroOrMore": (
        then(then(begin("d"), NEXT, "a").one_or_more().optional(), STRICT, "b"),
        "d a1 a2 c b",
        [],
    ),
    "testStrictContinuityResultsAfterZeroOrMore": (
        then(combinations(then(begin("d"), ANY, "a")).optional(), STRICT, "b"),
        "d a1 a2 b",
        ["d a1 a2 b", "d a2 b"],
    ),
    "testAtLeastOne": (
        then(combinations(then(C, ANY, "a")), ANY, "b"),
        "c a1 a2 b",
        ["c a1 a2 b", "c a1 b", "c a2 b"],
    ),
    "testBeginWithAtLeastOne": (
        then(combinations(A), NEXT, "b"),
        "a1 a2 a3 b",
        ["a1 a2 a3 b", "a1 a2 b", "a1 a3 b", "a2 a3 b", "a1 b", "a2 b", "a3 b"],
    ),
    "testNextZeroOrMore": (
        then(then(begin("s"), STRICT, "m").one_or_more().optional().consecutive(), NEXT, "e"),
        "s x m1 m2 m3 e",
        ["s e"],
    ),
    "testAtLeastOneEager": (
        then(then(C, ANY, "a").one_or_more(), ANY, "b"),
        "c a1 a2 a3 b",
        ["c a1 a2 a3 b", "c a1 a2 b", "c a2 a3 b", "c a3 b", "c a2 b", "c a1 b"],
    ),
    "testOptional": (then(then(C, NEXT, "a").optional(), NEXT, "b"), "c a b", ["c a b", "c b"]),
    "testTimes": (
        then(then(C, STRICT, "a").times(2).allow_combinations(), NEXT, "b"),
        "c a1 a2 a3 b",
        ["c a1 a2 b", "c a1 a3 b"],
    ),
    "testStartWithTimes": (then(A.times(2).consecutive(), NEXT, "b"), "a1 a2 a3 b", ["a1 a2 b", "a2 a3 b"]),
    "testTimesNonStrictWithNext": (
        then(then(C, STRICT, "a").times(2).allow_combinations(), NEXT, "b"),
        "c a1 f a2 f a3 b",
        ["c a1 a2 b", "c a1 a3 b"],
    ),
    "testTimesNotStrictWithFollowedByEager": (
        then(then(C, NEXT, "a").times(2), NEXT, "b"),
        "c a1 a2 a3 b",
        ["c a1 a2 b"],
    ),
    "testTimesNotStrictWithFollowedByNotEager": (
        then(then(C, ANY, "a").times(2).allow_combinations(), NEXT, "b"),
        "c a1 a2 a3 b",
        ["c a1 a2 b", "c a1 a3 b", "c a2 a3 b"],
    ),
    # NotPatternITCase
    "testNotNext": (
        then(then(A.not_next("no", has("b")), ANY, "c"), NEXT, "d"),
        "a c1 b c2 d",
        ["a c1 d", "a c2 d"],
    ),
    "testNotNextNoMatches": (then(then(A.not_next("no", has("b")), NEXT, "c"), NEXT, "d"), "a b c1 c2 d", []),
    "testNotNextNoMatchesAtTheEnd": (
        then(then(A, ANY, "c"), ANY, "d").not_next("no", has("b")),
        "a c1 c2 d b",
        [],
    ),
    "testNotFollowedBy": (
        then(then(A.not_followed_by("no", has("b")), ANY, "c"), NEXT, "d"),
        "a c1 b c2 d",
        ["a c1 d"],
    ),
    "testNotFollowedByBeforeOptional": (
        then(then(A.not_followed_by("no", has("b")), ANY, "c").optional(), NEXT, "d"),
        "a c1 b c2 d",
        ["a c1 d"],
    ),
    "testTimesWithNotFollowedBy": (
        then(then(A, ANY, "b").times(2).not_followed_by("no", has("c")), NEXT, "d"),
        "a b1 c b2 d",
        [],
    ),
    "testTimesWithNotFollowedByAfter": (
        then(then(A, ANY, "b").times(2).not_followed_by("no", has("c")), NEXT, "d"),
        "a d1 e b1 b2 c d2",
        [],
    ),
    "testIgnoreStateOfTimesWithNotFollowedBy": (
        then(then(A.not_followed_by("no", has("b")), ANY, "c").times(2).optional(), NEXT, "d"),
        "a d1 e b c1 c2 d2",
        ["a d1"],
    ),
    "testNotFollowedByBeforeOptionalAtTheEnd": (
        then(A.not_followed_by("no", has("b")), ANY, "c").optional(),
        "a c1 b c2",
        ["a c1", "a"],
    ),
    "testNotFollowedByBeforeOptionalTimes": (
        then(then(A.not_followed_by("no", has("b")), ANY, "c").times(2).optional(), NEXT, "d"),
        "a c1 b c2 d",
        ["a c1 c2 d"],
    ),
    "testNotFollowedByWithBranchingAtStart": (
        then(then(A.not_followed_by("no", has("b")), NEXT, "c"), NEXT, "d"),
        "a1 b c1 a2 c2 d",
        ["a2 c2 d"],
    ),
    "testNotNextAfterOneOrMoreSkipTillNext": (
        then(then(A, NEXT, "b").one_or_more().not_next("no", has("c")), NEXT, "d"),
        "a b1 c b2 d",
        [],
    ),
    "testNotNextAfterOneOrMoreSkipTillAny": (
        then(then(A, ANY, "b").one_or_more().not_next("no", has("c")), NEXT, "d"),
        "a b1 c b2 d",
        ["a b2 d"],
    ),
    "testNotFollowedByNextAfterOneOrMoreEager": (not_c(one_or_more, NEXT), NOT_FOLLOWED, []),
    "testNotFollowedByAnyAfterOneOrMoreEager": (
        not_c(one_or_more, ANY),
        NOT_FOLLOWED,
        [f"a1 {b} d1" for b in ("b4 b5 b6", "b4 b5", "b4", "b5 b6", "b5", "b6")],
    ),
    "testNotFollowedByNextAfterOneOrMoreCombinations": (not_c(combinations, NEXT), NOT_FOLLOWED, []),
    "testNotFollowedByAnyAfterOneOrMoreCombinations": (
        not_c(combinations, ANY),
        NOT_FOLLOWED,
        [f"a1 {b} d1" for b in ("b4 b5 b6", "b4 b5", "b4 b6", "b4", "b5 b6", "b5", "b6")],
    ),
    "testNotFollowedByAnyBeforeOneOrMoreEager": (
        not_c_before(one_or_more, ANY),
        BEFORE,
        [f"a1 b1{b} d1" for b in (" b4 b5 b6", " b4 b5", " b4", "")],
    ),
    "testNotFollowedByBeforeOneOrMoreEager": (
        not_c_before(one_or_more, NEXT),
        BEFORE,
        [f"a1 b1{b} d1" for b in (" b4 b5 b6", " b4 b5", " b4", "")],
    ),
    "testNotFollowedByAnyBeforeOneOrMoreCombinations": (
        not_c_before(combinations, ANY),
        BEFORE,
        [f"a1 b1{b} d1" for b in (" b4 b5 b6", " b4 b6", " b4 b5", " b4", " b5 b6", " b5", " b6", "")],
    ),
    # AfterMatchSkipITCase
    "testNoSkip": (
        A.times(3),
        "a1 a2 a3 a4 a5 a6",
        ["a1 a2 a3", "a2 a3 a4", "a3 a4 a5", "a4 a5 a6"],
    ),
    "testNoSkipWithFollowedByAny": (then(A, ANY, "b"), "a1 b1 a2 b2", ["a1 b1", "a1 b2", "a2 b2"]),
    "testSkipToNextWithFollowedByAny": (then(A, ANY, "b").skip_to_next(), "a1 b1 a2 b2", ["a1 b1", "a2 b2"]),
    "testNoSkipWithQuantifierAtTheEnd": (
        then(A, STRICT, "b").one_or_more(),
        "a1 b1 b2 b3",
        ["a1 b1 b2 b3", "a1 b1 b2", "a1 b1"],
    ),
    "testSkipToNextWithQuantifierAtTheEnd": (
        then(A, STRICT, "b").one_or_more().skip_to_next(),
        "a1 b1 b2 b3",
        ["a1 b1"],
    ),
    "testSkipPastLast": (A.times(3).skip_past_last(), "a1 a2 a3 a4 a5 a6", ["a1 a2 a3", "a4 a5 a6"]),
    "testSkipToFirst": (
        then(A.times(2), STRICT, "b").times(2).skip_to_first("b"),
        "ab1 ab2 ab3 ab4 ab5 ab6",
        ["ab1 ab2 ab3 ab4", "ab3 ab4 ab5 ab6"],
    ),
    "testSkipToLast": (
        then(A.times(2), STRICT, "b").times(2).skip_to_last("b"),
        "ab1 ab2 ab3 ab4 ab5 ab6 ab7",
        ["ab1 ab2 ab3 ab4", "ab4 ab5 ab6 ab7"],
    ),
    "testSkipPastLast2": (
        then(then(then(A, ANY, "b"), ANY, "c"), NEXT, "d").skip_past_last(),
        "a1 a2 b1 b2 c1 c2 d1 d2",
        ["a1 b1 c1 d1"],
    ),
    "testSkipPastLast3": (then(A, STRICT, "b").skip_past_last(), "a1 c a2 b2", ["a2 b2"]),
    "testSkipToFirstWithOptionalMatch": (
        then(then(begin("x").one_or_more().optional(), STRICT, "b"), STRICT, "c").skip_to_first("b"),
        "ab1 c1 ab2 c2",
        ["ab1 c1", "ab2 c2"],
    ),
    "testSkipToFirstAtStartPosition": (
        then(B, STRICT, "c").skip_to_first("begin-b"),
        "ab1 c1 ab2 c2",
        ["ab1 c1", "ab2 c2"],
    ),
    "testSkipToFirstWithOneOrMore": (
        then(A, STRICT, "b").one_or_more().consecutive().skip_to_first("b"),
        "a1 b1 a2 b2 b3 a3 b4",
        ["a1 b1", "a2 b2", "a3 b4"],
    ),
    "testSkipToLastWithOneOrMore": (
        then(A, STRICT, "b").one_or_more().consecutive().skip_to_last("b"),
        "a1 b1 a2 b2 b3 a3 b4",
        ["a1 b1", "a2 b2", "a3 b4"],
    ),
    "testSkipToFirstNonExistentPositionWithoutException": (
        then(then(A, STRICT, "b").one_or_more().optional().consecutive(), STRICT, "c").skip_to_first("b"),
        "a c",
        ["a c"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_flink_finds_the_same_matches(name):
    pattern, events, found = CASES[name]
    assert sorted(matches(pattern, events).matches) == sorted(found)


def test_flink_gives_up_what_began_too_long_ago():
    """NFAITCase.testSimplePatternWithTimeWindowNFA, NFAITCase.testSimplePatternWithTimeoutHandling."""
    events, times = "start1 start2 middle foobar end1 end2", [1, 2, 3, 4, 11, 13]
    pattern = then(then(begin("start"), NEXT, "middle"), NEXT, "end")
    assert matches(pattern, events, times, 10).matches == ["start2 middle end1"]
    pattern = then(then(begin("start"), ANY, "middle"), ANY, "end")
    found = matches(pattern, events, times, 10)
    assert found.matches == ["start2 middle end1"]
    assert sorted(found.timed_out) == ["start1", "start1 middle", "start2", "start2 middle"]
