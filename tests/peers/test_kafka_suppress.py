"""What Kafka Streams' own tests say of suppressed results; the facts alone, times in ms as there.

`untilWindowCloses` is how windows emit here. `untilTimeLimit` is a bolt with a timer, `Suppressed` below.
"""

from __future__ import annotations

import pytest
from steps import Panes, Rows, Sum
from test_joins import ONE_BY_ONE
from test_timers import Steps as KeySteps

from esault import Bolt, Topology, by_key
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.windows import SessionWindow, SlidingWindow, TumblingWindow


class Suppressed(Bolt):
    """The latest value of a key, so long after the first that was held back."""

    limit = 10

    def __init__(self):
        self.held = None

    def process(self, key, value):
        if self.held is None:
            self.timer("over", value[-1] + self.limit)
        self.held = value

    def on_timer(self, name, at):
        self.emit(self.key, self.held)
        self.held = None


def shortly(limit):
    return type("Shortly", (Suppressed,), {"limit": limit})


# Kafka Streams: KTableSuppressProcessorTest ------------------------------------------------------------------


def test_without_a_limit_each_result_is_sent(steps):
    """windowedZeroTimeLimitShouldImmediatelyEmit: windows of 100 with a result for each record"""
    w = steps(TumblingWindow(100), Panes, updates="accumulate", early_count=1)
    assert w.give("hey", 5, 14) == [("hey", (0, 100, (14,), "early", 0, False))]


def test_totals_are_sent_one_by_one():
    """zeroTimeLimitShouldImmediatelyEmit: totals that have no windows"""
    t = Topology("totals")
    t.spout("rows", Items([("hey", 14)])).reduce("out", lambda total, value: total + value, initial=0)
    local = LocalRuntime(t)
    local.run_until_drained()
    assert local.emitted("out") == [("hey", 14)]


@pytest.mark.parametrize("moves", [False, True])
def test_a_result_in_between_waits_for_its_limit(moves):
    """intermediateSuppressionShouldBufferAndEmitLater: a limit of 1"""
    run = KeySteps(moves, lambda s: s.bolt("unit", shortly(1), by_key()))
    assert run.give("hey", 1, at=0) == []
    run.give("tick", None, at=1)
    assert run.watermark(1) == [("", "hey", (1, 0))]


@pytest.mark.parametrize(
    ("size", "grace", "times"),
    [
        # finalResultsSuppressionShouldBufferAndEmitAtGraceExpiration
        (1, 1, [99, 100, 101]),
        # finalResultsWithZeroGraceShouldStillBufferUntilTheWindowEnd
        (100, 0, [5, 100]),
    ],
)
def test_final_results_wait_for_the_end_and_the_grace(steps, size, grace, times):
    w = steps(TumblingWindow(size), Rows)
    out = []
    for at in times:
        w.give("hey" if at == times[0] else "dummy", at)
        out.append(w.watermark(at - grace))
    assert [bool(each) for each in out] == [False] * (len(times) - 1) + [True]
    assert out[-1][0][0] == "hey"


# Kafka Streams: SuppressScenarioTest --------------------------------------------------------------------------


class Changes(Bolt):
    """A table whose values are counted: the old value is taken away, and the new one added."""

    def __init__(self):
        self.old = None

    def process(self, key, value):
        name, at = value
        if self.old is not None:
            self.emit(self.old, (-1, at))
        self.emit(name, (1, at))
        self.old = name


def counted(rows):
    """What a count of a table's values puts out."""
    t = Topology("counted")
    table = t.spout("rows", Items([(key, (name, at)) for key, name, at in rows]))
    table.bolt("changes", Changes, by_key()).reduce(
        "out", lambda total, change: (total[0] + change[0], change[1]), initial=(0, 0)
    )
    local = LocalRuntime(t, settings=ONE_BY_ONE)
    local.run_until_drained()
    return [(key, *value) for key, value in local.emitted("out")]


def suppressed(moves, limit, rows):
    """Rows of (key, value, time), each of which time has come to; what comes out behind each time."""
    run = KeySteps(moves, lambda s: s.bolt("unit", shortly(limit), by_key()))
    found = {}
    for key, value, at in rows:
        assert run.give(key, value, at) == []
        found.setdefault(at, []).extend((key, value) for _, key, (value, _) in run.watermark(at))
    return found


FIRST = [("k1", "v1", 0), ("k1", "v2", 1), ("k2", "v1", 2)]


def test_counts_of_a_tables_values():
    """shouldImmediatelyEmitEventsWithZeroEmitAfter"""
    assert counted([*FIRST, ("x", "x", 3), ("x", "y", 4)]) == [
        ("v1", 1, 0),
        ("v1", 0, 1),
        ("v2", 1, 1),
        ("v1", 1, 2),
        ("x", 1, 3),
        ("x", 0, 4),
        ("y", 1, 4),
    ]


@pytest.mark.parametrize("moves", [False, True])
def test_counts_that_are_held_back(moves):
    """shouldSuppressIntermediateEventsWithTimeLimit: a limit of 2"""
    counts = counted([*FIRST, ("tick", "tick", 3), ("tick", "tock", 4)])
    assert suppressed(moves, 2, counts) == {0: [], 1: [], 2: [("v1", 1)], 3: [("v2", 1)], 4: []}


