from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import TopologyError
from esault.topology.bolt import Bolt
from esault.topology.builder import Topology
from esault.topology.error_policy import skip
from esault.topology.grouping import by_key, shuffle
from esault.topology.reduce import Reduce
from esault.topology.sink import Sink
from esault.topology.spout import Spout


class Numbers(Spout):
    def read(self, limit):
        return [(1, 1)]


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Rows(Sink):
    def write(self, rows):
        pass


def refused(said):
    return pytest.raises(TopologyError, match=re.escape(said))


@pytest.fixture
def t():
    return Topology("numbers")


@pytest.fixture
def lines(t):
    return t.spout("lines", Numbers())


def names(outlet):
    return [step.name for step in outlet.steps]


def test_steps_in_a_row_are_one_list(t, lines):
    lines.map(str).filter(bool).flat_map(list).key_by(len).sink("rows", Rows())
    (outlet,) = t.plan().units["lines"].streams.values()
    assert [step.kind for step in outlet.steps] == ["map", "filter", "flat_map", "key_by"]
    assert [step.function for step in outlet.steps] == [str, bool, list, len]
    assert [sink.name for sink in outlet.sinks] == ["rows"]
    assert outlet.branches == ()


def test_two_consumers_share_the_steps_before_them(t, lines):
    words = lines.map(str)
    words.sink("all", Rows())
    words.filter(bool).sink("some", Rows())
    words.bolt("x", Same, shuffle())
    outlet = t.plan().units["lines"].streams[""]
    assert names(outlet) == ["lines.map"]
    assert [sink.name for sink in outlet.sinks] == ["all"]
    assert [edge.target for edge in outlet.edges] == ["x"]
    (branch,) = outlet.branches
    assert names(branch) == ["lines.filter"]
    assert [sink.name for sink in branch.sinks] == ["some"]


def test_two_branches_of_one_stream_stay_apart(t, lines):
    lines.map(str).map(len).sink("a", Rows())
    lines.filter(bool).sink("b", Rows())
    outlet = t.plan().units["lines"].streams[""]
    assert (outlet.steps, outlet.sinks, outlet.edges) == ((), (), ())
    assert [names(branch) for branch in outlet.branches] == [["lines.map", "lines.map-2"], ["lines.filter"]]


@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["map", "sink", "bolt"])), max_size=25))
def test_every_consumer_gets_the_steps_on_its_way_and_no_step_stands_twice(actions):
    t = Topology("random")
    streams = [(t.spout("lines", Numbers()), [])]
    expected = {}
    for i, (at, action) in enumerate(actions):
        stream, way = streams[at % len(streams)]
        if action == "map":
            streams.append((stream.map(str, name=f"s{i}"), [*way, f"lines.s{i}"]))
        elif action == "sink":
            stream.sink(f"k{i}", Rows())
            expected[f"k{i}"] = way
        else:
            stream.bolt(f"b{i}", Same, shuffle())
            expected[f"b{i}"] = way
    if not expected:
        return
    root = t.plan().units["lines"].streams[""]
    found, steps = {}, []

    def walk(outlet, way):
        steps.extend(names(outlet))
        way = way + names(outlet)
        for consumer in [sink.name for sink in outlet.sinks] + [edge.target for edge in outlet.edges]:
            assert consumer not in found
            found[consumer] = way
        for branch in outlet.branches:
            # Nothing is left to merge: a branch has steps, and its parent a reason to end.
            assert branch.steps
            assert outlet.sinks or outlet.edges or len(outlet.branches) > 1
            walk(branch, way)

    walk(root, [])
    assert found == expected
    assert len(steps) == len(set(steps)) == len(streams) - 1


def test_steps_have_names_and_error_policies_of_their_own(t, lines):
    x = lines.bolt("x", Same, by_key(), streams=("late",))
    lines.map(str, name="text", on_error=skip(1)).map(str).sink("a", Rows())
    x["late"].filter(bool).sink("b", Rows())
    plan = t.plan()
    first, second = plan.units["lines"].streams[""].branches[0].steps
    assert (first.name, first.on_error) == ("lines.text", skip(1))
    assert second.name == "lines.map"
    assert names(plan.units["x"].streams["late"]) == ["x.late.filter"]


