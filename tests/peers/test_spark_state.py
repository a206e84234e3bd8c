"""Spark's own tests of watermarks of several streams and of state with timers and times to live; the facts alone, in seconds."""

from __future__ import annotations

import pytest
from steps import Rows
from test_timers import Steps as KeySteps

from esault import Bolt, Topology, by_key, ttl
from esault.errors import TopologyError
from esault.flow.watermark.clock import BEGINNING, Clock
from esault.flow.watermark.merging import Merging
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock
from esault.topology.event_time import EventTime
from esault.windows import TumblingWindow

# Spark: EventTimeWatermarkSuite ------------------------------------------------------------------------------------


class Streams:
    """Streams with delays of their own, and the watermark of what takes them together."""

    def __init__(self, *delays):
        self.merging = Merging()
        self.clocks = [Clock(EventTime(lambda value: value, lateness=each), ManualClock(), False) for each in delays]
        for number in range(len(delays)):
            self.merging.add(number, 10 + number)

    def give(self, *times):
        for number, (clock, each) in enumerate(zip(self.clocks, times)):
            if each:
                clock.observe(each)
                self.merging.read(0, 10 + number, (float(clock.watermark), False, -1, (), 0))
        self.merging.through(0, True)
        return self.merging.current


def test_the_watermark_of_two_streams():
    """EventTimeWatermarkSuite, "watermark with 2 streams": delays of 10 and 5; what comes of a restart is left out"""
    streams = Streams(10, 5)
    given = [
        ([11], [], BEGINNING),  # 0 there
        ([], [6], 1),
        ([], [8], 1),
        ([21], [], 3),
        ([], [17, 28, 39], 11),
        ([31], [], 21),
        ([41], [], 31),
        ([51], [], 34),
        ([100], [100], 90),
        ([120], [110], 105),
        ([130], [125], 120),
        ([100], [100], 120),
        ([140], [100], 120),
        ([100], [135], 130),
        ([200], [190], 185),
    ]
    assert [streams.give(first, second) for first, second, _ in given] == [watermark for *_, watermark in given]


def test_the_lower_of_two_watermarks_counts():
    """EventTimeWatermarkSuite, "MultipleWatermarkPolicy: min": delays of 10 and 15"""
    streams = Streams(10, 15)
    found = [streams.give(*each) for each in (([20], [30]), ([120], [130]), ([], [150]))]
    assert found == [10, 110, 110]


def test_counts_of_each_time(steps):
    """EventTimeWatermarkSuite, "group by on raw timestamp": windows of a second"""
    w = steps(TumblingWindow(1), Rows)
    w.give("k", 10)
    assert w.watermark(0) == []
    w.give("k", 25)
    assert w.watermark(15) == [("k", (10, 11, (1,)))]


def test_a_delay_is_not_negative():
    """EventTimeWatermarkSuite, "delay threshold should not be negative." """
    with pytest.raises(TopologyError, match="is below 0"):
        Topology("t").spout("rows", Items([]), time=lambda value: value, lateness=-10)


# Spark: TransformWithStateSuite ------------------------------------------------------------------------------------


class Count(Bolt):
    """Counts to two; the third begins anew, and is not told."""

    def __init__(self):
        self.count = 0

    def process(self, key, value):
        self.count += 1
        if self.count == 3:
            self.count = 0
        else:
            self.emit(key, self.count)


class CountFor5(Count):
    """Forgets a or c five seconds after its first."""

    def process(self, key, value):
        if not self.count and key in "ac":
            self.timer("over", self.context.now() + 5, by="processing")
        super().process(key, value)

    def on_timer(self, name, at):
        self.count = 0
        self.emit(self.key, -1)


class Later(Count):
    """A timer that the second row puts off."""

    def process(self, key, value):
        self.count += 1
        self.emit(key, self.count)
        if key == "a" and self.count <= 2:
            self.timer("over", self.context.now() + (5, 7.5)[self.count - 1], by="processing")

    def on_timer(self, name, at):
        self.emit(self.key, -1)


class Thrice(Count):
    """Three timers, each of which tells the count."""

    def process(self, key, value):
        self.count += 1
        if self.count == 1:
            for seconds in (5, 10, 15):
                self.timer(f"in {seconds}", self.context.now() + seconds, by="processing")

    def on_timer(self, name, at):
        self.emit(self.key, self.count)