@pytest.mark.parametrize(
    ("window", "grace", "times", "expected", "left", "late"),
    [
        # shouldSupportFinalResultsForTimeWindows
        (TumblingWindow(2), 1, [0, 1, 2, 1, 0, 5, 0], {(0, 2): 4, (2, 4): 1}, {(4, 6): 1}, 1),
        # shouldSupportFinalResultsForTimeWindowsWithLargeJump
        (
            TumblingWindow(2),
            2,
            [0, 1, 2, 0, 3, 0, 4, 0, 30],
            {(0, 2): 4, (2, 4): 2, (4, 6): 1},
            {(30, 32): 1},
            1,
        ),
        # shouldSupportFinalResultsForSlidingWindows, both ends of which are included there
        (
            SlidingWindow(6, 1),
            15,
            [10, 11, 10, 13, 10, 24, 5, 7, 90],
            {(5, 11): 5, (6, 12): 5, (8, 14): 5, (11, 17): 2, (12, 18): 1, (19, 25): 1},
            {(85, 91): 1},
            0,
        ),
    ],
)
def test_final_results_of_windows(steps, window, grace, times, expected, left, late):
    w = steps(window, Sum)
    found, latest = {}, 0
    for at in times:
        w.give("k1", at)
        latest = max(latest, at)
        for _, (start, end, total) in w.watermark(latest - grace):
            assert (start, end) not in found
            found[start, end] = total
    assert {bounds: found.get(bounds) for bounds in expected} == expected
    assert set(found) == set(expected) or window.every < window.size
    rest = {(start, end): total for _, (start, end, total) in w.end()}
    assert {bounds: rest.get(bounds) for bounds in left} == left
    assert w.dropped == late


def test_final_results_of_sessions(steps):
    """shouldSupportFinalResultsForSessionWindows: a gap of 5 without grace"""
    w = steps(SessionWindow(5), Sum)
    found, latest = [], 0
    for key, at in (("k1", 0), ("k1", 5), ("k1", 1), ("k2", 11), ("k1", 5), ("k1", 30)):
        w.give(key, at)
        latest = max(latest, at)
        found += w.watermark(latest)
    assert [(key, start, end - 5, total) for key, (start, end, total) in found] == [("k1", 0, 5, 3), ("k2", 11, 11, 1)]
    assert w.dropped == 1


@pytest.mark.parametrize("moves", [False, True])
def test_a_table_that_is_held_back_is_counted(moves):
    """shouldWorkBeforeGroupBy"""
    held = suppressed(moves, 10, [("A", "a", 0), ("tick", "tick", 10)])
    assert counted([(key, value, at) for at, out in held.items() for key, value in out]) == [("a", 1, 10)]


#: side, key, value and time, and what comes out; the side "s" is held back for 10
STEPS: list[tuple[str, str, str, int, list[tuple[str, tuple[str | None, str | None]]]]] = [
    ("s", "B", "1", 0, []),
    ("s", "A", "1", 0, []),
    ("s", "tick", "tick", 10, [("A", ("1", None)), ("B", ("1", None))]),
    ("s", "A", "2", 11, []),
    ("j", "A", "a", 12, [("A", ("1", "a"))]),
    ("j", "B", "b", 12, [("B", ("1", "b"))]),
    ("j", "A", "b", 13, [("A", ("1", "b"))]),
    ("s", "tick", "tick1", 21, [("tick", ("tick1", None)), ("A", ("2", "b"))]),
]


@pytest.mark.parametrize(
    "left",
    [
        # shouldWorkBeforeJoinRight
        "j",
        # shouldWorkBeforeJoinLeft
        "s",
    ],
)
def test_a_table_that_is_held_back_is_joined(left):
    run = KeySteps(False, lambda s: s.bolt("unit", Suppressed, by_key()))
    rows = []
    for side, key, value, at, _ in STEPS:
        if side == "j":
            rows.append((key, (side, value)))
            continue
        run.give(key, value, at)
        out = sorted(run.watermark(at)) if at == 10 else run.watermark(at)
        rows += [(key, (side, value)) for _, key, (value, _) in out]
    t = Topology("tables")
    both = t.spout("both", Items(rows))
    sides = {side: both.filter(lambda v, s=side: v[0] == s).map(lambda v: v[1]) for side in "sj"}
    sides[left].join_tables("out", sides["j" if left == "s" else "s"], kind="outer")
    local = LocalRuntime(t, settings=ONE_BY_ONE)
    local.run_until_drained()
    expected = [(key, pair if left == "s" else pair[::-1]) for *_, outs in STEPS for key, pair in outs]
    assert local.emitted("out") == expected


def test_windows_of_two_streams_together():
    """shouldWorkWithCogrouped: windows of 15 minutes of the records of both"""
    t = Topology("cogrouped")
    streams = [t.spout(name, Items([("k", (name, 0))]), time=lambda value: value[-1]) for name in ("one", "two")]
    streams[0].union(streams[1]).window("out", Values, TumblingWindow(900))
    local = LocalRuntime(t)
    local.run_until_drained()
    ((key, names),) = local.emitted("out")
    assert (key, sorted(names)) == ("k", ["one", "two"])


class Values(Bolt):
    def __init__(self):
        self.names = []

    def process(self, key, value):
        self.names.append(value[0])

    def finish(self):
        self.emit(self.key, self.names)
