"""Micro-batch pipelines over whole runs in virtual time: units follow the slices of a window, and nothing is lost or twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import depth
import pytest
from small_bolts import Named as Landed

from bench.policies.orientstream.exact import TimestampMap
from esault import Bolt, Topology, by_key
from esault.errors import UsageError
from esault.messages.settings import Settings
from esault.sources import Items, MicroBatches, Paced
from esault.testing import LocalRuntime

ROWS = 2000
#: tuples a second, half a second each
LEVELS = (100, 400, 200)
#: sub-units that are busy for a hundredth of their time keep up with 100 tuples a second in pairs
POLICY = {"": "orientstream:pipelines=yes,target=0.025"}


class Tally(Bolt):
    """Takes half a millisecond of the run's time for a tuple."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        clock: Any = self.context.now
        clock.advance(0.0005)
        self.total += 1
        self.emit(key, (self.total, value))


def rows(count=ROWS):
    return [(f"k{i % 50}", i) for i in range(count)]


def levels(seconds):
    return LEVELS[int(seconds / 0.5) % 3]


def topology(wrapped=True, spouts=1, count=ROWS, parallelism=2):
    t = Topology("levels")
    streams = []
    for i in range(spouts):
        paced = Paced(Items(rows(count)), levels)
        streams.append(t.spout(f"load{i}", MicroBatches(paced) if wrapped else paced))
    t.bolt("tally", Tally, inputs={s: by_key() for s in streams}, parallelism=parallelism).sink("totals", Landed())
    return t


def values(local):
    return [row.value[1] for row in local.landed("totals")]


def wide(local):
    """Pipelines by window, each with its width and its slices."""
    return [
        [(c.parallelism, numbers) for c, numbers in g.pipelines] for g in local.driver.pipelines.pipelines.groupings
    ]


@pytest.mark.slow
def test_units_follow_the_slices_of_each_window_and_all_is_exact():
    local = LocalRuntime(topology(), policies=POLICY)
    local.run_until_drained()
    assert sorted(values(local)) == list(range(ROWS))
    last = {}
    for row in local.landed("totals"):
        last[row.key] = max(last.get(row.key, 0), row.value[0])
    assert last == Counter(key for key, _ in rows())
    windows = wide(local)[2:-1]  # before that nothing is known of the load; the last one is short
    assert all(len({width for width, _ in pipelines}) >= 3 for pipelines in windows)
    assert sum(max(p)[0] >= 2 * min(p)[0] for p in windows) == len(windows)
    changes = [c for c in local.driver.units["tally"].changes if not c.dropped]
    assert {c.policy for c in changes} == {"orientstream"}
    assert len(changes) >= 2 * len(windows)
    assert local.driver.pipelines.pipelines.missed == 0
    # Slices did overtake others, or there was nothing to be seen here.
    assert values(local) != sorted(values(local))


@pytest.mark.slow
def test_the_time_stamp_map_gives_the_order_of_a_single_run():
    single = LocalRuntime(topology(wrapped=False, parallelism=1))
    single.run_until_drained()
    local = LocalRuntime(topology(), policies=POLICY)
    local.run_until_drained()
    assert Counter(row.key for row in local.landed("totals")) == Counter(row.key for row in single.landed("totals"))

    window, each = 1500, 5  # a tuple's time stamp: 5 ms behind the one before it
    missing = Counter(i * each // window for i in range(ROWS))
    ordered, kept = [], TimestampMap(window, 8)
    for value in values(local):
        at = value * each
        kept.put(at, value, value)
        missing[at // window] -= 1
        if not missing[at // window]:
            ordered += [value for _, _, value in kept.end(0, at // window)]
    assert ordered == values(single)


@pytest.mark.slow
@pytest.mark.parametrize("seed", depth.chosen([1, 2, 3, 4], (1, 2)))
def test_a_spout_that_dies_has_a_successor_that_misses_nothing(seed):
    local = LocalRuntime(topology(count=1200), policies=POLICY, seed=seed)
    for seconds in (2.6, 1.5):
        local.run_for(seconds)
        local.kill(local.sub_units("load0")[0])
    local.run_until_drained()
    landed = local.landed("totals")
    assert set(values(local)) == set(range(1200))
    # Rows keep their names, however they were ordered in each life.
    named = {(row.id.split(".")[0], row.value[1]) for row in landed}
    assert len(named) == 1200
    assert local.report().deaths == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", depth.chosen([1, 2, 3], (1,)))
def test_with_checkpoints_each_row_counts_once_whoever_dies(seed):
    settings = Settings(delivery="eo", checkpoint_every=0.4)
    local = LocalRuntime(topology(count=1200), policies=POLICY, seed=seed, settings=settings)
    local.run_for(2.65)
    local.kill(local.sub_units("load0")[0])
    local.run_for(1.5)
    local.kill(local.sub_units("tally")[0])
    local.run_until_drained()
    assert sorted(values(local)) == list(range(1200))
    assert Counter(row.key for row in local.landed("totals")) == Counter(key for key, _ in rows(1200))


@pytest.mark.slow
def test_a_unit_that_loses_a_process_holds_nothing_up():
    local = LocalRuntime(topology(count=1200), policies=POLICY, seed=5)
    local.run_for(2.6)
    local.kill(local.sub_units("tally")[0])
    local.run_until_drained()
    assert set(values(local)) == set(range(1200))


@pytest.mark.slow
def test_several_spouts_go_through_one_sequence_of_changes():
    local = LocalRuntime(topology(spouts=2, count=1000), policies=POLICY)
    local.run_until_drained()
    assert sorted(values(local)) == sorted(2 * list(range(1000)))
    one = LocalRuntime(topology(count=1000), policies=POLICY)
    one.run_until_drained()
    assert len(wide(local)) <= len(wide(one)) + 1
    assert max(max(p)[0] for p in wide(local)) > max(max(p)[0] for p in wide(one)[2:])


@pytest.mark.slow
def test_a_drain_lets_go_what_was_collected():
    local = LocalRuntime(topology(), policies=POLICY)
    local.run_for(3.4)
    read = local.report().units["load0"].tuples_out
    local.drain()
    local.run_until_drained(20.0)
    landed = sorted(values(local))
    assert landed == list(range(len(landed)))
    assert read < len(landed) < ROWS


@pytest.mark.slow
@pytest.mark.parametrize("policies", [None, {"": "none"}, {"": "orientstream"}])
def test_without_pipelines_a_window_goes_on_as_it_came(policies):
    local = LocalRuntime(topology(count=600, parallelism=1), policies=policies)
    local.run_until_drained(60.0)
    assert sorted(values(local)) == list(range(600))


@pytest.mark.slow
def test_a_window_is_not_held_for_a_controller_that_cannot_change_anything():
    local = LocalRuntime(topology(count=600), policies={"": "orientstream:pipelines=yes,target=0.025", "tally": "none"})
    local.run_until_drained(60.0)
    assert sorted(values(local)) == list(range(600))


def test_pipelines_need_a_spout_that_collects_windows():
    with pytest.raises(UsageError, match="no spout collects windows: wrap one, as in MicroBatches\\(spout\\)"):
        LocalRuntime(topology(wrapped=False), policies=POLICY)
