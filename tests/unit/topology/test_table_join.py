from __future__ import annotations

import re

import pytest

from esault import Topology, TopologyError
from esault.sources import Items
from esault.topology.examine import examine_bolt_class
from esault.topology.table_join import LEFT, TABLE, TableJoin


class CompletedCheckpoint(TableJoin):
    def __init__(self, missing, most=1000):
        super().__init__(missing, most)
        self.key = "k"
        self.emitted = []

    def emit(self, key, value, stream=None):
        self.emitted.append((value, stream))

    def clear_state(self):
        self.newest = None


@pytest.mark.parametrize(
    ("missing", "emitted"),
    [
        ("none", [((1, None), None), ((2, "a"), None), ((3, "b"), None), ((4, None), None)]),
        ("drop", [(1, "unmatched"), ((2, "a"), None), ((3, "b"), None), (4, "unmatched")]),
        ("wait", [((1, "a"), None), ((2, "a"), None), ((3, "b"), None), (4, "unmatched")]),
    ],
)
def test_each_tuple_goes_out_with_the_newest_value(missing, emitted):
    bolt = CompletedCheckpoint(missing)
    for stream, value in [(LEFT, 1), (TABLE, "a"), (LEFT, 2), (TABLE, "b"), (LEFT, 3), (TABLE, None), (LEFT, 4)]:
        bolt.process_stream(stream, "k", value)
    bolt.finish()
    assert bolt.emitted == emitted


def test_the_oldest_waits_no_more_where_too_many_do():
    bolt = CompletedCheckpoint("wait", 2)
    for value in range(4):
        bolt.process_stream(LEFT, "k", value)
    bolt.process_stream(TABLE, "k", "a")
    assert bolt.emitted == [(0, "unmatched"), (1, "unmatched"), ((2, "a"), None), ((3, "a"), None)]


def test_value_and_what_waits_are_what_moves():
    old, new = TableJoin("wait", 5), TableJoin("wait", 5)
    old.waiting.append(1)
    new.__setstate__({name: tuple(v) if isinstance(v, list) else v for name, v in old.__getstate__().items()})
    assert new.__getstate__() == {"newest": None, "waiting": [1]}
    assert examine_bolt_class(TableJoin, "x") is False


def test_both_sides_may_come_from_one_unit():
    t = Topology("x")
    rows = t.spout("rows", Items([]))
    rows.filter(bool).join_table("both", rows)
    assert [i.stream for i in t.plan().units["both"].inputs] == [LEFT, TABLE]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"missing": "null"},
            "unit 'x': missing='null' says what becomes of a tuple whose key the table does not have",
        ),
        ({"wait_most": 5}, "wait_most=5 is for missing='wait', and nothing waits with 'none'; leave it out"),
        ({"missing": "wait", "wait_most": 0}, "wait_most=0 must be a whole number of tuples per key from 1 on"),
        ({"missing": "wait", "wait_most": True}, "wait_most=True must be a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(options, said):
    t = Topology("t")
    rows = t.spout("rows", Items([]))
    with pytest.raises(TopologyError, match=re.escape(said)):
        rows.join_table("x", rows, **options)


def test_the_table_is_a_stream_of_the_same_topology():
    t, other = Topology("t"), Topology("other")
    rows, strange = t.spout("rows", Items([])), other.spout("rows", Items([]))
    for table in (strange, "customers"):
        with pytest.raises(
            TopologyError, match=r"unit 'x': .* is no stream of topology 't'; the table is a stream whose"
        ):
            rows.join_table("x", table)
