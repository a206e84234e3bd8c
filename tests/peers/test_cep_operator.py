"""Flink's CEPITCase and CEPOperatorTest: patterns of keys, in event time, while state goes to another owner; the facts alone.

Flink's watermark w says that no more comes up to w, ours that nothing comes before it. What is there by the clock is here by times.
"""

from __future__ import annotations

import pytest
from test_timers import Steps

from esault.patterns import Pattern

#: Flink's watermark w is eSault's w + 1
NEXT = 1
#: Flink lets a pattern have no end
FAR = 10**6


@pytest.fixture(params=[False, True], ids=["stays", "moves"])
def steps(request):
    """Steps of a pattern; with "moves" its state goes to another owner before each."""
    return lambda pattern: Steps(request.param, lambda s: s.pattern("unit", pattern))


def named(name):
    """An event is its name and some more; rows are (event, time)."""
    return lambda row: row[0][0] == name


def three(middle, within):
    return (
        Pattern()
        .begin("start", named("start"))
        .followed_by_any("middle", middle)
        .followed_by_any("end", named("end"))
        .within(within)
    )


def told(found):
    """Matches as texts: what the events say besides their names. What has another stream says so."""
    return [
        " ".join([*([stream] if stream else []), *(str(each[0][1]) for stage in match.values() for each in stage)])
        for stream, _, match in found
    ]


# Flink: CEPITCase -----------------------------------------------------------------------------------------


def test_a_simple_pattern(steps):
    """testSimplePatternCEP: a middle is one only if it is of the other kind, too"""
    run = steps(three(lambda row: row[0][0] == "middle" and row[0][2], FAR))
    for at, (name, number, sub) in enumerate(
        [
            ("barfoo", 1, False),
            ("start", 2, False),
            ("foobar", 3, False),
            ("foo", 4, True),
            ("middle", 5, False),
            ("middle", 6, True),
            ("bar", 7, True),
            ("42", 42, False),
            ("end", 8, False),
        ]
    ):
        run.give("all", (name, number, sub), at)
    assert told(run.watermark(100)) == ["2 6 8"]


def test_a_simple_pattern_of_keys(steps):
    """testSimpleKeyedPatternCEP"""
    run = steps(three(lambda row: row[0][0] == "middle" and row[0][2], FAR))
    rows = [(1, "barfoo"), (2, "start"), (3, "start"), (3, "foobar"), (4, "foo+"), (3, "middle+"), (42, "start")]
    rows += [
        (42, "middle+"),
        (5, "middle"),
        (2, "middle+"),
        (7, "bar+"),
        (42, "42"),
        (3, "end"),
        (2, "end"),
        (42, "end"),
    ]
    for at, (key, name) in enumerate(rows):
        run.give(key, (name.strip("+"), key, "+" in name), at)
    assert sorted(told(run.watermark(100))) == ["2 2 2", "3 3 3", "42 42 42"]


def test_a_simple_pattern_in_the_order_of_times(steps):
    """testSimplePatternEventTime: watermarks are five behind the times, and what comes earlier than another may be later."""
    run = steps(three(named("middle"), FAR))
    found = []
    for name, number, at in [
        ("start", 1, 5),
        ("middle", 2, 1),
        ("end", 3, 3),
        ("end", 4, 10),
        ("middle", 5, 7),
        ("middle", 5, 100),
    ]:
        assert run.give("all", (name, number), at) == []
        found += run.watermark(at - 5 + NEXT)
    assert told(found) == ["1 5 4"]


def test_a_simple_pattern_of_keys_in_the_order_of_times(steps):
    """testSimpleKeyedPatternEventTime"""
    run = steps(three(named("middle"), FAR))
    found = []
    for key, name, at in [
        (1, "start", 5),
        (1, "middle", 1),
        (2, "middle", 4),
        (2, "start", 3),
        (1, "end", 3),
        (3, "start", 5),
        (1, "end", 10),
        (2, "end", 8),
        (1, "middle", 7),
        (3, "middle", 9),
        (3, "end", 7),
    ]:
        assert run.give(key, (name, key), at) == []
        found += run.watermark(at - 5 + NEXT)
    found += run.watermark(100)
    assert sorted(told(found)) == ["1 1 1", "2 2 2"]


def test_a_pattern_of_one_stage(steps):
    """testSimplePatternWithSingleState: the first of the two pairs"""
    run = steps(Pattern().begin("start", lambda row: row[0] == (0, 1)).within(FAR))
    run.give("all", (0, 1), 0)
    run.give("all", (0, 2), 1)
    assert told(run.watermark(100)) == ["1"]


