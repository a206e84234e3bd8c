from __future__ import annotations

import functools
import re

import pytest

from esault.errors import TopologyError
from esault.sinks import Collect
from esault.sources import Items
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.builder import Topology
from esault.topology.error_policy import fail, skip
from esault.topology.grouping import broadcast, by_key, partial_key, shuffle, single
from esault.topology.plan import Edge, Input
from esault.topology.sink import Sink
from esault.topology.spout import Spout


class Numbers(Spout):
    def read(self, limit):
        return [(1, 1)]


class Parts(Numbers):
    parallel = True


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Batches(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch(rows)


class Match(Bolt):
    def process_stream(self, stream, key, value):
        self.emit(key, value)


class Rows(Sink):
    def write(self, rows):
        pass


class IdRows(Rows):
    wants_id = True


@pytest.fixture
def t():
    return Topology("numbers")


def refused(said):
    return pytest.raises(TopologyError, match=re.escape(said))


def test_a_topology_has_a_name_and_a_replay_time(t):
    assert (t.name, t.replay_after) == ("numbers", 300.0)
    assert Topology("x", replay_after=5).replay_after == 5.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "my topology"}, "topology: 'my topology' cannot be a name"),
        ({"name": ""}, "topology: the name is empty"),
        ({"name": "x", "replay_after": 0}, "topology 'x': replay_after=0 must be a number of seconds above 0"),
    ],
)
def test_a_topology_with_a_bad_argument_is_refused(arguments, said):
    with refused(said):
        Topology(**arguments)


def test_a_plan_says_all_that_was_said_about_the_units(t):
    lines = t.spout("lines", Parts(), parallelism=2, min_parallelism=2, max_parallelism=3)
    make = functools.partial(Same)
    lines.bolt(
        "count",
        make,
        grouping=by_key(),
        parallelism=4,
        min_parallelism=2,
        max_parallelism=8,
        streams=("late",),
        on_error=skip(2),
        idle_after=1,
        expire_after=2,
        tick_every=0.5,
        buffer=1000,
        overflow="drop",
    )
    plan = t.plan()
    spout, count = plan.units["lines"], plan.units["count"]
    assert (plan.name, plan.replay_after) == ("numbers", 300.0)
    assert (spout.kind, type(spout.spout), spout.factory, spout.inputs) == ("spout", Parts, None, ())
    assert (spout.parallelism, spout.min_parallelism, spout.max_parallelism) == (2, 2, 3)
    assert spout.streams[""].edges == (Edge("count", 0, by_key()),)
    assert (count.kind, count.spout, count.factory, count.batch) == ("bolt", None, make, False)
    assert (count.parallelism, count.min_parallelism, count.max_parallelism) == (4, 2, 8)
    assert count.inputs == (Input("lines", "lines", by_key()),)
    assert list(count.streams) == ["", "late"]
    assert (count.on_error, count.idle_after, count.expire_after, count.tick_every) == (skip(2), 1.0, 2.0, 0.5)
    assert count.buffer == 1000


def test_what_is_not_said_has_its_default(t):
    t.spout("lines", Parts()).bolt("x", Same, shuffle())
    lines, x = t.plan().units.values()
    for unit in (lines, x):
        assert (unit.parallelism, unit.min_parallelism, unit.max_parallelism) == (1, 1, None)
    assert (x.on_error, x.idle_after, x.expire_after, x.tick_every, x.wants_id) == (fail(), None, None, None, False)
    assert x.buffer is None


def test_units_stand_in_an_order_with_senders_first(t):
    b = t.spout("b", Numbers())
    z = b.bolt("z", Same, shuffle())
    a = t.spout("a", Numbers())
    t.bolt("m", Match, {z: by_key(), a: by_key(), b: by_key()}).bolt("c", Same, single())
    plan = t.plan()
    order = list(plan.units)
    assert order == ["b", "z", "a", "m", "c"]
    for name, unit in plan.units.items():
        assert all(order.index(name) < order.index(target) for target in unit.targets)
    assert plan.senders("m") == ("z", "a", "b")


@pytest.mark.parametrize(
    ("grouping", "objects"),
    [
        (by_key(), "key"),
        (partial_key(), "partial_key"),
        (shuffle(), "sub-unit"),
        (broadcast(), "sub-unit"),
        (single(), "unit"),
    ],
)
@pytest.mark.parametrize("factory", [Same, Batches])
def test_the_grouping_says_what_one_object_stands_for(t, grouping, objects, factory):
    t.spout("lines", Numbers()).bolt("x", factory, grouping)
    x = t.plan().units["x"]
    assert (x.objects, x.batch) == (objects, factory is Batches)


def test_a_single_unit_never_has_more_than_one_sub_unit(t):
    t.spout("lines", Numbers()).bolt("x", Same, grouping=single())
    assert t.plan().units["x"].max_parallelism == 1
    with refused("unit 'y': parallelism=2, but single() means one object in one sub-unit. Leave it at 1"):
        t.spout("more", Numbers()).bolt("y", Same, single(), parallelism=2)


