"""The window of a spout: so many roots, or so many tuples for each sub-unit that there is."""

from __future__ import annotations

import pytest

from esault import Bolt, Spout, Topology, by_key
from esault.flow.delivery.acks import Acks
from esault.flow.delivery.roots import Roots
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

SMALL = {"max_pending": 2, "root_rows": 8}


class Echo(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Later(Spout):
    """Nothing for a second, then without end."""

    def open(self, context):
        self.begin = context.now() + 1.0

    def read(self, limit):
        return [(f"key-{i}", i) for i in range(limit)] if self.context.now() >= self.begin else []


def runtime(sub_units, **settings):
    t = Topology("small")
    t.spout("rows", Later()).bolt("worker", Echo, grouping=by_key(), parallelism=sub_units)
    local = LocalRuntime(t, settings=Settings(**{**SMALL, **settings}))
    local.run_for(0.1)
    return local


def open_roots(local):
    """How many roots are open when nobody processes anything."""
    for incarnation in local.sub_units("worker"):
        local.freeze(incarnation)
    local.run_for(2.0)
    return local.report().roots.open


@pytest.mark.parametrize(
    ("sub_units", "pending_rows", "roots"),
    [
        (1, 0, 2),  # max_pending
        (1, 64, 2),  # enough for one sub-unit
        (4, 16, 8),
        (4, 17, 9),
    ],
)
def test_the_window_is_wide_enough_for_all_sub_units(sub_units, pending_rows, roots):
    assert open_roots(runtime(sub_units, pending_rows=pending_rows)) == roots


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1)])
def test_the_window_follows_the_number_of_sub_units(before, after):
    local = runtime(before, pending_rows=16)
    local.scale("worker", after)
    local.wait_for_change("worker")
    local.run_for(0.1)
    assert open_roots(local) == 2 * after


def test_a_spout_that_gives_one_tuple_at_a_time_still_feeds_all():
    def one_batch(lineage, payload):
        lineage.p ^= 7
        lineage.d ^= 7

    roots = Roots(1, Settings(max_pending=2, pending_rows=3), Acks(1, 1, None, None, None), one_batch)
    roots.widen(4)
    for _ in range(12):
        assert roots.credit
        roots.open([("", ["key"], [1], None)], 0.0, None, 0.0)
    assert not roots.credit
    roots.ack((1, 0, 0), 7, 0, 1.0)  # processed, and not durable
    assert roots.credit
    roots.ack((1, 0, 0), 0, 7, 1.0)
    roots.check()
    roots.widen(0.5)  # by the number of roots it is full for long
    for number in range(1, 11):
        assert not roots.credit
        roots.ack((1, number, 0), 7, 7, 1.0)
    assert roots.credit
    roots.check()


def test_the_ack_latency_of_a_root_is_the_time_until_all_of_it_is_durable():
    sent = []

    def one_batch(lineage, payload):
        sent.append(lineage)
        lineage.p ^= 7
        lineage.d ^= 7

    roots = Roots(1, Settings(), Acks(1, 1, None, None, None), one_batch)
    roots.open([("", ["key"], [1], None)], 0.0, None, 10.0)
    roots.ack((1, 0, 0), 7, 0, 11.0)
    assert (roots.completion.max, roots.ack_latency.count) == (1.0, 0)
    roots.ack((1, 0, 0), 0, 7, 14.0)
    assert (roots.ack_latency.max, roots.ack_latency.count) == (4.0, 1)
    # one that is replayed waits from its first attempt on
    roots.open([("", ["key"], [1], None)], 0.0, None, 20.0)
    roots.grace(20.0)
    roots.watch(1e6)
    assert roots.replay_one(1e6)
    roots.ack((1, 1, 1), 7, 7, 1e6 + 20)
    assert (roots.ack_latency.max, roots.ack_latency.count) == (1e6, 2)