@pytest.mark.parametrize(
    ("bolt", "batches"),
    [
        # "transformWithState - streaming with rocksdb should succeed"
        (Count, [(0, "a", "a1"), (0, "ab", "a2 b1"), (0, "ab", "b2"), (0, "ac", "a1 c1")]),
        # "transformWithState - streaming with rocksdb and processing time timer should succeed"
        (
            CountFor5,
            [
                (1, "a", "a1"),
                (2, "b", "b1"),
                (12, "b", "a-1 b2"),
                (13, "bc", "c1"),
                (23, "d", "c-1 d1"),
            ],
        ),
        # "transformWithState - streaming with rocksdb and processing time timer and updating timers should succeed"
        (Later, [(1, "a", "a1"), (3, "a", "a2"), (13, "d", "a-1 d1")]),
        # "transformWithState - streaming with rocksdb and processing time timer and multiple timers should succeed"
        (Thrice, [(1, "a", ""), (7, "a", "a2"), (12, "a", "a3"), (17, "a", "a4")]),
    ],
)
@pytest.mark.parametrize("moves", [False, True])
def test_state_with_timers(moves, bolt, batches):
    run = KeySteps(moves, lambda s: s.bolt("unit", bolt, by_key()))
    for now, keys, expected in batches:
        run.clock.advance_to(now)
        found = [row for key in keys for row in run.give(key)]
        if bolt is not Count:  # timers that have become due fire behind the rows of a batch
            found += run.time(now)
        assert sorted(f"{key}{value}" for _, key, value in found) == expected.split()


@pytest.mark.parametrize(
    "batches",
    [
        # "transformWithState - two input streams"
        [("a", "a1"), (" ab", "a2 b1"), ("ab", "b2"), ("de ac", "a1 c1 d1 e1")],
        # "transformWithState - three input streams"
        [("a", "a1"), (" ab", "a2 b1"), ("  ab", "b2"), ("de ac", "a1 c1 d1 e1"), ("  acde", "a2 c2 d2 e2")],
        # "transformWithState - two input streams, different key type"
        [("1", "11"), (" 12", "12 21"), ("12", "22"), ("45 13", "11 31 41 51")],
    ],
)
def test_streams_with_one_state(batches):
    t = Topology("streams")
    spouts = []
    for number in range(3):
        rows = [key for keys, _ in batches for key in [*keys.split(" "), "", ""][number]]
        spouts.append(t.spout(f"rows{number}", Items([(key, None) for key in rows])))
    spouts[0].union(*spouts[1:]).bolt("out", Count, by_key())
    local = LocalRuntime(t)
    local.run_until_drained()
    expected = [each for _, out in batches for each in out.split()]
    # which stream is read first is not said, and matters to no key
    assert sorted(f"{key}{count}" for key, count in local.emitted("out")) == sorted(expected)


def test_a_stream_that_ends():
    """ "transformWithState - batch should succeed" """
    t = Topology("batch")
    t.spout("rows", Items([("a", None), ("b", None)])).bolt("out", Count, by_key())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert sorted(local.emitted("out")) == [("a", 1), ("b", 1)]


def test_a_bolt_that_does_not_run():
    """ "Use statefulProcessor without transformWithState - handle should be absent" """
    with pytest.raises(RuntimeError, match="not part of a running topology"):
        Count().process("a", None)


# Spark: TransformWithStateTTLTest, for the value of a key ----------------------------------------------------------


class Value(Bolt):
    value = ttl(60)

    def process(self, key, value):
        action, number = value[0]
        if action == "put":
            self.value = number
        elif action == "clear":
            del self.value
        elif self.value is not None:
            self.emit(key, self.value)


@pytest.mark.parametrize(
    "steps",
    [
        # "validate state is evicted at ttl expiry", "validate state is evicted at ttl expiry for no data batch"
        [(1, "k1", "put", 1, []), (2, "k1", "get", 0, [1]), (65, "k1", "get", 0, [])],
        # "validate state update updates the expiration timestamp"
        [
            (1, "k1", "put", 1, []),
            (2, "k1", "get", 0, [1]),
            (35, "k1", "put", 1, []),
            (35, "k1", "get", 0, [1]),
            (68, "k1", "get", 0, [1]),
            (95, "k1", "get", 0, []),
        ],
        # "validate only expired keys are removed from the state"
        [
            (1, "k1", "put", 1, []),
            (32, "k2", "put", 2, []),
            (63, "k1", "get", 0, []),
            (63, "k2", "get", 0, [2]),
        ],
        # "validate that clear only clears the current grouping key"
        [
            *((1, f"k{n}", "put", n, []) for n in (1, 2, 3)),
            (2, "k1", "clear", 0, []),
            (2, "k1", "get", 0, []),
            (3, "k2", "get", 0, [2]),
            (3, "k3", "get", 0, [3]),
        ],
    ],
)
@pytest.mark.parametrize("moves", [False, True])
def test_state_that_lives_a_minute(moves, steps):
    run = KeySteps(moves, lambda s: s.bolt("unit", Value, by_key()))
    for now, key, action, number, expected in steps:
        run.clock.advance_to(now)
        assert [value for _, _, value in run.give(key, (action, number))] == expected


# Spark: TransformWithListStateSuite, TransformWithMapStateSuite -------------------------------------------------------