def test_bad_steps_are_refused_in_the_call(lines):
    def many(value):
        yield value

    lines.flat_map(many)
    with refused("unit 'lines', map: many yields; return one value, or use flat_map for several"):
        lines.map(many)
    with refused("unit 'lines', filter: None (NoneType) is not callable; pass a function"):
        lines.filter(None)
    with refused("unit 'lines', key_by: the lambda must take 1 argument: the value"):
        lines.key_by(lambda key, value: key)
    with refused("unit 'lines', map: on_error=skip lacks its brackets; write on_error=skip()"):
        lines.map(str, on_error=skip)
    with refused("unit 'lines', map: name: 'a b' cannot be a name"):
        lines.map(str, name="a b")
    lines.map(str, name="text")
    with refused("unit 'lines', filter 'text': behind 'lines' a step has this name already; choose another"):
        lines.filter(bool, name="text")
    with refused("unit 'lines', flat_map: Same is a bolt; write .bolt(name, Same, grouping=...)"):
        lines.flat_map(Same)


def test_streams_beside_the_main_one_are_found_by_their_names(t, lines):
    x = lines.bolt("x", Same, by_key(), streams=("late", "odd"))
    assert x["late"] is x["late"]
    assert x["late"] is not x["odd"]
    x["late"].sink("rows", Rows())
    streams = t.plan().units["x"].streams
    assert [sink.name for sink in streams["late"].sinks] == ["rows"]
    assert not streams["odd"].sinks


def test_a_stream_that_is_not_declared_is_refused(lines):
    x = lines.bolt("x", Same, by_key(), streams=("late", "odd"))
    with refused("unit 'x': it declares no stream 'unknown' (declared: 'late', 'odd'); add it to its bolt(...)"):
        x["unknown"]
    with refused("unit 'lines': it declares no stream 'late' (declared: none)"):
        lines["late"]
    with refused("unit 'x': only the stream that bolt(...) returned has streams beside it; take ['late'] from that"):
        x.map(str)["late"]
    with refused("unit 'x': only the stream that bolt(...) returned"):
        x["late"]["odd"]


def test_reduce_is_a_keyed_bolt(t, lines):
    lines.key_by(str).reduce(
        "count",
        lambda total, value: total + 1,
        initial=0,
        parallelism=2,
        min_parallelism=2,
        max_parallelism=4,
        on_error=skip(),
        idle_after=5,
        expire_after=6,
        buffer=7,
        overflow="drop",
    ).sink("rows", Rows())
    count = t.plan().units["count"]
    assert (count.objects, count.batch) == ("key", False)
    assert count.inputs[0].grouping == by_key()
    assert (count.parallelism, count.min_parallelism, count.max_parallelism) == (2, 2, 4)
    assert (count.on_error, count.idle_after, count.expire_after) == (skip(), 5.0, 6.0)
    assert count.buffer == 7
    one = count.factory()
    assert isinstance(one, Reduce)
    assert one.total == 0


def test_keys_do_not_share_the_initial_of_reduce(t, lines):
    lines.reduce("all", lambda total, value: [*total, value], initial=[])
    make = t.plan().units["all"].factory
    assert make().total == []
    assert make().total is not make().total


def test_a_reduce_that_cannot_work_is_refused(lines):
    with refused("unit 'count': the lambda must take 2 arguments: the total, the value"):
        lines.reduce("count", lambda value: value, initial=0)
    with refused("unit 'count': 5 (int) is not callable"):
        lines.reduce("count", 5, initial=0)
    with refused("unit 'count': initial=<class 'list'> is to be called, not a total; write the value itself"):
        lines.reduce("count", lambda total, value: total, initial=list)
    with refused("unit 'count': each key starts from a copy of initial, and <generator"):
        lines.reduce("count", lambda total, value: total, initial=(x for x in ()))


def test_a_stream_says_where_it_comes_from(lines):
    x = lines.bolt("x", Same, by_key(), streams=("late",))
    assert repr(lines) == "<Stream 'lines' of topology 'numbers'>"
    assert repr(x["late"].map(str)) == "<Stream 'x.late' > map of topology 'numbers'>"
