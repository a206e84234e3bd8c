"""Hot keys that are split: whatever changes and dies, what comes out is what a plain loop says, and a key that has cooled is joined."""

from __future__ import annotations

import functools
import operator
import random
from collections import Counter
from typing import Any

import pytest
from counting import Landed, Nothing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from test_change_machine import EXAMPLES, Fed
from test_checkpoints import walk
from test_window_machine import Windows
from walk import prove
from windowed import LATENESS, Gather, again_of, at, chain, gathered, windows_of

from esault import Bolt, Topology, TopologyFailed, dead_letter, skip
from esault.aggregates import count, max, mean, sum
from esault.control.report.summary import snapshot
from esault.flow.send.split_key_route import SplitKeyRoute
from esault.messages.settings import Settings
from esault.testing import LocalRuntime
from esault.windows import CalendarWindow, SlidingWindow, TumblingWindow

AGAIN = TumblingWindow(50)
#: half of all tuples have the first of these keys
KEYS = "aaaaaaabcdefgh"


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """A few tuples are enough to take a key for hot; the number of tuples that were split, the dead senders' included."""
    monkeypatch.setattr("esault.flow.send.split_key_route.JUDGED", 16)
    monkeypatch.setattr("esault.flow.send.split_key_route.SEEN", 4)
    split, choose = [0], SplitKeyRoute._choose_parts

    def counted(self, *args):
        before = self.split_tuples
        choose(self, *args)
        split[0] += self.split_tuples - before

    monkeypatch.setattr(SplitKeyRoute, "_choose_parts", counted)
    return split


def rows_of(seed, count=600, keys=KEYS):
    order, newest, rows = random.Random(seed), 0, []
    for n in range(count):
        newest += order.randint(0, 3)
        rows.append((order.choice(keys), {"at": newest - order.randint(0, LATENESS), "n": n}))
    return rows


class SplitWindows(Windows):
    """Half of all rows are of one key at a time, which is another one now and then."""

    passing = {"split": True}
    hot = "a"

    @initialize(seed=st.integers(0, 1 << 30), delivery=st.sampled_from(["alo", "alo", "none", "eo"]))
    def begin(self, seed, delivery):
        super().begin(seed, delivery)

    @rule(
        rows=st.lists(
            st.tuples(st.sampled_from("abcdefgh"), st.integers(0, LATENESS), st.integers(0, 3)), min_size=1, max_size=40
        )
    )
    def emit_hot(self, rows):
        for key, behind, further in rows:
            self.emit([(self.hot, behind, further), (key, 0, 0)])

    @rule(hot=st.sampled_from("abcdefgh"))
    def another(self, hot):
        self.hot = hot

    @rule(which=st.integers(0, 9), what=st.sampled_from(["split", "merge", "move"]))
    def change_parts(self, which, what):
        self.wish("window.partial", what, self.owner("window.partial", which))

    @rule(n=st.integers(1, 4))
    def scale_parts(self, n):
        self.wish("window.partial", "scale", n)

    def certain(self):
        self.begin(seed=1, delivery="eo")
        self.emit_hot(rows=[(key, 0, 1) for key in "abcdefgh"] * 15)
        self.go_on(steps=60)
        self.checkpoint()
        self.local.run_for(1.0)
        self.scale_parts(n=3)
        self.another(hot="b")
        self.emit_hot(rows=[(key, 0, 1) for key in "abcdefgh"] * 15)
        self.teardown()
        assert self.local.report().units["pass"].split_tuples > 50

    def check(self):
        super().check()
        assert self.local.report().units["window.partial"].late == 0


class SplitSlid(SplitWindows):
    window = SlidingWindow(15, 6)
    again = TumblingWindow(9)


@pytest.mark.parametrize("machine", [SplitWindows, SplitSlid], ids=lambda m: m.__name__)
def test_whatever_moves_split_keys_hold_what_a_batch_computation_says(done, machine):
    prove(machine, EXAMPLES, done)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from([TumblingWindow(10), SlidingWindow(15, 6)]), st.integers(0, 4))
