"""When a run counts as idle."""

from __future__ import annotations

import pytest

from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.runtime.session.idle_watch import IdleWatch


def seen(tuples=3, backlog=0, phase="running", draining=False, roots_open=0):
    unit = UnitSnapshot(name="count", kind="bolt", sub_units=1, tuples_in=tuples, backlog=backlog)
    return Snapshot(
        topology="t", phase=phase, draining=draining, now=0.0, seconds=0.0, units=(unit,), roots_open=roots_open
    )


def test_it_is_idle_after_so_long_without_a_tuple_and_each_tuple_begins_it_anew():
    watch = IdleWatch(5.0)
    assert [watch.seen(seen(), at) for at in (10.0, 14.9, 15.0)] == [False, False, True]
    assert [watch.seen(seen(4), at) for at in (16.0, 20.9, 21.0)] == [False, False, True]


@pytest.mark.parametrize("busy", [{"backlog": 1}, {"roots_open": 1}, {"phase": "building"}, {"draining": True}])
def test_what_waits_or_is_under_way_is_no_idleness(busy):
    watch = IdleWatch(5.0)
    watch.seen(seen(), 10.0)
    assert not watch.seen(seen(**busy), 15.0)
    assert not watch.seen(seen(), 19.9)
    assert watch.seen(seen(), 20.0)