class Listed(Bolt):
    def __init__(self):
        self.values = []

    def process(self, key, value):
        (action, said), _ = value
        if action == "emit":
            self.emit(key, said)
        elif action == "emitAllInState":
            for each in self.values:
                self.emit(key, each)
            self.values = []
        elif action == "remove":
            self.values = []
        elif action == "put":
            self.values = said.split(",")
        else:
            self.values += said.split(",")


class Toggled(Bolt):
    """Keeps a row, and emits it behind the next."""

    def __init__(self):
        self.kept, self.full = [], False

    def process(self, key, value):
        if self.full:
            for each in (key, *self.kept):
                self.emit(key, each)
            self.kept = []
        else:
            self.kept.append(key)
        self.full = not self.full


class Mapped(Bolt):
    def __init__(self):
        self.values = {}

    def process(self, key, value):
        (action, name, said), _ = value
        if action == "updateValue":
            self.values[name] = said
        elif action == "getValue":
            self.emit(key, (name, self.values.get(name)))
        elif action == "containsKey":
            self.emit(key, (name, name in self.values))
        elif action == "removeKey":
            del self.values[name]
        elif action == "clear":
            self.values = {}
        elif action == "exists":
            self.emit(key, (action, bool(self.values)))
        elif action == "iterator":
            for pair in self.values.items():
                self.emit(key, pair)
        elif action == "keys":
            for each in self.values:
                self.emit(key, (each, ""))
        else:
            for each in self.values.values():
                self.emit(key, ("", each))


LISTED = """k1 emit v1: k1 v1; k1 append v2; k1 emitAllInState: k1 v2; k2 append v1; k1 append v4; k2 append v2;
k1 emit v5: k1 v5; k2 emit v3: k2 v3; k1 emitAllInState: k1 v4; k2 emitAllInState: k2 v1, k2 v2;
k3 appendAll v1,v2,v3; k3 emit v4: k3 v4; k3 append v5; k3 emitAllInState: k3 v1, k3 v2, k3 v3, k3 v5;
k4 append v2; k4 remove; k4 emitAllInState; k5 appendAll v1,v2,v3; k5 append v4; k5 put v5,v6;
k5 emitAllInState: k5 v5, k5 v6"""


@pytest.mark.parametrize("moves", [False, True])
def test_lists_as_state(moves):
    """ "test list state correctness" """
    run = KeySteps(moves, lambda s: s.bolt("unit", Listed, by_key()))
    for step in LISTED.split(";"):
        told, _, expected = step.partition(": ")
        key, action, said = (*told.split(), "")[:3]
        found = [f"{key} {value}" for _, key, value in run.give(key, (action, said))]
        assert found == (expected.split(", ") if expected else [])


@pytest.mark.parametrize("moves", [False, True])
def test_a_list_and_a_value_as_state(moves):
    """ "test ValueState And ListState in Processor" """
    run = KeySteps(moves, lambda s: s.bolt("unit", Toggled, by_key()))
    assert run.give("k1") == run.give("k2") == []
    assert [value for _, _, value in run.give("k1") + run.give("k2")] == ["k1", "k1", "k2", "k2"]


@pytest.mark.parametrize(
    "steps",
    [
        # "Test retrieving value with non-existing user key"
        [("k1", "getValue", "v1", "", [("v1", None)])],
        # "transformWithMapState - batch should succeed"
        [("k1", "updateValue", "v1", "10", []), ("k1", "getValue", "v1", "", [("v1", "10")])],
        # "Test map state correctness"
        [
            ("k1", "updateValue", "v1", "10", []),
            ("k1", "exists", "", "", [("exists", True)]),
            ("k2", "exists", "", "", [("exists", False)]),
            ("k1", "updateValue", "v2", "5", []),
            ("k2", "updateValue", "v2", "3", []),
            ("k2", "updateValue", "v2", "12", []),
            ("k2", "updateValue", "v4", "1", []),
            ("k1", "getValue", "v2", "", [("v2", "5")]),
            ("k2", "getValue", "v2", "", [("v2", "12")]),
            ("k2", "iterator", "", "", [("v2", "12"), ("v4", "1")]),
            ("k2", "keys", "", "", [("v2", ""), ("v4", "")]),
            ("k2", "values", "", "", [("", "12"), ("", "1")]),
            ("k1", "removeKey", "v2", "", []),
            ("k1", "containsKey", "v2", "", [("v2", False)]),
            ("k2", "clear", "", "", []),
            ("k2", "iterator", "", "", []),
            ("k2", "exists", "", "", [("exists", False)]),
        ],
    ],
)
@pytest.mark.parametrize("moves", [False, True])
def test_dicts_as_state(moves, steps):
    run = KeySteps(moves, lambda s: s.bolt("unit", Mapped, by_key()))
    for key, action, name, said, expected in steps:
        assert [value for _, _, value in run.give(key, (action, name, said))] == expected