def test_two_stages_that_take_anything(steps):
    """testProcessingTimeWithWindow"""
    run = steps(Pattern().begin("start", lambda _: True).followed_by_any("end", lambda _: True).within(86400))
    run.give("all", ("", 1), 0)
    run.give("all", ("", 2), 1)
    assert told(run.watermark(100)) == ["1 2"]


def test_what_has_begun_too_long_ago(steps):
    """testTimeoutHandling: three partial matches are over, also those from which others went on"""
    run = steps(three(named("middle"), 3))
    found = []
    for name, price, at in [("start", 1, 1), ("middle", 2, 5), ("start", 2, 4), ("end", 2, 6)]:
        assert run.give("all", (name, price), at) == []
        found += run.watermark(at - 5 + NEXT)
    found += run.watermark(100)
    assert sorted(told(found)) == ["2 2 2", "timed_out 1", "timed_out 2", "timed_out 2 2"]


def test_a_stage_of_one_condition_or_another(steps):
    """testSimpleOrFilterPatternCEP"""
    run = steps(three(lambda row: row[0][1] in (2, 5), FAR))
    for number, name in enumerate(["start", "middle", "end"] * 2, 1):
        run.give("all", (name, number), number)
    assert sorted(told(run.watermark(100))) == ["1 2 3", "1 2 6", "1 5 6", "4 5 6"]


def test_a_match_skips_what_it_has(steps):
    """testSimpleAfterMatchSkip"""
    run = steps(Pattern().begin("start", named("a")).times(2).skip_past_last().within(FAR))
    for number in (1, 2, 3, 4):
        run.give("all", ("a", number), number)
    assert told(run.watermark(100)) == ["1 2", "3 4"]


# Flink: CEPOperatorTest ------------------------------------------------------------------------------------

#: those with much volume
LOUD = ("foo", "foo1", "foo2", "foo3")


def loud(row):
    return row[0][0] in LOUD


def given(run, events):
    """(event, time); each says its name."""
    for name, at in events:
        assert run.give(42, (name.rstrip("0123456789") if name not in LOUD else name, name), at) == []


def test_a_match_over_snapshots(steps):
    """testKeyedCEPOperatorCheckpointing and testKeyedCEPOperatorCheckpointingWithRocksDB"""
    run = steps(three(loud, 10))
    given(run, [("start1", 1), ("foobar", 2), ("barfoo", 3)])
    assert run.watermark(2 + NEXT) == []
    given(run, [("foo", 3), ("start2", 4), ("end", 5)])
    assert told(run.watermark(6)) == ["start1 foo end"]


def test_time_goes_on_without_events(steps):
    """testKeyedAdvancingTimeWithoutElements"""
    run = steps(three(loud, 10))
    given(run, [("start", 3)])
    assert run.watermark(5 + NEXT) == []
    assert told(run.watermark(13)) == ["timed_out start"]
    assert run.keys == set()


def test_events_at_one_time_come_as_they_came(steps):
    """testKeyedCEPOperatorNFAUpdate and testKeyedCEPOperatorNFAUpdateWithRocksDB"""
    run = steps(
        Pattern().begin("start", named("c")).followed_by("middle", named("a")).followed_by("end", named("b")).within(10)
    )
    given(run, [("c", 1), ("d", 4), ("a", 4), ("b", 4)])
    assert told(run.watermark(5)) == ["c a b"]


def test_keys_go_when_nothing_has_begun(steps):
    """testCEPOperatorCleanupEventTime"""
    run = steps(three(loud, 10))
    given(run, [("foobar", 2), ("foo1", 2), ("barfoo", 3), ("start1", 1)])
    run.give(43, ("start", "start"), 1)
    assert run.watermark(2 + NEXT) == []
    assert run.keys == {42, 43}
    given(run, [("start2", 4), ("foo2", 5), ("end1", 6)])
    found = run.watermark(11 + NEXT) + run.watermark(12 + NEXT)
    assert [text for text in told(found) if "timed_out" not in text] == [
        "start1 foo1 end1",
        "start1 foo2 end1",
        "start2 foo2 end1",
    ]
    assert run.keys == {42}
    assert run.give(42, ("foo3", "foo3"), 12) == [("late", 42, (("foo3", "foo3"), 12))]
    given(run, [("end2", 13)])
    found = run.watermark(20 + NEXT) + run.watermark(21 + NEXT)
    assert [text for text in told(found) if "timed_out" not in text] == ["start2 foo2 end2"]
    assert run.keys == set()