@example(seed=1, window=TumblingWindow(10), kills=3)
@example(seed=2, window=SlidingWindow(15, 6), kills=4)
def test_whoever_dies_split_keys_are_as_if_each_tuple_had_been_processed_once(done, soon, seed, window, kills):
    soon[0] = 0
    rows = rows_of(seed)
    topology = chain(Nothing(), window, AGAIN, parallelism=1, split=True)
    options = Settings(delivery="eo", max_pending=4, root_rows=16, frame_rows=8)
    wide = {"window.partial": 4}
    local = LocalRuntime(topology, spouts={"rows": rows}, seed=seed, settings=options, parallelism=wide)
    order = random.Random(seed)
    walk(local, order, order.choice(["window.partial", "window.partial", "window"]), kills=kills)
    done.of(local, "change", "checkpoint", "death")
    assert soon[0] > 20
    expected = windows_of(window, rows)
    assert local.landed("late") == local.landed("more-late") == []
    assert gathered([(row.key, row.value) for row in local.landed("table")]) == expected
    assert sorted((row.key, row.value) for row in local.landed("more")) == again_of(AGAIN, expected)


def test_a_run_goes_on_from_a_checkpoint_with_parts_of_a_key_on_another_parallelism():
    feed: dict[str, Any] = {"rows": rows_of(3), "ended": False}
    options = Settings(delivery="eo", root_rows=10, max_pending=1)
    topology = chain(Fed(feed), TumblingWindow(1000), AGAIN, parallelism=1, split=True)
    local = LocalRuntime(topology, settings=options)
    local.run_for(1.0)
    local.checkpoint()
    local.run_for(1.0)
    assert local.report().units["pass"].split_tuples > 50
    kept = local.kept[-1]
    closed = gathered([(row.key, row.value) for row in local.landed("table")])
    feed["rows"] += [("a", {"at": feed["rows"][-1][1]["at"], "n": 10_000})]
    feed["ended"] = True
    again = LocalRuntime(
        chain(Fed(feed), TumblingWindow(1000), AGAIN, parallelism=1, split=True),
        settings=options,
        parallelism={"window.partial": 5},
        kept=kept,
        last_number=kept.number,
    )
    again.state_store.pieces.update(local.state_store.pieces)
    again.run_until_drained()
    opened = gathered([(row.key, row.value) for row in again.landed("table")])
    assert not set(opened) & set(closed)
    assert closed | opened == windows_of(TumblingWindow(1000), feed["rows"])


def processed(local, unit):
    """Tuples that each of its sub-units has processed."""
    return [local.driver.units[unit].measurements.last(i).rows.tuples_in for i in local.sub_units(unit)]


def run(rows, factory, window=TumblingWindow(10), parallelism=4, **options):
    t = Topology("split")
    made = t.spout("rows", Nothing()).window(
        "count", factory, window, time=at, lateness=LATENESS, parallelism=parallelism, split_hot_keys=True, **options
    )
    made.sink("table", Landed())
    made["late"].sink("late", Landed())
    local = LocalRuntime(t, spouts={"rows": rows})
    local.run_until_drained()
    return local


def test_a_hot_key_is_shared_by_all_sub_units_and_joined_when_it_has_cooled():
    feed: dict[str, Any] = {"rows": rows_of(5, 400), "ended": False}
    topology = Topology("cools")
    topology.spout("rows", Fed(feed)).window(
        "count", Gather, TumblingWindow(10), time=at, lateness=LATENESS, parallelism=4, split_hot_keys=True
    ).sink("table", Landed())
    local = LocalRuntime(topology)
    local.run_for(2.0)
    assert snapshot(local.driver, local.clock()).units[0].split_keys["count.partial"]["'a'"] == 4
    assert min(processed(local, "count.partial")) > 75  # of 400
    newest = feed["rows"][-1][1]["at"]
    feed["rows"] += [(f"k{n % 50}", {"at": newest, "n": n}) for n in range(400, 800)]
    local.run_for(2.0)
    assert snapshot(local.driver, local.clock()).units[0].split_keys == {}
    feed["ended"] = True
    local.run_until_drained()
    assert gathered([(row.key, row.value) for row in local.landed("table")]) == windows_of(
        TumblingWindow(10), feed["rows"]
    )


