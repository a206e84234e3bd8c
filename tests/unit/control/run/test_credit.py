"""The number of tuples on their way."""

from __future__ import annotations

from types import SimpleNamespace as Made

import pytest
from counting_plan import Lines, Pass

from esault import Topology, by_key, shuffle
from esault.control.run.ack_routing_updates import filling, widest


def bolt(width, concurrency=None):
    return Made(subs=[None] * width, plan=Made(kind="bolt", concurrency=concurrency))


@pytest.mark.parametrize(("concurrency", "width"), [(None, 3), (1, 3), (50, 3), (51, 6), (500, 30)])
def test_one_whose_calls_wait_counts_for_so_many_more(concurrency, width):
    assert widest({"a": bolt(3, concurrency), "b": bolt(2)}, 100) == width


def test_spouts_do_not_count_and_without_bolts_it_is_one():
    spout = Made(subs=[None] * 9, plan=Made(kind="spout", concurrency=None))
    assert widest({"s": spout}, 100) == widest({}, 100) == 1
    assert widest({"s": spout, "b": bolt(2)}, 100) == 2


def test_bounded_inboxes_are_filled_twice_by_each_spout_above_them():
    t = Topology("t")
    one, two = t.spout("one", Lines()), t.spout("two", Lines())
    middle = one.bolt("middle", Pass, shuffle(), buffer=10, overflow="drop")
    middle.union(two).bolt("end", Pass, by_key(), buffer=100, overflow="drop")
    plan = t.plan()
    units = {name: Made(plan=unit, subs=[None] * 3) for name, unit in plan.units.items()}
    assert filling(plan, units) == {"one": 2 * 10 * 3 + 2 * 100 * 3, "two": 2 * 100 * 3}
