"""What Flink's CEP says that quantifiers and iterative conditions match, for the same events; the facts alone, each with its origin."""

from __future__ import annotations

from itertools import combinations as combined

import pytest
from test_patterns import ANY, BEFORE, NEXT, STRICT, A, C, begin, has, matches, then

from esault.errors import TopologyError
from esault.patterns import Pattern

#: c, then a's between others, then b: what the cases below run through
PLAIN, FAR_APART, WITH_NEXT = "c a1 a2 a3 b", "c f a1 f a2 a3 b", "c a1 f a2 f a3 b"
FOUR = "c d a1 a2 a3 d a4 b"

#: name -> how a follows c, how often it comes, events, and the a's of each match of c a b; - for none
OF_A = {
    # TimesRangeITCase
    "testTimesRange": (STRICT, lambda a: a.times(1, 3).allow_combinations(), PLAIN, "123 12 13 1"),
    "testTimesRangeFromZero": (STRICT, lambda a: a.times(1, 2).allow_combinations().optional(), PLAIN, "12 13 1 -"),
    "testTimesRangeNonStrict": (ANY, lambda a: a.times(1, 3).allow_combinations(), FAR_APART, "123 12 13 23 1 2 3"),
    "testTimesRangeStrict": (ANY, lambda a: a.times(1, 3).consecutive().optional(), FAR_APART, "23 1 2 3 -"),
    "testTimesRangeStrictOptional": (ANY, lambda a: a.times(1, 3).optional().consecutive(), FAR_APART, "23 1 2 3 -"),
    "testTimesRangeStrictOptional1": (STRICT, lambda a: a.times(1, 3).consecutive().optional(), PLAIN, "123 12 1 -"),
    "testTimesRangeNonStrictOptional1": (NEXT, lambda a: a.times(1, 3).optional(), "c f b", "-"),
    "testTimesRangeNonStrictOptional2": (
        ANY,
        lambda a: a.times(2, 3).allow_combinations().optional(),
        FAR_APART,
        "123 12 13 23 -",
    ),
    "testTimesRangeNonStrictOptional3": (ANY, lambda a: a.times(2, 3).optional(), FAR_APART, "123 12 23 -"),
    "testTimesRangeNonStrictWithNext": (
        STRICT,
        lambda a: a.times(2, 3).allow_combinations(),
        WITH_NEXT,
        "123 12 13",
    ),
    "testTimesRangeNotStrictWithFollowedBy": (NEXT, lambda a: a.times(2, 3), PLAIN, "123 12"),
    "testTimesRangeNotStrictWithFollowedByAny": (
        ANY,
        lambda a: a.times(2, 3).allow_combinations(),
        PLAIN,
        "123 12 23 13",
    ),
    # TimesOrMoreITCase, without a time of its own for the loop
    "testTimesOrMore": (NEXT, lambda a: a.times_or_more(2).allow_combinations(), PLAIN, "123 12 13"),
    "testTimesOrMoreNonStrict": (ANY, lambda a: a.times_or_more(2).allow_combinations(), FAR_APART, "123 12 13 23"),
    "testTimesOrMoreStrict": (ANY, lambda a: a.times(2).consecutive(), FAR_APART, "23"),
    "testTimesOrMoreStrictOptional": (
        ANY,
        lambda a: a.times_or_more(2).consecutive().optional(),
        FAR_APART,
        "23 -",
    ),
    "testTimesOrMoreStrictOptional2": (
        STRICT,
        lambda a: a.times_or_more(2).consecutive().optional(),
        PLAIN,
        "123 12 -",
    ),
    "testTimesOrMoreNonStrictOptional": (NEXT, lambda a: a.times_or_more(2).optional(), "c f b", "-"),
    "testTimesOrMoreNonStrictOptional2": (
        ANY,
        lambda a: a.times_or_more(2).allow_combinations().optional(),
        FAR_APART,
        "123 12 23 13 -",
    ),
    "testTimesOrMoreNonStrictOptional3": (ANY, lambda a: a.times_or_more(2).optional(), FAR_APART, "123 12 23 -"),
    "testTimesOrMoreNonStrictWithNext": (
        STRICT,
        lambda a: a.times_or_more(2).allow_combinations(),
        WITH_NEXT,
        "123 12 13",
    ),
    "testTimesOrMoreNotStrictWithFollowedBy": (NEXT, lambda a: a.times_or_more(2), PLAIN, "123 12"),
    "testTimesOrMoreNotStrictWithFollowedByAny": (
        ANY,
        lambda a: a.times_or_more(2).allow_combinations(),
        PLAIN,
        "123 12 23 13",
    ),
    # NFAITCase
    "testTimesStrictWithNextAndConsecutive": (STRICT, lambda a: a.times(2).consecutive(), "c a1 f a2 a3 b", ""),
    "testTimesNonStrictOptional1": (NEXT, lambda a: a.times(3).optional(), "c f b", "-"),
    "testTimesNonStrictOptional2": (
        ANY,
        lambda a: a.times(2).allow_combinations().optional(),
        FAR_APART,
        "12 13 23 -",
    ),
    "testTimesNonStrictOptional3": (ANY, lambda a: a.times(2).optional(), FAR_APART, "12 23 -"),
    "testTimesStrictOptional": (ANY, lambda a: a.times(2).consecutive().optional(), FAR_APART, "23 -"),
    "testOneOrMoreStrictOptional": (
        ANY,
        lambda a: a.one_or_more().consecutive().optional(),
        FAR_APART,
        "23 1 2 3 -",
    ),
    "testTimesStrictOptional1": (STRICT, lambda a: a.times(2).consecutive().optional(), PLAIN, "12 -"),
    "testOptionalTimesNonStrictWithNext": (
        STRICT,
        lambda a: a.times(2).allow_combinations().optional(),
        WITH_NEXT,
        "12 13 -",
    ),
    "testStrictOneOrMore": (NEXT, lambda a: a.one_or_more().consecutive(), FOUR, "123 12 1"),
    "testSkipTillNextOneOrMore": (NEXT, lambda a: a.one_or_more(), FOUR, "1234 123 12 1"),
    "testSkipTillAnyOneOrMore": (
        NEXT,
        lambda a: a.one_or_more().allow_combinations(),
        FOUR,
        "1234 134 123 124 12 13 14 1",
    ),
    "testStrictEagerZeroOrMore": (
        NEXT,
        lambda a: a.one_or_more().optional().consecutive(),
        FOUR,
        "123 12 1 -",
    ),
    "testSkipTillAnyZeroOrMore": (
        NEXT,
        lambda a: a.one_or_more().optional().allow_combinations(),
        FOUR,
        "1234 124 134 14 123 12 13 1 -",
    ),
    "testSkipTillNextZeroOrMore": (NEXT, lambda a: a.one_or_more().optional(), FOUR, "1234 123 12 1 -"),
    "testTimesStrict": (ANY, lambda a: a.times(2).consecutive(), FAR_APART, "23"),
    "testTimesNonStrict": (ANY, lambda a: a.times(2).allow_combinations(), FAR_APART, "12 13 23"),
}