def test_a_spout_that_is_not_parallel_never_has_more_than_one_sub_unit(t):
    t.spout("lines", Numbers()).sink("rows", Rows())
    assert t.plan().units["lines"].max_parallelism == 1
    with refused("unit 'more': parallelism=3, but Numbers reads its source in one sub-unit."):
        t.spout("more", Numbers(), parallelism=3)
    with refused("write `parallel = True` in the class Numbers"):
        t.spout("more", Numbers(), max_parallelism=3)


def test_bad_parallelism_is_refused_in_the_call(t):
    with refused("unit 'lines': parallelism=0 must be a whole number from 1 on"):
        t.spout("lines", Numbers(), parallelism=0)
    with refused("unit 'x': min_parallelism=3 is greater than max_parallelism=2"):
        t.spout("lines", Numbers()).bolt("x", Same, shuffle(), min_parallelism=3, max_parallelism=2)


def test_inputs_have_an_index_and_a_label_each(t):
    orders, payments = t.spout("orders", Numbers()), t.spout("payments", Numbers())
    match = t.bolt("match", Match, inputs={orders: by_key(), payments: by_key()}, streams=("unknown",))
    t.bolt("all", Match, {match["unknown"]: shuffle(), match.map(str): broadcast()})
    plan = t.plan()
    assert plan.units["orders"].edges == (Edge("match", 0, by_key()),)
    assert plan.units["payments"].edges == (Edge("match", 1, by_key()),)
    assert plan.units["all"].inputs == (
        Input("match", "match.unknown", shuffle()),
        Input("match", "match", broadcast()),
    )
    assert plan.units["match"].streams["unknown"].edges == (Edge("all", 0, shuffle()),)
    assert plan.units["match"].streams[""].edges == (Edge("all", 1, broadcast()),)


def test_inputs_that_are_none_are_refused(t):
    lines = t.spout("lines", Numbers())
    other = Topology("other").spout("lines", Numbers())
    with refused("unit 'x': inputs is empty; write inputs={stream: by_key(), other: by_key()}"):
        t.bolt("x", Match, {})
    with refused("unit 'x': inputs maps streams to groupings, and this is [<Stream 'lines' of topology 'numbers'>]"):
        t.bolt("x", Match, [lines])
    with refused("unit 'x': 'lines' (str) in inputs is no stream; take what t.spout(...) or .bolt(...) returned"):
        t.bolt("x", Match, {"lines": by_key()})
    with refused("unit 'x': <Stream 'lines' of topology 'other'> is not of topology 'numbers'"):
        t.bolt("x", Match, {lines: by_key(), other: by_key()})
    with refused("unit 'x', input 'lines': no grouping is given"):
        t.bolt("x", Match, {lines: None})
    with refused("unit 'x': its inputs do not agree"):
        t.bolt("x", Match, {lines: by_key(), t.spout("more", Numbers()): shuffle()})


def test_names_of_units_are_unique(t):
    lines = t.spout("lines", Numbers())
    lines.bolt("x", Same, shuffle(), streams=("late",))
    with refused("unit 'lines': topology 'numbers' has a unit 'lines' already; names are unique, choose another"):
        t.spout("lines", Numbers())
    with refused("unit 'x': topology 'numbers' has a unit 'x' already"):
        lines.bolt("x", Same, shuffle())
    with refused("unit 'x.late': topology 'numbers' has the stream 'late' of unit 'x' already"):
        lines.bolt("x.late", Same, shuffle())
    lines.bolt("y.late", Same, shuffle())
    with refused("unit 'y', stream 'late': topology 'numbers' has a unit 'y.late' already"):
        lines.bolt("y", Same, shuffle(), streams=("late",))
    with refused("topology 'numbers', unit: 'a b' cannot be a name"):
        t.spout("a b", Numbers())
    with refused("topology 'numbers', unit: the name comes first and is text, not <"):
        t.spout(Numbers(), "lines")


def test_names_of_sinks_are_unique_but_may_be_those_of_units(t):
    lines = t.spout("lines", Numbers())
    lines.sink("lines", Rows())
    with refused("sink 'lines': unit 'lines' has a sink of this name already; names of sinks are unique"):
        lines.sink("lines", Rows())
    with refused("sink behind unit 'lines': 'a b' cannot be a name"):
        lines.sink("a b", Rows())
    assert [sink.name for sink in t.plan().sinks] == ["lines"]


def test_a_spout_or_sink_object_serves_one_place(t):
    numbers, rows = Numbers(), Rows()
    t.spout("one", numbers).sink("a", rows)
    with refused("unit 'two': this Numbers object is that of unit 'one'; each place needs an object of its own"):
        t.spout("two", numbers)
    with refused("sink 'b': this Rows object is that of sink 'a'"):
        t.spout("two", Numbers()).sink("b", rows)


def test_classes_and_objects_the_wrong_way_round_are_refused_in_the_call(t):
    with refused("unit 'lines': a spout is passed as an object, not as a class; write t.spout('lines', Numbers(...))"):
        t.spout("lines", Numbers)
    lines = t.spout("lines", Numbers())
    with refused("unit 'x': a bolt is passed as a factory"):
        lines.bolt("x", Same(), shuffle())
    with refused("sink 'rows': a sink is passed as an object, not as a class; write .sink('rows', Rows(...))"):
        lines.sink("rows", Rows)