def test_equal_events_are_several(steps):
    """testCEPOperatorCleanupEventTimeWithSameElements"""
    pattern = Pattern().begin("start", named("c")).followed_by("many", named("a")).one_or_more().optional()
    run = steps(pattern.followed_by("one", named("b")).optional().followed_by("end", named("a")).within(10))
    given(run, [("b", 6), ("a4", 7), ("c", 1), ("a2", 3), ("a3", 3), ("a2", 3), ("d", 5)])
    assert run.watermark(2 + NEXT) == []
    assert sorted(" ".join(sorted(text.split())) for text in told(run.watermark(8 + NEXT))) == sorted(
        [
            "a2 c",
            "a2 a3 c",
            "a4 b c",
            "a2 a2 a3 c",
            "a2 a4 b c",
            "a2 a2 a3 a4 c",
            "a2 a3 a4 b c",
            "a2 a2 a3 a4 b c",
        ]
    )
    assert run.keys == {42}
    assert [stream for stream, *_ in run.watermark(17 + NEXT)] == ["timed_out"]
    assert run.keys == set()


def test_late_events_have_a_stream(steps):
    """testCEPOperatorSideOutputLateElementsEventTime"""
    run = steps(three(loud, 10))
    given(run, [("start", 6)])
    run.watermark(6 + NEXT)
    assert [run.give(41, (name,), at)[0][0] for name, at in (("a2", 4), ("a3", 5))] == ["late", "late"]
    assert run.give(41, ("a4",), 7) == []


def test_late_events_are_counted(steps):
    """testCEPOperatorLateRecordsMetric"""
    run = steps(three(loud, 10))
    run.watermark(0 + NEXT)
    late = run.give(41, ("c",), 1)
    run.watermark(2 + NEXT)
    late += run.give(41, ("a2",), 1)
    late += run.give(41, ("a3",), 3)
    run.watermark(4 + NEXT)
    late += run.give(41, ("a4",), 3)
    assert [row[2][0] for row in late] == [("a2",), ("a4",)]


def test_keys_go_by_the_clock(steps):
    """testCEPOperatorCleanupProcessingTime"""
    run = steps(three(loud, 10))
    given(run, [("start1", 0), ("foobar", 0), ("foo1", 0), ("barfoo", 0)])
    run.give(43, ("start", "start"), 0)
    assert run.watermark(0 + NEXT) == []
    assert run.keys == {42, 43}
    given(run, [("start2", 3), ("foo2", 3), ("end1", 3)])
    assert told(run.watermark(3 + NEXT)) == ["start1 foo1 end1", "start1 foo2 end1", "start2 foo2 end1"]
    given(run, [("foo3", 11), ("end2", 11)])
    found = told(run.watermark(11 + NEXT))
    assert [text for text in found if "timed_out" not in text] == ["start2 foo2 end2", "start2 foo3 end2"]
    run.watermark(21)
    assert run.keys == set()
    given(run, [("start1", 21)])
    run.watermark(22)
    assert run.keys == {42}
    run.watermark(49)
    assert run.keys == set()


def below_five(row, so_far):
    return row[0][0] == "foo" and sum(kept[0][2] for kept in so_far.get("middle", [])) + row[0][2] < 5


def test_a_condition_over_what_was_taken(steps):
    """testCEPOperatorSerializationWRocksDB: prices of the middle are below five together"""
    pattern = Pattern().begin("start", named("start")).followed_by("middle", below_five).one_or_more()
    run = steps(pattern.allow_combinations().followed_by("end", named("end")).within(FAR))
    run.watermark(0 + NEXT)
    run.give(40, ("start", "s1"), 1)
    run.give(40, ("foo", "m1", 1.0), 2)
    assert run.watermark(2 + NEXT) == []
    run.give(40, ("foo", "m3", 3.0), 5)
    run.give(40, ("foo", "m2", 2.0), 3)
    run.give(40, ("start", "s2"), 4)
    assert run.watermark(5 + NEXT) == []
    run.give(40, ("next-one", ""), 7)
    run.give(40, ("end", "e"), 8)
    run.give(40, ("foo", "m4", 1.0), 6)
    assert sorted(told(run.watermark(100 + NEXT))) == [
        "s1 m1 e",
        "s1 m1 m2 e",
        "s1 m1 m2 m4 e",
        "s1 m1 m3 e",
        "s1 m1 m4 e",
        "s2 m3 e",
        "s2 m3 m4 e",
    ]
