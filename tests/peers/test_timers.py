"""What tests of Flink, Spark and Bytewax say of timers, of repeats that are left out and of operators; the facts alone, each with its origin.

Flink's watermark w says that no more comes up to w, ours that nothing comes before it. A timer for t is due at a watermark of t in
both. Flink's timers of a key have a time and no name; here a name stands for one timer, so theirs have their times as names.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from esault import Bolt, Sink, Topology, by_key
from esault.flow.operators.emitter import Emitter
from esault.flow.operators.factory import operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.payload.codec import Codec
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock
from esault.topology.context import Context
from esault.topology.operators.enrich import Enrich


class Steps:
    """One sub-unit of a bolt with timers, told its rows, watermarks and times. With `moving` its state goes through bytes before each."""

    def __init__(self, moving, build):
        self._moving = moving
        t = Topology("steps")
        build(t.spout("rows", Items([]), time=lambda value: value[1]))
        self.clock = ManualClock(0.0)
        self.plan = t.plan().units["unit"]
        self._begin()

    def _begin(self):
        self._emitter = Emitter("unit", list(self.plan.streams), 0, False, Codec())
        context = Context(unit="unit", now=self.clock)
        self.operator: Any = operator(
            OperatorParameters(self.plan, context, self._emitter, Codec(), None, self.clock())
        )
        self.service = self.operator.timer_service or self.operator

    def _step(self):
        if self._moving:
            old = self.operator.state
            states = [(name and old.key_of(name), old.peek(name)) for name in old.saved_names()]
            self._begin()
            for key, state in states:
                if state is not None:
                    self.operator.state.install_state(key, state)

    def _take(self):
        return [
            (stream or "", key, value)
            for stream, keys, values, _ in self._emitter.pop_emitted(False)
            for key, value in zip(keys, values)
        ]

    def give(self, key, value=None, at=0):
        self._step()
        self.operator.run(0, [key], [(value, at)], None)
        return self._take()

    def watermark(self, at):
        self._step()
        self.service.advance(at)
        while self.service.close_some(1, 1, None):
            pass
        return self._take()

    def time(self, now):
        self._step()
        self.clock.advance_to(now)
        while self.service.due_now(now) is not None:
            self.service.fire_now()
        return self._take()

    @property
    def keys(self):
        """Keys that have state."""
        return set(map(self.operator.state.key_of, self.operator.state.names()))


@pytest.fixture(params=[False, True], ids=["stays", "moves"])
def steps(request):
    return lambda bolt, **options: Steps(
        request.param, bolt if not isinstance(bolt, type) else lambda s: s.bolt("unit", bolt, by_key(), **options)
    )


def values(found):
    return [value for _, _, value in found]


# Flink: KeyedProcessOperatorTest ------------------------------------------------------------------------


class Querying(Bolt):
    def process(self, key, value):
        self.emit(key, (key, self.context.watermark(key)))

    def on_timer(self, name, at):
        raise AssertionError


def test_the_watermark_can_be_asked_for(steps):
    """KeyedProcessOperatorTest.testTimestampAndWatermarkQuerying"""
    run = steps(Querying)
    run.watermark(17)
    assert values(run.give(5, at=12)) == [(5, 17)]
    run.watermark(42)
    assert values(run.give(6, at=13)) == [(6, 42)]


class Triggering(Bolt):
    """Sets a timer five later than now, and tells of what it has seen."""

    by = "event"

    def __init__(self):
        self.seen = None

    def process(self, key, value):
        self.seen = key
        self.emit(key, f"INPUT:{key}")
        now = self.context.watermark(key) if self.by == "event" else self.context.now()
        self.timer("later", now + 5, by=self.by)

    def on_timer(self, name, at):
        self.emit(self.key, f"STATE:{self.seen} at {at:g}")


class ByTheClock(Triggering):
    by = "processing"


def test_timers_of_event_time_see_the_state_of_their_key(steps):
    """KeyedProcessOperatorTest.testEventTimeTimers, testEventTimeTimerWithState"""
    run = steps(Triggering)
    run.watermark(1)
    assert values(run.give(17)) == ["INPUT:17"]
    run.watermark(2)
    assert values(run.give(42, at=1)) == ["INPUT:42"]
    assert values(run.watermark(5)) == []
    assert values(run.watermark(6)) == ["STATE:17 at 6"]
    assert values(run.watermark(7)) == ["STATE:42 at 7"]


def test_timers_by_the_clock_see_the_state_of_their_key(steps):
    """KeyedProcessOperatorTest.testProcessingTimeTimers, testProcessingTimeTimerWithState"""
    run = steps(ByTheClock)
    run.time(1)
    assert values(run.give(17)) == ["INPUT:17"]
    run.time(2)
    assert values(run.give(42)) == ["INPUT:42"]
    assert values(run.time(6)) == ["STATE:17 at 6"]
    assert values(run.time(7)) == ["STATE:42 at 7"]


class Both(Bolt):
    def process(self, key, value):
        self.timer("PROC", 5, by="processing")
        self.timer("EVENT", 6)

    def on_timer(self, name, at):
        self.emit(self.key, f"{name}:1777")


def test_timers_of_both_kinds_are_restored():
    """KeyedProcessOperatorTest.testSnapshotAndRestore"""
    run = Steps(True, lambda s: s.bolt("unit", Both, by_key()))
    run.give(5, at=12)
    assert values(run.time(5)) == ["PROC:1777"]
    assert values(run.watermark(6)) == ["EVENT:1777"]


# Flink: InternalTimerServiceImplTest ---------------------------------------------------------------------


class Named(Bolt):
    """Sets, or takes back, the timers that its value names."""

    def process(self, key, value):
        for name, at, by in value[0]:
            if at is None:
                self.cancel_timer(name)
            else:
                self.timer(name, at, by)

    def on_timer(self, name, at):
        self.emit(self.key, (name, at))
        if name == "again" and at < 30:
            self.timer("again", at + 10, "processing")


@pytest.mark.parametrize("by", ["event", "processing"])
def test_keys_and_names_do_not_meet(steps, by):
    """InternalTimerServiceImplTest.testSetAndFireEventTimeTimers, testSetAndFireProcessingTimeTimers"""
    run = steps(Named)
    for key in (1, 2):
        run.give(key, [("ciao", 10, by), ("hello", 10, by)])
    found = run.watermark(10) if by == "event" else run.time(10)
    # Of one key in the order of their setting; of two, where they have moved, in any.
    in_order = sorted(((key, name) for _, key, (name, _) in found), key=lambda each: each[0])
    assert in_order == [(1, "ciao"), (1, "hello"), (2, "ciao"), (2, "hello")]
    assert not run.service.timers


@pytest.mark.parametrize("by", ["event", "processing"])
def test_a_timer_that_was_taken_back_is_not_due(steps, by):
    """InternalTimerServiceImplTest.testDeleteEventTimeTimers, testDeleteProcessingTimeTimers"""
    run = steps(Named)
    for key in (1, 2):
        run.give(key, [("ciao", 10, by), ("hello", 10, by)])
    run.give(1, [("hello", None, by)])
    run.give(2, [("ciao", None, by)])
    assert len(run.service.timers) == 2
    found = run.watermark(10) if by == "event" else run.time(10)
    assert sorted((key, name) for _, key, (name, _) in found) == [(1, "ciao"), (2, "hello")]


def test_they_are_due_one_after_the_other(steps):
    """InternalTimerServiceImplTest.testOnlySetsOnePhysicalProcessingTimeTimer"""
    run = steps(Named)
    run.give(1, [(f"ciao {at}", at, "processing") for at in (10, 20, 30)])
    run.give(1, [(f"hello {at}", at, "processing") for at in (10, 20)])
    left = []
    for now in (10, 20, 30):
        assert run.service.due_at() == now
        run.time(now)
        left.append(len(run.service.timers))
    assert left == [3, 1, 0]
    assert run.service.due_at() is None


def test_one_that_is_earlier_is_due_first(steps):
    """InternalTimerServiceImplTest.testRegisterEarlierProcessingTimerMovesPhysicalProcessingTimer"""
    run = steps(Named)
    run.give(1, [("ciao 20", 20, "processing")])
    assert run.service.due_at() == 20
    run.give(1, [("ciao 10", 10, "processing")])
    assert (run.service.due_at(), len(run.service.timers)) == (10, 2)


def test_one_that_a_timer_sets_is_the_only_one(steps):
    """InternalTimerServiceImplTest.testRegisteringProcessingTimeTimerInOnProcessingTimeDoesNotLeakPhysicalTimers"""
    run = steps(Named)
    run.give(1, [("again", 10, "processing")])
    run.time(10)
    assert (run.service.due_at(), len(run.service.timers)) == (20, 1)
    run.time(20)
    assert (run.service.due_at(), len(run.service.timers)) == (30, 1)


# Flink: WindowOperatorTest, of what is no window here but a bolt with timers -----------------------------


class Periodically(Bolt):
    """A sum that is never cleared, at the ends of those three seconds that something came in, and of all later ones."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        number, at = value
        if not self.total:
            self.timer("fire", at // 3000 * 3000 + 3000)
        self.total += number

    def on_timer(self, name, at):
        self.emit(self.key, self.total)
        self.timer("fire", at + 3000)


def test_a_window_of_all_that_is_told_periodically(steps):
    """WindowOperatorTest.testContinuousWatermarkTrigger"""
    run = steps(Periodically)
    for key, at in [("key1", 0), ("key2", 3000), ("key2", 3999), ("key1", 20), ("key1", 999)]:
        assert run.give(key, 1, at) == []
    for at in (1998, 1999, 1000):
        assert run.give("key2", 1, at) == []
    assert run.watermark(1000) == run.watermark(2000) == []
    assert run.watermark(3000) == [("", "key1", 3)]
    assert run.watermark(4000) == run.watermark(5000) == []
    assert sorted(run.watermark(6000)) == [("", "key1", 3), ("", "key2", 5)]
    assert run.watermark(7000) == run.watermark(8000) == []


class ClockSession(Bolt):
    """A session by the clock: the furthest end that a tuple says counts."""

    def __init__(self):
        self.start = self.end = self.total = 0

    def process(self, key, value):
        (number, gap), _ = value
        now = self.context.now()
        self.start = self.start if self.total else now
        self.end = max(self.end, now + gap)
        self.total += number
        self.timer("over", self.end, by="processing")

    def on_timer(self, name, at):
        self.emit(self.key, (self.start, self.end, self.total))
        self.start = self.end = self.total = 0


def test_sessions_by_the_clock(steps):
    """WindowOperatorTest.testProcessingTimeSessionWindows: tuples' own times are of no account."""
    run = steps(ClockSession)
    run.time(3)
    run.give("key2", (1, 3000), 1)
    assert run.time(1000) == []
    run.give("key2", (1, 3000), 1002)
    assert run.time(5000) == [("", "key2", (3, 4000, 2))]
    for key in ("key2", "key2", "key1", "key1", "key1"):
        assert run.give(key, (1, 3000), 5000) == []
    assert sorted(run.time(10000)) == [("", "key1", (5000, 8000, 3)), ("", "key2", (5000, 8000, 2))]


def test_sessions_by_the_clock_whose_gap_a_tuple_says(steps):
    """WindowOperatorTest.testDynamicProcessingTimeSessionWindows"""
    run = steps(ClockSession)
    found = []
    for key, number, gap, at in [
        ("key1", 3, 3000, 10),
        ("key2", 4, 2000, 5000),
        ("key2", 5, 2000, 6000),
        ("key2", 1, 2000, 9000),
        ("key2", 2, 2000, 10000),
        ("key2", 10, 1000, 10500),
        ("key2", 10, 1000, 13000),
        ("key2", 10, 1000, 13500),
        ("key2", 1, 2000, 14000),
    ]:
        found += run.time(at)
        found += run.give(key, (number, gap), at)
    found += run.time(16999)
    assert found == [
        ("", "key1", (10, 3010, 3)),
        ("", "key2", (5000, 8000, 9)),
        ("", "key2", (9000, 12000, 13)),
        ("", "key2", (13000, 16000, 21)),
    ]


# Spark: StreamingDeduplicationWithinWatermarkSuite ---------------------------------------------------------


def distinct(within):
    return lambda s: s.distinct("unit", within=within)


def test_repeats_of_whole_rows(steps):
    """StreamingDeduplicationWithinWatermarkSuite, "deduplicate with all columns with event time column in DataFrame": 10 seconds"""
    run = steps(distinct(10))
    found = [run.give(n, at=n) for _ in range(5) for n in range(10, 16)]
    assert [key for each in found for _, key, _ in each] == list(range(10, 16))
    run.watermark(5)
    assert len(run.keys - {None}) == 6
    assert [key for n in range(13, 18) for _, key, _ in run.give(n, at=n)] == [16, 17]
    run.watermark(7)
    assert len(run.keys - {None}) == 8
    assert [stream for stream, _, _ in run.give(5, at=5)] == ["late"]
    run.give(35, at=35)
    run.watermark(25)
    assert {16, 17, 35} <= run.keys
    assert not set(range(10, 16)) & run.keys
    run.give(55, at=55)
    run.watermark(45)
    assert {55} <= run.keys
    assert not {16, 17, 35} & run.keys


def test_repeats_of_a_key(steps):
    """The same, "deduplicate with subset of columns which event time column is not in subset": 2 seconds"""
    run = steps(distinct(2))
    assert [key for _, key, _ in run.give("a", at=17)] == ["a"]
    run.watermark(15)
    assert run.give("a", at=16) == []
    assert [stream for stream, _, _ in run.give("a", at=13)] == ["late"]
    assert [key for key, at in (("b", 22), ("c", 21)) for _, key, _ in run.give(key, at=at)] == ["b", "c"]
    run.watermark(20)
    assert "a" not in run.keys
    assert [stream for stream, _, _ in run.give("a", at=21)] == [""]
    assert [stream for stream, _, _ in run.give("d", at=25)] == [""]
    run.watermark(23)
    assert {"b", "d"} <= run.keys
    assert not {"a", "c"} & run.keys


def test_repeats_of_a_key_in_a_later_life(steps):
    """The same, "SPARK-39650: duplicate with specific keys should allow input to change schema": 10 seconds"""
    run = steps(distinct(10))
    rows = [("a", 1), ("a", 2), ("b", 3), ("a", 5), ("b", 2), ("c", 9)]
    assert [each for key, at in rows for each in run.give(key, at=at)] == [
        ("", "a", (None, 1)),
        ("", "b", (None, 3)),
        ("", "c", (None, 9)),
    ]


# Bytewax: pytests/operators -----------------------------------------------------------------------------------


class Kept(Sink):
    def write(self, rows):
        pass


def emitted(rows, build):
    t = Topology("t")
    build(t.spout("rows", Items(rows)))
    local = LocalRuntime(t)
    local.run_until_drained()
    return local.emitted("unit")


def test_lists_of_three_and_the_rest():
    """test_collect.py, test_collect"""
    found = emitted([("ALL", n) for n in range(10)], lambda s: s.batch("unit", 3, 10))
    assert found == [("ALL", [0, 1, 2]), ("ALL", [3, 4, 5]), ("ALL", [6, 7, 8]), ("ALL", [9])]


def test_a_list_that_waits_is_state():
    """test_collect.py, test_collect_logic_snapshot"""
    run = Steps(True, lambda s: s.batch("unit", 3, 10))
    run.give("k", 1)
    assert [name for name, _, _ in run.service.timers.of("k")] == ["over"]
    assert run.service.due_at() == 10
    assert values(run.time(10)) == [[(1, 0)]]


def test_a_stream_is_split_in_two():
    """test_branch.py, test_branch"""
    t = Topology("t")
    parts = t.spout("rows", Items([("k", n) for n in (1, 2, 3)])).split({"odds": lambda n: n % 2 != 0})
    for name, part in parts.items():
        part.sink(name, Kept())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert [row.value for row in local.landed("odds")] == [1, 3]
    assert [row.value for row in local.landed("rest")] == [2]


def test_an_answer_is_kept_for_its_key():
    """test_enrich_cached.py, test_enrich_cached and test_cache_get_cached"""
    table = {"a": 1, "b": 2}

    async def once(value):
        await asyncio.sleep(0)
        return table.pop(value)

    found = emitted([(name, name) for name in ("a", "b", "a")], lambda s: s.enrich("unit", once, cache=60))
    assert sorted(found) == [("a", ("a", 1)), ("a", ("a", 1)), ("b", ("b", 2))]


class Asking(Enrich):
    """The bolt behind `enrich` alone, by a clock that is told."""

    def __init__(self, function, cache, clock):
        super().__init__(function, cache)
        self.context = Context(unit="unit", now=clock)
        self.found = []

    def emit(self, key, value, stream=None):
        self.found.append(value)


def test_an_answer_is_asked_for_again_when_it_is_old():
    """test_enrich_cached.py, test_cache_get_init and test_cache_get_expire"""
    table, clock = {"a": 1, "b": 2}, ManualClock(0.0)

    async def look_up(value):
        return table[value]

    bolt = Asking(look_up, 60, clock)
    asyncio.run(bolt.process("a", "a"))
    clock.advance_to(120)
    table["a"] = 3
    asyncio.run(bolt.process("a", "a"))
    assert bolt.found == [("a", 1), ("a", 3)]