@pytest.mark.parametrize("keys", [[1, True, "1", b"1"], [("a", 1), ("a", True)], [("a", "0"), ("a", "1"), "a"]])
def test_look_alikes_stay_apart_when_they_are_split(keys):
    rows = [(keys[n % len(keys)], {"at": n / 100, "n": n}) for n in range(400)]
    local = run(rows, Gather)
    expected = {}
    for key, value in rows:
        expected.setdefault((repr(key), value["at"] // 10 * 10), []).append(value["n"])
    found = {(repr(row.key), row.value["start"]): sorted(row.value["rows"]) for row in local.landed("table")}
    assert found == expected
    assert local.report().units["rows"].split_tuples > 100


def test_aggregates_by_name_are_split_without_more_ado():
    rows = rows_of(6)
    t = Topology("aggregates")
    t.spout("rows", Nothing()).aggregate(
        "all",
        {"n": count(), "most": max("n"), "mean": mean("n"), "sum": sum("n")},
        SlidingWindow(20, 10),
        time=at,
        lateness=LATENESS,
        combine=False,
        parallelism=4,
        split_hot_keys=True,
    ).sink("table", Landed())
    local = LocalRuntime(t, spouts={"rows": rows})
    local.run_until_drained()
    assert local.report().units["rows"].split_tuples > 200
    found = {(row.key, row.value["start"], row.value["end"]): row.value for row in local.landed("table")}
    expected = windows_of(SlidingWindow(20, 10), rows)
    assert set(found) == set(expected)
    for window, of in expected.items():
        value, total = found[window], functools.reduce(operator.add, of)
        assert (value["n"], value["most"], value["sum"], value["mean"]) == (len(of), of[-1], total, total / len(of))


class Total(Bolt):
    """It keeps a state of its own making, and has a field that is no state."""

    def __init__(self, factor=1):
        self.factor = factor
        self.total = 0

    def process(self, key, value):
        if value["n"] == 13:
            raise ValueError("thirteen")
        assert key == self.key
        self.total += self.factor * value["n"]

    def combine(self, other):
        assert (other.key, other.window, other.factor) == (self.key, self.window, self.factor)
        self.total += other.total

    def finish(self):
        self.emit(self.key, self.total)
        self.emit(self.key, "seen", stream="beside")

    def __getstate__(self):
        return self.total

    def __setstate__(self, state):
        self.total = state


def test_a_partial_of_a_class_with_a_state_of_its_own_making_and_another_stream():
    rows = rows_of(7)
    local = run(rows, functools.partial(Total, factor=3), streams=("beside",), on_error=dead_letter("dead"))
    found = Counter()
    for row in local.landed("table"):
        found[row.key] += row.value
    expected = Counter()
    for key, value in rows:
        expected[key] += 3 * value["n"] * (value["n"] != 13)
    assert found == expected
    assert len(local.emitted("count", "beside")) == len(local.landed("table"))
    (thirteen,) = [key for key, value in rows if value["n"] == 13]
    (letter,) = local.dead_letters
    assert letter["key"] == thirteen


def test_what_is_late_has_its_own_key():
    feed: dict[str, Any] = {"rows": [("a", {"at": 100 + n / 100, "n": n}) for n in range(200)], "ended": False}
    topology = Topology("late")
    made = topology.spout("rows", Fed(feed)).window(
        "count", Gather, TumblingWindow(10), time=at, parallelism=4, split_hot_keys=True
    )
    made.sink("table", Landed())
    made["late"].sink("late", Landed())
    local = LocalRuntime(topology)
    local.run_for(1.0)
    feed["rows"].append(("a", {"at": 1, "n": 999}))
    feed["ended"] = True
    local.run_until_drained()
    assert [(row.key, row.value["n"]) for row in local.landed("late")] == [("a", 999)]
    assert local.report().units["count.partial"].late == 1


class EmitsAtOnce(Gather):
    def process(self, key, value):
        super().process(key, value)
        self.emit(key, value["n"])


def test_a_bolt_that_emits_before_finish_is_told_so():
    with pytest.raises(TopologyFailed, match=r"unit 'count'.*emits before finish.*emit in finish"):
        run(rows_of(8), EmitsAtOnce)
    local = run(rows_of(8), EmitsAtOnce, on_error=skip())
    assert local.report().units["count"].errors == 600


def test_days_can_be_split():
    rows = [("ab"[n % 3 == 0], {"at": n * 1000, "n": n}) for n in range(300)]
    local = run(rows, Gather, CalendarWindow("day", "Europe/Berlin"))
    expected = windows_of(CalendarWindow("day", "Europe/Berlin"), rows)
    assert gathered([(row.key, row.value) for row in local.landed("table")]) == expected
