"""Timers of bolts are due in their order, once, wherever their keys go and whoever dies."""

from __future__ import annotations

import functools
import random
from collections import Counter

import depth
import pytest
from commands_asked import change
from counting import Landed, Nothing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from slowly import Slowly
from test_checkpoints import walk
from windowed import LATENESS, Again, Pass, again_of, at, gathered, windows_of

from esault import Bolt, EndOfStream, Spout, Topology, TopologyError, TopologyFailed, by_key, shuffle, single
from esault.control.units.rescale_table import RescaleState
from esault.flow.worker.environment import Environment
from esault.messages.settings import Settings
from esault.sources import Items, Paced
from esault.state.states_on_disk import StatesOnDisk
from esault.testing import LocalRuntime
from esault.windows import TumblingWindow

AGAIN = TumblingWindow(50)


class ByTimers(Bolt):
    """Windows of ten seconds, made of timers."""

    def __init__(self):
        self.rows = {}

    def process(self, key, value):
        start = value["at"] // 10 * 10
        self.rows.setdefault(start, []).append(value["n"])
        self.timer(str(start), start + 10)

    def on_timer(self, name, at):
        self.emit(self.key, {"at": int(at), "start": int(name), "rows": tuple(self.rows.pop(int(name)))})


class Whole(ByTimers):
    """The same for all keys in one object."""

    def process(self, key, value):
        super().process(key, {**value, "n": (key, value["n"])})

    def on_timer(self, name, at):
        by_key: dict = {}
        for key, n in self.rows.pop(int(name)):
            by_key.setdefault(key, []).append(n)
        for key, numbers in by_key.items():
            self.emit(key, {"at": int(at), "start": int(name), "rows": tuple(numbers)})


def chain(rows, bolt=ByTimers, grouping=None, **options):
    t = Topology("timers")
    rows = t.spout("rows", Slowly(rows), time=at, lateness=LATENESS)
    passed = rows.bolt("pass", Pass, grouping=shuffle(), parallelism=2)
    made = passed.bolt("window", bolt, grouping=grouping or by_key(), parallelism=1 if grouping else 2, **options)
    made.sink("table", Landed())
    second = made.map(dict).key_by(lambda value: value["at"] % 3).timed(at).window("again", Again, AGAIN, parallelism=2)
    second.sink("more", Landed())
    second["late"].sink("more-late", Landed())
    return t


def rows_of(seed, count=400):
    order, newest, rows = random.Random(seed), 0, []
    for n in range(count):
        newest += order.randint(0, 3)
        rows.append((order.choice("abcdefgh"), {"at": newest - order.randint(0, LATENESS), "n": n}))
    return rows


@pytest.mark.slow
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(0, 4), st.booleans(), st.booleans())
@example(seed=1, kills=2, idle=True, one=False)
@example(seed=3, kills=2, idle=False, one=True)
def test_whoever_dies_and_moves_timers_are_due_once_behind_all_that_comes_before_them(done, seed, kills, idle, one):
    rows = rows_of(seed, 150)
    options = Settings(delivery="eo", max_pending=4, root_rows=16, frame_rows=8, reload_state=True)
    topology = (
        chain(rows, Whole, single())
        if one
        else chain(rows, **({"idle_after": 0.01, "expire_after": 0.02} if idle else {}))
    )
    local = LocalRuntime(topology, seed=seed, settings=options)
    walk(local, random.Random(seed), "pass" if one else "window", kills=kills)
    done.of(local, "change", "checkpoint", "death")
    expected = windows_of(TumblingWindow(10), rows)
    assert gathered([(row.key, row.value) for row in local.landed("table")]) == expected
    # What timers put out goes before the watermark does: nothing of it is late behind them.
    assert local.landed("more-late") == []
    assert sorted((row.key, row.value) for row in local.landed("more")) == again_of(AGAIN, expected)