@pytest.mark.parametrize("name", OF_A)
def test_flink_takes_as_many(name):
    contiguity, often, events, found = OF_A[name]
    pattern = then(often(then(C, contiguity, "a")), NEXT, "b")
    expected = [" ".join(["c", *(f"a{n}" for n in each if n != "-"), "b"]) for each in found.split()]
    assert sorted(matches(pattern, events).matches) == sorted(expected)


def price(value):
    return int(value[-1])


def below_five(stage, letters):
    """Flink's iterative condition: the prices of the loop so far and this one's are below 5."""
    return lambda value, so_far: value[0] in letters and sum(map(price, [*so_far.get(stage, []), value])) < 5


def branching(often):
    """A start, foos below five in all, an end; the fourth foo, n1, has the price 1."""
    return then(often(begin("s").followed_by("m", below_five("m", "mn")).one_or_more()), NEXT, "e")


def looping(often):
    return then(often(Pattern().begin("s", below_five("s", "s")).one_or_more()).optional(), NEXT, "e")


def at_least_two(value, so_far):
    return value == "e" and sum(map(price, so_far["begin-s"])) >= 2


def up_to_five(value, so_far):
    return value[0] == "s" and sum(map(price, [*so_far.get("again", []), value])) <= 5


def sum_is_four(value, so_far):
    return sum(map(price, so_far.get("a", []))) == 4


def as_dear_as_the_first(value, so_far):
    return value[0] == "b" and price(value) == price(so_far["begin-a"][0])


def same(pattern):
    return pattern


def all_of_them(pattern):
    return pattern.allow_combinations()


def before_zero_or_more(often, contiguity):
    """a !c b* d."""
    return then(often(then(A.not_followed_by("no", has("c")), contiguity, "b").one_or_more().optional()), NEXT, "d")


EAGER = [f"a1 b1{b} d1" for b in (" b4 b5 b6", " b4 b5", " b4", "")]
EACH = [f"a1 b1{b} d1" for b in (" b4 b5 b6", " b4 b6", " b4 b5", " b4", " b5 b6", " b5", " b6", "")]

