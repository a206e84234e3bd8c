"""Objects that expire are looked for some at a time, between tuples, checkpoints, changes and deaths: none is counted twice or lost."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from counting import Landed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slowly import Slowly
from small_bolts import CountAtTheEnd as Visits
from test_checkpoints import walk

from esault import Topology, by_key
from esault.flow.checkpoint import snapshot
from esault.flow.checkpoint.state_writer import StateWriter
from esault.flow.operators import idle
from esault.flow.operators.element_operator import ElementOperator
from esault.flow.worker import bolt_unit
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

OPTIONS = [{}, {"keys_in_memory": 20}, {"idle_after": 0.02}, {"parallelism": 3}]


def visits(rows, **options):
    t = Topology("visits")
    counts = t.spout("rows", Slowly(rows, each=15)).bolt(
        "count", Visits, grouping=by_key(), expire_after=0.06, **options
    )
    counts.sink("out", Landed())
    return t


def rows_of(seed):
    order = random.Random(seed)
    return [(f"k{order.randrange(n // 8, n // 8 + 150)}", n) for n in range(1200)]


@pytest.fixture
def in_small_steps(monkeypatch):
    """Have four names looked at in a turn, and four states written: time stands still within a turn here."""
    monkeypatch.setattr(idle, "SLICE", 4)
    monkeypatch.setattr(bolt_unit, "SWEEP_TURN", 0.0)
    monkeypatch.setattr(snapshot, "SLICE", 4)
    monkeypatch.setattr(bolt_unit, "SNAPSHOT_TURN", 0.0)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 30), options=st.sampled_from(OPTIONS), kills=st.sampled_from([0, 3]))
def test_each_tuple_is_in_one_count(in_small_steps, seed, options, kills):
    rows = rows_of(seed)
    local = LocalRuntime(visits(rows, **options), seed=seed, settings=Settings(delivery="eo", max_pending=4))
    walk(local, random.Random(seed), kills=kills, rate=0.2, kill_rate=0.01)
    counted = Counter()
    for row in local.landed("out"):
        counted[row.key] += row.value
    assert counted == Counter(key for key, _ in rows)


def test_objects_expire_while_tuples_come():
    rows = rows_of(3)
    local = LocalRuntime(visits(rows), settings=Settings(max_pending=4))
    local.run_until_drained()
    counts = local.emitted("count")
    assert len(counts) > len({key for key, _ in rows})  # some came again after they had expired
    assert sum(n for _, n in counts) == len(rows)


def test_a_checkpoint_that_is_written_is_told_of_objects_before_they_expire(in_small_steps, monkeypatch):
    told, expired = [], []
    process, expire = StateWriter.process, ElementOperator.expire

    def telling(self, names):
        told.extend(names)
        process(self, names)

    def expiring(self, names):
        assert told[-len(names) :] == names
        expired.extend(names)
        return expire(self, names)

    monkeypatch.setattr(StateWriter, "process", telling)
    monkeypatch.setattr(ElementOperator, "expire", expiring)
    local = LocalRuntime(visits(rows_of(4)), settings=Settings(delivery="eo", max_pending=4))
    walk(local, random.Random(4), rate=0.2)
    assert expired