@pytest.mark.parametrize("seed", depth.seeds(8))
def test_without_deaths_the_same_holds_without_checkpoints(seed):
    rows = rows_of(seed)
    options = Settings(max_pending=4, root_rows=16, frame_rows=8)
    local = LocalRuntime(chain(rows), seed=seed, settings=options)
    order = random.Random(seed)
    while local.driver.phase != "ended":
        if order.random() < 0.02 and local.driver.phase == "running":
            change(local, "window", order.choice(["split", "merge", "move"]), order.choice(local.sub_units("window")))
        local.step() or local.wait()
    local.run_until_drained()
    assert gathered([(row.key, row.value) for row in local.landed("table")]) == windows_of(TumblingWindow(10), rows)


def test_timers_of_one_object_are_all_that_its_state_says():
    rows = rows_of(5, 150)
    options = Settings(max_pending=4, root_rows=16, frame_rows=8, reload_state=True)
    local = LocalRuntime(chain(rows, Whole, single()), settings=options)
    local.run_until_drained()
    assert gathered([(row.key, row.value) for row in local.landed("table")]) == windows_of(TumblingWindow(10), rows)


class Feed(Spout):
    """Rows at their times by the clock."""

    def __init__(self, rows, lasts):
        self.rows, self.lasts = rows, lasts

    def open(self, context):
        self.begun, self.next = context.now(), 0

    def read(self, limit):
        passed = self.context.now() - self.begun
        ready = [row for row in self.rows[self.next :] if row[0] <= passed]
        self.next += len(ready)
        if not ready and passed > self.lasts:
            raise EndOfStream
        return [(key, at) for at, key in ready]


class Quiet(Bolt):
    """Tells of each key of which nothing came for two seconds."""

    def __init__(self):
        self.last = None

    def process(self, key, value):
        self.last = value
        self.timer("quiet", self.context.now() + 2, by="processing")

    def on_timer(self, name, at):
        self.emit(self.key, (self.last, round(self.context.now() - at, 2)))


def watched(rows, bolt=Quiet, lasts=20, **options):
    t = Topology("watched")
    spout = t.spout("rows", Feed(rows, lasts))
    spout.bolt("watch", bolt, grouping=by_key(), **options).sink("out", Landed())
    return t


ROWS = [(0, "a"), (1, "a"), (1.5, "b"), (2, "a"), (7, "b"), (8, "b"), (19.5, "c")]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"idle_after": 0.5}, {"expire_after": 0.7}, {"parallelism": 3}])
@pytest.mark.parametrize("moves", [False, True])
def test_a_key_of_which_nothing_comes_is_told_of_when_its_time_has_come(options, moves):
    local = LocalRuntime(watched(ROWS, **options))
    for each in range(10):
        if moves:
            local.scale("watch", 1 + each % 3)
            local.wait_for_change("watch")
        local.run_for(1.7)
    local.run_until_drained()
    # That of c was not due when the run ended.
    assert sorted((key, value[0]) for key, value in local.emitted("watch")) == [("a", 2), ("b", 1.5), ("b", 8)]
    assert all(late < 0.3 for _, (_, late) in local.emitted("watch"))


class Alarmed(Bolt):
    """Counts the tuples of a key, and alarms, of which each first tuple sets one by the clock."""

    def __init__(self):
        self.count = self.fired = 0
        self.more = bytes(300)

    def process(self, key, value):
        if not self.count:
            self.timer("alarm", self.context.now() + value, by="processing")
        self.count += 1

    def on_timer(self, name, at):
        self.fired += 1

    def finish(self):
        self.emit(self.key, (self.count, self.fired))


def test_a_timer_that_is_due_while_keys_move_leaves_no_state_of_those_on_a_disk_behind(monkeypatch):
    """It brings its key into memory: the look at the file, in portions, has to find it all the same."""
    disk = functools.partial(Environment, states_on_disk=StatesOnDisk)
    monkeypatch.setattr("esault.testing.local_runtime.Environment", disk)
    order = random.Random(0)
    rows = [(f"k{i % 500}", 0.3 + 0.2 * order.random()) for i in range(1000)]
    t = Topology("alarms")
    read = t.spout("rows", Paced(Items([*rows, *[("tail", 9.0)] * 30]), [(0, 20_000), (0.05, 30)]))
    read.bolt("count", Alarmed, grouping=by_key(), keys_in_memory=20).sink("out", Landed())
    local = LocalRuntime(t)
    local.run_for(0.3)
    local.move("count", local.sub_units("count")[0])
    unit = local.driver.units["count"]
    local.run_until(lambda: unit.rescaling.state is RescaleState.MOVING)
    for _ in range(6):
        local.step()
    new = max(unit.subs)
    local.freeze(new)  # it confirms no portion, and the old owner goes no further
    local.run_for(0.3)
    local.thaw(new)
    local.run_until_drained()
    assert unit.changes[0].moved_keys > 400
    assert Counter(row.value for row in local.landed("out")) == {(2, 1): 500, (30, 0): 1}