CASES = {
    # IterativeConditionsITCase
    "testIterativeWithBranchingPatternEager": (
        branching(same),
        "s1 m1 m2 s2 m3 n1 x e",
        ["s1 m1 m2 n1 e", "s1 m1 m2 e", "s1 m1 e", "s2 m3 n1 e", "s2 m3 e"],
    ),
    "testIterativeWithBranchingPatternCombinations": (
        branching(all_of_them),
        "s1 m1 m2 s2 m3 n1 x e",
        ["s1 m1 m2 n1 e", "s1 m1 m2 e", "s1 m1 m3 e", "s2 m3 n1 e", "s1 m1 n1 e", "s1 m1 e", "s2 m3 e"],
    ),
    "testIterativeWithLoopingStartingEager": (
        looping(same),
        "s1 s2 s3 e",
        ["s1 s2 e", "s1 e", "s2 e", "s3 e", "e"],
    ),
    "testIterativeWithLoopingStartingCombination": (
        looping(all_of_them),
        "s1 s2 s3 e",
        ["s1 s2 e", "s1 s3 e", "s1 e", "s2 e", "s3 e", "e"],
    ),
    "testIterativeWithPrevPatternDependency": (
        begin("s").one_or_more().followed_by("e", at_least_two),
        "s1 s2 e",
        ["s1 s2 e", "s2 e"],
    ),
    "testIterativeWithABACPattern": (
        then(then(begin("s"), ANY, "m").followed_by("again", up_to_five).one_or_more(), NEXT, "e"),
        "s1 m1 s2 s3 m2 s4 m3 m4 e",
        ["s1 m1 s2 s3 e", "s1 m1 s2 e", "s1 m2 s4 e", "s2 m2 s4 e", "s3 m2 s4 e"],
    ),
    "testIterativeWithPrevPatternDependencyAfterBranching": (
        then(begin("s").one_or_more(), ANY, "m").followed_by_any("e", at_least_two),
        "s1 s2 m1 s3 m2 e",
        ["s1 s2 m1 e", "s2 m1 e", "s1 s2 m2 e", "s1 s2 s3 m2 e", "s2 s3 m2 e", "s2 m2 e", "s3 m2 e"],
    ),
    # NFAITCase
    "testSimplePatternNFA": (then(then(begin("s"), NEXT, "m"), NEXT, "e"), "s1 x y m s2 e", ["s1 m e"]),
    "testComplexBranchingAfterZeroOrMore": (
        then(then(then(then(C, ANY, "a").one_or_more().allow_combinations().optional(), ANY, "b"), ANY, "d"), ANY, "e"),
        "c a1 a2 a3 b d1 d2 e",
        [
            " ".join(["c", *some, "b", d, "e"])
            for d in ("d1", "d2")
            for n in range(4)
            for some in combined(("a1", "a2", "a3"), n)
        ],
    ),
    "testStartWithOptional": (then(C.optional(), NEXT, "b"), "c b", ["c b", "b"]),
    "testEndWithZeroOrMore": (
        then(C, NEXT, "a").one_or_more().optional(),
        "c a1 a2 a3",
        ["c a1 a2 a3", "c a1 a2", "c a1", "c"],
    ),
    "testEndWithOptional": (then(C, NEXT, "a").optional(), "c a1", ["c a1", "c"]),
    "testEndWithOneOrMore": (
        then(C, NEXT, "a").one_or_more(),
        "c a1 a2 a3",
        ["c a1 a2 a3", "c a1 a2", "c a1"],
    ),
    "testStartWithOneOrMoreStrict": (
        A.one_or_more().consecutive(),
        "c a1 c a2 a3",
        ["a1", "a2 a3", "a2", "a3"],
    ),
    "testBranchingPatternSkipTillNext": (
        then(then(then(begin("s"), NEXT, "m"), NEXT, "n"), ANY, "e"),
        "s m1 m2 m3 n1 n2 e",
        ["s m1 n1 e"],
    ),
    "testBranchingPatternMixedFollowedBy": (
        then(then(then(begin("s"), ANY, "m"), NEXT, "n"), ANY, "e"),
        "s m1 m2 m3 n1 n2 e",
        ["s m1 n1 e", "s m2 n1 e", "s m3 n1 e"],
    ),
    "testMultipleTakesVersionCollision": (
        then(
            all_of_them(then(all_of_them(then(C, NEXT, "a").one_or_more()), NEXT, "a", "a2").one_or_more()), NEXT, "b"
        ),
        "c a1 a2 a3 a4 a5 b",
        [
            f"c {each} b"
            for each in (
                *["a1 a2 a3 a4 a5"] * 4,
                *["a1 a2 a3 a4"] * 3,
                *["a1 a2 a3 a5", "a1 a2 a4 a5", "a1 a3 a4 a5"] * 2,
                *["a1 a2 a3"] * 2,
                *["a1 a2 a4", "a1 a2 a5", "a1 a3 a4", "a1 a4 a5"],
                "a1 a2",
            )
        ],
    ),
    # NotPatternITCase
    "testNotFollowedByBeforeOneOrMoreCombinations": (
        then(all_of_them(then(A.not_followed_by("no", has("c")), NEXT, "b").one_or_more()), NEXT, "d"),
        BEFORE,
        EACH,
    ),
    "testNotFollowedByBeforeZeroOrMoreEagerSkipTillNext": (before_zero_or_more(same, NEXT), BEFORE, EAGER),
    "testNotFollowedByBeforeZeroOrMoreCombinationsSkipTillNext": (
        before_zero_or_more(all_of_them, NEXT),
        BEFORE,
        EACH,
    ),
    "testNotFollowedByBeforeZeroOrMoreEagerSkipTillAny": (before_zero_or_more(same, ANY), BEFORE, EAGER),
    "testNotFollowedByBeforeZeroOrMoreCombinationsSkipTillAny": (
        before_zero_or_more(all_of_them, ANY),
        BEFORE,
        EACH,
    ),
    # SameElementITCase: equal events of one time
    "testEagerZeroOrMoreSameElement": (
        then(then(C, NEXT, "a").one_or_more().optional(), NEXT, "b"),
        "c a1 a1 a1 a2 d a3 a3 b",
        [" ".join(["c", *["a1", "a1", "a1", "a2", "a3", "a3"][:n], "b"]) for n in range(7)],
    ),
    "testZeroOrMoreSameElement": (
        then(all_of_them(then(C, ANY, "a").one_or_more().optional()), ANY, "b"),
        "c a1 a1 a2 d a3 a3 b",
        [" ".join(["c", *some, "b"]) for n in range(6) for some in combined(["a1", "a1", "a2", "a3", "a3"], n)],
    ),
    "testSimplePatternWSameElement": (then(then(C, ANY, "a"), NEXT, "b"), "c a a b", ["c a b", "c a b"]),
    "testIterativeConditionWSameElement": (
        all_of_them(then(C, ANY, "a").one_or_more().optional()).followed_by("end", sum_is_four),
        "c a2 a2 a2 e",
        ["c a2 a2 e", "c a2 a2 a2", "c a2 a2 e"],
    ),
    "testEndWLoopingWSameElement": (
        then(C, ANY, "a").one_or_more().optional(),
        "c a a a",
        ["c", "c a", "c a", "c a", "c a a", "c a a", "c a a a"],
    ),
    "testRepeatingPatternWSameElement": (
        then(then(then(C, NEXT, "a").one_or_more().optional(), NEXT, "b").optional(), NEXT, "a", "end"),
        "c a1 a1 a2 d b a3",
        [
            "c a1",
            "c a1 a1",
            "c b a3",
            "c a1 a1 a2",
            "c a1 b a3",
            "c a1 a1 a2 a3",
            "c a1 a1 b a3",
            "c a1 a1 a2 b a3",
        ],
    ),
    # GroupITCase: groups that come once are stages one after the other
    "testGroupNotFollowedBy": (
        then(then(then(C, ANY, "a"), NEXT, "b").not_followed_by("no", has("d")), NEXT, "e"),
        "c a1 b1 d a2 b2 e",
        ["c a2 b2 e"],
    ),
    "testGroupNotNext": (
        then(then(then(C, ANY, "a"), NEXT, "b").not_next("no", has("d")), NEXT, "e"),
        "c a1 b1 d a2 b2 e",
        ["c a2 b2 e"],
    ),
    "testGroupStartsWithOptionalPattern": (
        then(then(then(A, STRICT, "b").optional(), STRICT, "c"), STRICT, "d"),
        "a c d",
        ["a c d"],
    ),
    # AfterMatchSkipITCase: greedy is said there, and takes nothing away where what follows is strict
    "testSkipPastLastWithOneOrMoreAtBeginning": (
        then(A.one_or_more().consecutive(), STRICT, "b").skip_past_last(),
        "a1 a2 a3 b1",
        ["a1 a2 a3 b1"],
    ),
    "testSkipToLastWithOneOrMoreAtBeginning": (
        then(A.one_or_more().consecutive(), STRICT, "b").skip_to_last("begin-a"),
        "a1 a2 a3 b1",
        ["a1 a2 a3 b1", "a3 b1"],
    ),
    "testSkipToFirstWithOneOrMoreAtBeginning": (
        then(A.one_or_more().consecutive(), STRICT, "b").skip_to_first("begin-a"),
        "a1 a2 a3 b1",
        ["a1 a2 a3 b1", "a2 a3 b1", "a3 b1"],
    ),
    "testNoSkipWithOneOrMoreAtBeginning": (
        then(A.one_or_more().consecutive(), STRICT, "b"),
        "a1 a2 a3 b1",
        ["a1 a2 a3 b1", "a2 a3 b1", "a3 b1"],
    ),
    "testSkipToLastNonExistentPositionWithoutException": (
        then(then(A, STRICT, "b").one_or_more().optional().consecutive(), STRICT, "c").skip_to_first("b"),
        "a c",
        ["a c"],
    ),
    "testSkipBeforeOtherAlreadyCompleted": (
        then(A, NEXT, "c").followed_by("b", as_dear_as_the_first).skip_to_first("c"),
        "a0 c1 a1 c2 b1 b0",
        ["a0 c1 b0", "a1 c2 b1"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_flink_finds_the_same_matches(name):
    pattern, events, found = CASES[name]
    assert sorted(matches(pattern, events).matches) == sorted(found)


@pytest.mark.parametrize(
    ("pattern", "within", "events", "times", "found"),
    [
        # NotPatternITCase.testNotFollowedByWithinFirstAndLastAtEnd
        (A.not_followed_by("no", has("b")), 3, "a1 b1 a2 c b2 a3 b3", [1, 2, 4, 5, 10, 11, 13], ["a2"]),
        # NotPatternITCase.testNotFollowByBeforeTimesWithin
        (
            then(A.not_followed_by("no", has("b")), NEXT, "c").times(1, 2).optional(),
            3,
            "a1 b1 a2 c1 c2 a3 c3 c4",
            [1, 2, 10, 11, 12, 20, 21, 24],
            ["a1", "a2", "a2 c1", "a2 c1 c2", "a3", "a3 c3"],
        ),
        # NotPatternITCase.testNotFollowedByWithinAtEndAfterMatch
        (
            then(all_of_them(A.one_or_more()), NEXT, "c").not_followed_by("no", has("b")).skip_past_last(),
            5,
            "a1 a2 a3 c1 c2",
            [1, 2, 3, 4, 10],
            ["a1 a2 a3 c1"],
        ),
    ],
)
def test_flink_finds_the_same_within_a_time(pattern, within, events, times, found):
    assert sorted(matches(pattern, events, times, within).matches) == sorted(found)


@pytest.mark.parametrize(
    ("pattern", "events", "times"),
    [
        # NFAITCase.testTimesClearingBuffer
        (then(then(C, STRICT, "a").times(2), NEXT, "b"), PLAIN, [1, 2, 3, 4, 6]),
        # NFAITCase.testOptionalClearingBuffer
        (then(then(C, NEXT, "a").optional(), NEXT, "b"), "c a b", [1, 5, 6]),
        # NFAITCase.testAtLeastOneClearingBuffer
        (then(all_of_them(then(C, NEXT, "a").one_or_more()), NEXT, "b"), "c a1 a2 b", [1, 3, 4, 6]),
        # NFAITCase.testZeroOrMoreClearingBuffer
        (then(all_of_them(then(C, NEXT, "a").one_or_more()).optional(), NEXT, "b"), "c a1 a2 b", [1, 3, 4, 6]),
        # AfterMatchSkipITCase.testSharedBufferIsProperlyCleared
        (Pattern().begin("start").times(2).skip_past_last(), "a1 a2 a3 a4", [0, 1, 2, 3]),
        # SameElementITCase.testClearingBuffer
        (then(then(then(A, NEXT, "b"), NEXT, "c"), NEXT, "d"), "a b c d", [1, 2, 2, 2]),
    ],
)
def test_flink_keeps_nothing_once_the_time_is_over(pattern, events, times):
    bolt = matches(pattern, events, times, within=8)
    assert bolt.matches
    while bolt.due <= 10:
        bolt.advance(10)
    assert not bolt.needed and not bolt.values


def test_a_pattern_of_nothing_but_what_may_be_left_out_is_refused():
    """Flink takes it, and never matches nothing at all: see what differs by design."""
    with pytest.raises(TopologyError, match="all stages are optional"):
        matches(A.one_or_more().optional(), "a1")