def test_options_of_a_bolt_are_checked_in_the_call(t):
    lines = t.spout("lines", Numbers())
    for argument in ("idle_after", "expire_after", "tick_every"):
        with refused(f"unit 'x': {argument}=0 must be a number of seconds above 0"):
            lines.bolt("x", Same, by_key(), **{argument: 0})
    with refused("unit 'x': on_error has retries=-1"):
        lines.bolt("x", Same, by_key(), on_error=skip(-1))
    with refused("unit 'x': streams='late' is one text"):
        lines.bolt("x", Same, by_key(), streams="late")
    with refused("unit 'x', input 'lines': no grouping is given"):
        lines.bolt("x", Same)
    with refused("unit 'x': buffer=100 lacks overflow='drop': what comes when so many tuples wait is lost"):
        lines.bolt("x", Same, by_key(), buffer=100)
    with refused("unit 'x': overflow='drop' says what happens when an inbox is full, and nothing says when it is"):
        lines.bolt("x", Same, by_key(), overflow="drop")
    with refused("unit 'x': overflow is 'drop', not 'wait'; leave it and buffer out to have senders wait"):
        t.bolt("x", Same, {lines: by_key()}, buffer=100, overflow="wait")
    for buffer in (0, -1, 1.5, True, "100"):
        with refused(f"unit 'x': buffer={buffer!r} must be a whole number of tuples from 1 on"):
            lines.bolt("x", Same, by_key(), buffer=buffer, overflow="drop")
    for concurrency in (1, 64):
        with refused(f"unit 'x': concurrency={concurrency} is for `async def process`, and Same.process does not wait"):
            lines.bolt("x", Same, by_key(), concurrency=concurrency)
    with refused("leave it out, or write `async def process(self, key, value)` in a Bolt"):
        t.bolt("x", Same, {lines: by_key()}, concurrency=64)


def test_a_call_that_was_refused_has_changed_nothing(t):
    lines = t.spout("lines", Numbers())
    lines.sink("rows", Rows())
    before = t.plan()
    wrong = [
        lambda: t.spout("more", Parts(), parallelism=0),
        lambda: lines.bolt("x", Same, by_key(), tick_every=-1),
        lambda: lines.bolt("x", Same, by_key(), streams=("a", "a")),
        lambda: t.bolt("x", Match, {lines: by_key(), lines.map: by_key()}),
        lambda: lines.map(5),
        lambda: lines.sink("more", Rows),
        lambda: lines.reduce("x", lambda total, value: total, initial=0, parallelism=0),
    ]
    for call in wrong:
        with pytest.raises(TopologyError):
            call()
    assert t.plan() == before
    lines.bolt("x", Same, by_key(), streams=("a",))  # its names are still free
    assert list(t.plan().units) == ["lines", "x"]


def test_ids_are_carried_where_a_sink_below_wants_them(t):
    lines = t.spout("lines", Numbers())
    far = lines.bolt("far", Same, shuffle())
    far.bolt("ids", Same, shuffle()).filter(bool).sink("a", IdRows())
    far.bolt("plain", Same, shuffle()).sink("b", Rows())
    side = lines.bolt("side", Same, shuffle(), streams=("s",))
    side["s"].sink("c", IdRows())
    t.spout("else", Numbers()).sink("d", Rows())
    wants = {name: unit.wants_id for name, unit in t.plan().units.items()}
    assert wants == {"lines": True, "far": True, "ids": True, "plain": False, "side": True, "else": False}


def test_a_topology_without_a_spout_is_refused(t):
    with refused("topology 'numbers' has no spout, so that no tuple enters it; add one: t.spout('lines', ...)"):
        t.plan()


def test_a_spout_that_nothing_takes_from_is_refused(t):
    t.spout("one", Numbers()).sink("rows", Rows())
    two = t.spout("two", Numbers())
    said = "unit 'two': nothing takes what this spout reads; give its stream a .bolt(...) or a .sink(...)"
    with refused(said):
        t.plan()
    step = two.map(str)
    with refused(said):
        t.plan()
    step.sink("more", Rows())
    assert set(t.plan().units) == {"one", "two"}


def test_a_topology_shows_its_units(t):
    assert repr(t) == "<Topology 'numbers': empty>"
    t.spout("lines", Numbers())
    assert repr(t) == "<Topology 'numbers': lines>"


def test_a_notebook_gets_a_tree_and_a_flowchart_or_what_is_wrong(t):
    shown = t._repr_mimebundle_()
    assert list(shown) == ["text/plain"]
    assert "has no spout" in shown["text/plain"]
    t.spout("rows", Items([("a", 1)])).sink("out", Collect())
    shown = t._repr_mimebundle_()
    assert "rows" in shown["text/plain"]
    assert shown["text/markdown"].startswith("```mermaid\n") and shown["text/markdown"].endswith("```")