def test_an_object_with_a_timer_is_not_expired_until_it_was_due():
    class Kept(Quiet):
        def finish(self):
            self.emit(self.key, "finished")

    local = LocalRuntime(watched([(0, "a")], Kept, lasts=5, expire_after=0.5))
    local.run_until_drained()
    assert [value for _, value in local.emitted("watch")] == [(0, 0.0), "finished"]


class Sent(Bolt):
    def process(self, key, value):
        for name, due in value:
            if due is None:
                self.cancel_timer(name)
            else:
                self.timer(name, due)

    def on_timer(self, name, at):
        self.emit(self.key, (name, at))
        if name == "again":
            self.timer("again", at + 10)


def due(*rows, timed=True, bolt=Sent, grouping=None):
    t = Topology("due")
    stream = t.spout("rows", Nothing())
    if timed:
        stream = stream.timed(lambda value: value[0][1] or 0)
    stream.bolt("bolt", bolt, grouping=grouping or by_key())
    local = LocalRuntime(t, spouts={"rows": list(rows)}, settings=Settings(root_rows=1, max_pending=1))
    local.run_until_drained()
    return local.emitted("bolt")


def test_a_name_is_that_of_one_timer_and_one_that_is_cancelled_is_not_due():
    found = due(("k", [("x", 50), ("y", 20), ("z", 30)]), ("k", [("z", None), ("x", 10), ("y", 40)]))
    assert found == [("k", ("x", 10)), ("k", ("y", 40))]


def test_those_that_are_due_at_once_go_in_the_order_in_which_they_were_set():
    assert due(("k", [("b", 5), ("a", 5), ("b", 5), ("c", 4)])) == [
        ("k", ("c", 4)),
        ("k", ("a", 5)),
        ("k", ("b", 5)),
    ]


def test_at_the_end_of_time_what_is_set_is_due_and_nothing_after_it():
    found = due(("k", [("far", 100), ("again", 200)]))
    assert found[:2] == [("k", ("far", 100)), ("k", ("again", 200))]
    assert len(found) == 2


@pytest.mark.parametrize(
    ("timer", "said"),
    [
        (("x", "soon"), "no finite number"),
        (("x", float("inf")), "no finite number"),
        (("", 5), "a text that is not empty"),
        (("x", 5, "wall"), "'event' or by 'processing'"),
    ],
)
def test_a_timer_that_is_none_is_refused_where_it_is_set(timer, said):
    class Set(Sent):
        def process(self, key, value):
            self.timer(*timer)

    with pytest.raises(TopologyFailed, match=said):
        due(("k", [("x", 5)]), bolt=Set)


def test_event_time_that_is_not_there_is_asked_for():
    with pytest.raises(TopologyFailed, match=r"have no event time; say \.timed"):
        due(("k", [("x", 5)]), timed=False)


@pytest.mark.parametrize("grouping", [by_key(), single()], ids=["by_key", "single"])
@pytest.mark.parametrize("hook", ["__init__", "open", "close"])
def test_timers_are_set_by_objects_at_work(hook, grouping):
    class Early(Sent):
        pass

    setattr(Early, hook, lambda self, *given: self.timer("x", 1.0))
    if hook == "close":
        assert [value for _, value in due(("k", [("x", 5)]), bolt=Early, grouping=grouping)] == [("x", 5)]
    else:
        with pytest.raises(TopologyFailed, match="works in process, tick and on_timer alone"):
            due(("k", [("x", 5)]), bolt=Early, grouping=grouping)


class NoHook(Bolt):
    def process(self, key, value):
        self.timer("x", 1.0)


