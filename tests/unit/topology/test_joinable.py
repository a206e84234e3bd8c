"""Joins: what is refused, what their objects keep, and for how long."""

from __future__ import annotations

import re

import pytest

from esault import Topology, TopologyError
from esault.messages.settings import Settings
from esault.sources import Items, Paced
from esault.testing import LocalRuntime
from esault.topology.as_of_join import AsOfJoin
from esault.topology.examine import examine_bolt_class
from esault.topology.interval_join import IntervalJoin
from esault.topology.join import Join
from esault.topology.table_join import LEFT, TABLE
from esault.topology.tables_join import TablesJoin
from esault.topology.timed_bolt import NEVER
from esault.windows import CountWindow, TumblingWindow

ONE_BY_ONE = Settings(root_rows=1, max_pending=1, reload_state=True)


def at(value):
    return value[0]


def streams():
    t = Topology("t")
    return t, t.spout("a", Items([])), t.spout("b", Items([]))


NO_END = "neither window nor within is given, one of which says how long a tuple waits for its partners (without an end all tuples"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, NO_END),
        ({"window": TumblingWindow(5), "within": (1, 1)}, "both window and within are given"),
        ({"within": 5}, "within=5; write within=(before, after), two numbers of seconds"),
        ({"within": (1, "2")}, "within=(1, '2') has '2' (str)"),
        ({"within": (1, True)}, "within=(1, True) has True (bool)"),
        ({"within": (-5, 10)}, "between(-5, 10) is within=(5, 10)"),
        ({"within": (5, -10)}, "contains no time: it ends 10 s before a tuple and begins 5 s before it"),
        ({"within": (5, float("inf"))}, "has no end, so that all tuples of a side would be kept for ever"),
        ({"within": (1, 1), "kind": "full"}, "kind='full' is not one of 'inner', 'left', 'right', 'outer'"),
        ({"within": (1, 1), "keep": "newest"}, "keep='newest' is not one of 'all', 'first', 'last'"),
        (
            {"within": (1, 1), "keep": "last", "kind": "outer"},
            "keep='last' gives each tuple of this stream one partner",
        ),
        ({"within": (1, 1), "time": None}, "nothing says when a tuple of 'a' happened; write time=lambda value"),
        ({"within": (1, 1), "time": (at,)}, "time is one function for both sides, or a pair of them"),
        ({"window": CountWindow(5)}, "tuples of several streams share no CountWindow; join by a window of time"),
    ],
)
def test_a_join_that_makes_no_sense_is_refused(options, said):
    _, a, b = streams()
    with pytest.raises(TopologyError, match=r"unit 'x': .*" + re.escape(said)):
        a.join("x", b, **{"time": at, **options})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"time": at}, "time, lateness, idle and ahead are for a table as of a tuple's own time; write as_of=True"),
        ({"as_of": True}, "nothing says when a tuple of 'a' happened"),
        (
            {"as_of": True, "time": at, "missing": "wait"},
            "missing='wait' does not go with as_of: each tuple waits until",
        ),
        ({"as_of": True, "time": at, "idle_after": 5}, "idle_after does not go with as_of"),
        ({"as_of": True, "time": at, "expire_after": 0}, "expire_after=0 must be a number of seconds above 0"),
    ],
)
def test_a_table_as_of_a_time_that_makes_no_sense_is_refused(options, said):
    _, a, b = streams()
    with pytest.raises(TopologyError, match=r"unit 'x': .*" + re.escape(said)):
        a.join_table("x", b, **options)


def test_joins_of_several_streams_name_what_is_wrong_with_them():
    t, a, b = streams()
    with pytest.raises(TopologyError, match=r"unit 'x': a join takes a list of two or more streams"):
        t.join("x", [a], TumblingWindow(5), time=at)
    with pytest.raises(TopologyError, match=r"unit 'x': a stream is given twice"):
        t.join("x", [a, b, a], TumblingWindow(5), time=at)
    with pytest.raises(TopologyError, match=r"unit 'x': time names .* which is not among inputs"):
        t.join("x", [a, b], TumblingWindow(5), time={a.filter(bool): at})
    with pytest.raises(TopologyError, match=r"is no stream of topology 't'; join a table with another"):
        a.join_tables("x", "b")


def test_two_streams_of_one_unit_are_two_sides():
    t, a, b = streams()
    t.join("x", [a.filter(bool), a, b], TumblingWindow(5), time=at)
    assert len(t.plan().units["x"].inputs) == 3


@pytest.mark.parametrize("cls", [IntervalJoin, AsOfJoin, TablesJoin, Join])
def test_joins_are_bolts_as_users_write_them(cls):
    assert examine_bolt_class(cls, "x") is False


def test_a_join_that_was_saved_before_there_were_more_sides_goes_on():
    join = Join("inner", ("left", "right"))
    join.__setstate__({"left": (1, 2), "right": (3,)})
    assert join.sides == [[1, 2], [3]]


class Versions(AsOfJoin):
    def __init__(self, missing="none", expire_after=None):
        super().__init__(missing, expire_after)
        self.key, self.emitted = "k", []

    def emit(self, key, value, stream=None):
        self.emitted.append((value, stream))


def test_of_versions_that_the_watermark_has_passed_the_newest_stays():
    join = Versions()
    for time in (1, 5, 9):
        assert join.take(TABLE, f"v{time}", time, 0)
    assert join.due == pytest.approx(5)
    join.advance(6)
    assert [version for _, _, version in join.versions] == ["v5", "v9"]
    join.advance(100)
    assert [version for _, _, version in join.versions] == ["v9"] and join.due == NEVER


def test_a_late_version_holds_unless_a_newer_one_had_passed():
    join = Versions()
    join.take(TABLE, "v5", 5, 0)
    join.advance(10)
    assert join.take(TABLE, "v7", 7, 10)  # nothing newer is known: from now on it holds
    join.advance(10)
    assert not join.take(TABLE, "v6", 6, 10)
    assert join.take(LEFT, "order", 12, 10) and not join.take(LEFT, "order", 9, 10)
    join.advance(13)
    assert join.emitted == [(("order", "v7"), None)]


def test_of_two_versions_of_one_time_the_second_holds_and_from_its_time_on():
    join = Versions("drop")
    for time, version in [(5, "first"), (5, "second")]:
        join.take(TABLE, version, time, 0)
    for time in (4, 5):
        join.take(LEFT, time, time, 0)
    join.advance(6)
    assert join.emitted == [(4, "unmatched"), ((5, "second"), None)]


def test_a_key_expires_by_event_time():
    join = Versions(expire_after=60)
    join.take(TABLE, "v", 5, 0)
    join.take(LEFT, "order", 20, 6)
    join.advance(80)
    assert join.needed
    join.advance(81)
    assert not join.needed and join.emitted == [(("order", "v"), None)]


def test_a_tuple_behind_the_watermark_is_late_on_both_sides():
    t = Topology("t")
    rows = [(1, "a"), (2, "b"), (50, "a"), (3, "a"), (4, "b")]
    both = t.spout("both", Paced(Items([("k", row) for row in rows]), 1.0), time=at)  # watermarks come in between
    a, b = (both.filter(lambda v, s=side: v[1] == s) for side in "ab")
    a.join("x", b, within=(5, 5), kind="left")
    local = LocalRuntime(t, settings=ONE_BY_ONE)
    local.run_until_drained()
    assert local.emitted("x") == [("k", ((1, "a"), (2, "b"))), ("k", ((50, "a"), None))]
    assert local.emitted("x", "late") == [("k", (3, "a")), ("k", (4, "b"))]
    assert local.report().units["x"].late == 2


def test_state_is_gone_when_the_watermark_has_passed_it():
    t = Topology("t")
    rows = [(f"k{n}", (n, side)) for n in range(300) for side in "ab"]
    both = t.spout("both", Paced(Items(rows), 10.0), time=at)
    a, b = (both.filter(lambda v, s=side: v[1] == s) for side in "ab")
    a.join("x", b, within=(5, 5))
    local = LocalRuntime(t, settings=ONE_BY_ONE)
    most = 0
    while local.driver.phase != "ended":
        if not local.step():
            local.wait()
        most = max([most, *(p.core.operator.elements.count for p in local._processes.values() if _is_of(p, "x"))])
    assert len(local.emitted("x")) == 300
    assert 2 < most < 20


def _is_of(process, unit):
    core = getattr(process, "core", None)
    return core is not None and core.plan.name == unit


def united(way: str) -> Topology:
    """A table and its changes are one table, and orders of two places one stream."""
    t = Topology("united")
    first = t.spout("first", Items([("c1", (0, "Ada")), ("c2", (0, "Bob"))]))
    changes = t.spout("changes", Items([("c2", (5, "Bea")), ("c3", (5, "Cem"))]), after=first)
    here = t.spout("here", Items([("c1", (7, "tea")), ("c2", (3, "cup"))]), after=changes)
    there = t.spout("there", Items([("c2", (8, "pot")), ("c3", (9, "tea"))]), after=here)
    orders, table = here.union(there), first.union(changes)
    if way == "tables":
        orders.join_tables("joined", table)
    elif way == "as of":
        orders.join_table("joined", table, as_of=True, time=at, lateness=10)
    else:
        orders.join_table("joined", table, expire_after=60)
    return t


@pytest.mark.parametrize("way", ["table", "as of", "tables"])
def test_sides_of_tables_may_be_unions(way):
    local = LocalRuntime(united(way), parallelism={"joined": 2})
    local.run_until_drained()
    held = {("cup", "Bob" if way == "as of" else "Bea"), ("tea", "Ada"), ("pot", "Bea"), ("tea", "Cem")}
    assert {(order[1], customer[1]) for _, (order, customer) in local.emitted("joined")} == held
    assert len(local.emitted("joined")) == 4


def test_a_union_with_a_stream_of_another_topology_is_no_table():
    _, a, b = streams()
    _, c, d = streams()
    with pytest.raises(TopologyError, match="is no stream of topology 't'; the table is a stream"):
        a.union(b).join_table("joined", c.union(d))