def test_a_bolt_without_the_hook_has_no_timers():
    with pytest.raises(TopologyFailed, match=r"define on_timer\(self, name, at\)"):
        due(("k", [("x", 5)]), bolt=NoHook)


class Waits(Sent):
    async def process(self, key, value):
        pass


@pytest.mark.parametrize(
    ("bolt", "options", "said"),
    [
        (Sent, {"grouping": shuffle()}, "whose objects stand for no key"),
        (Waits, {"grouping": by_key()}, "process is async"),
        (Sent, {"grouping": by_key(), "replicas": 2}, "on_timer do not go together"),
    ],
)
def test_what_cannot_have_timers_says_so_when_it_is_built(bolt, options, said):
    with pytest.raises(TopologyError, match=said):
        Topology("t").spout("rows", Nothing()).bolt("bolt", bolt, **options)


def test_windows_have_no_timers():
    with pytest.raises(TopologyError, match="lives until that closes"):
        Topology("t").spout("rows", Nothing()).window("bolt", Sent, TumblingWindow(5), time=at)


def test_a_timer_that_raises_is_under_the_policy_of_the_unit():
    class Raises(Sent):
        def on_timer(self, name, at):
            raise ValueError(name)

    with pytest.raises(TopologyFailed, match="on_timer, key 'k': ValueError: x"):
        due(("k", [("x", 5)]), bolt=Raises)


class Rounds(Bolt):
    """Goes on by itself: a timer every five seconds."""

    def process(self, key, value):
        self.timer("round", value["at"] + 5)

    def on_timer(self, name, at):
        self.emit(self.key, {"at": at})
        self.timer("round", at + 5)


@pytest.mark.parametrize("at_once", [False, True], ids=["one at a time", "all at once"])
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("order", ["short first", "long first"])
def test_what_is_due_at_the_end_does_not_depend_on_how_far_the_watermark_was(at_once, parallelism, order):
    short = [("a", {"at": 0, "n": 0}), ("b", {"at": 21, "n": 1})]
    long = [("c", {"at": 3, "n": 0}), ("d", {"at": 100, "n": 1})]
    t = Topology("rounds")
    spouts = [t.spout(name, Nothing(), time=at) for name in ("first", "second")]
    rounds = t.bolt("rounds", Rounds, dict.fromkeys(spouts, by_key()), parallelism=parallelism)
    rounds.bolt("behind", Rounds, by_key(), parallelism=parallelism)
    first, second = (short, long) if order == "short first" else (long, short)
    options = Settings() if at_once else Settings(root_rows=1, max_pending=1)
    local = LocalRuntime(t, spouts={"first": first, "second": second}, settings=options)
    local.run_until_drained()
    # As if a tuple had come behind the last one: rounds up to its time, and of each key the one that is due behind it.
    found = sorted((key, value["at"]) for key, value in local.emitted("rounds"))
    begun = {"a": 5, "b": 26, "c": 8, "d": 105}
    assert found == sorted((key, at) for key, first in begun.items() for at in range(first, 106, 5) if at - 5 <= 100)
    behind = sorted((key, value["at"]) for key, value in local.emitted("behind"))
    assert behind[-1] == ("d", 110)
    assert [time for key, time in behind if key == "a"][-1] == 110


class SetsAtItsEnd(Bolt):
    """Has `finish` set a timer, though nothing is left that could hear it."""

    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1

    def on_timer(self, name, at):
        self.emit(self.key, (name, self.n))

    def finish(self):
        if self.context.finishing == "expired":
            self.timer("late", self.context.now() + 3, by="processing")
        self.emit(self.key, ("end", self.n))


def test_a_timer_that_finish_sets_is_not_that_of_the_key_s_next_object():
    t = Topology("ends")
    rows = Paced(Items([(key, 1) for key in "abbbabbbb"]), rate=1)
    t.spout("rows", rows).bolt("count", SetsAtItsEnd, grouping=by_key(), expire_after=2)
    local = LocalRuntime(t)
    local.run_until_drained()
    assert [row for row in local.emitted("count") if row[0] == "a"] == [("a", ("end", 1)), ("a", ("end", 1))]
