"""A source in splits gets more readers by itself: each row is processed once, those of a split in order."""

from __future__ import annotations

from collections import defaultdict

import pytest

from esault import Bolt, EndOfStream, SplitReader, SplitSource, Topology, by_key
from esault.flow.worker.metrics import Metrics
from esault.messages.probe import HostUsage, Usage
from esault.messages.settings import Settings
from esault.testing import LocalRuntime, ManualClock
from tests.programs.units import Landed

SPLITS, ROWS = [f"s{i}" for i in range(6)], 300


class Slowly(SplitReader):
    def __init__(self, name, at, clock):
        self.name, self.at, self.clock = name, at, clock

    def read(self, limit):
        if self.at == ROWS:
            raise EndOfStream
        self.clock.advance(0.02)
        self.at += 5
        return [(self.name, n) for n in range(self.at - 5, self.at)]

    def position(self):
        return self.at


class Source(SplitSource):
    clock: ManualClock
    splits_at_once = 2

    def splits(self):
        return SPLITS

    def open_split(self, id, position):
        return Slowly(id, position or 0, Source.clock)


class Count(Bolt):
    def __init__(self):
        self.rows = []

    def process(self, key, value):
        self.rows.append(value)
        self.emit(key, (len(self.rows), value))


@pytest.fixture
def run(monkeypatch):
    """Runs the source on a clock of its own, with readers that are at work for a share of their time."""

    def run(policies, cores=4, busy=1.0, kill=None, parallelism=None, most=None, **settings):
        Source.clock = clock = ManualClock()
        begun = clock()
        usage = lambda: Usage(busy * (clock() - begun), 0.0)
        monkeypatch.setattr(Metrics, "usage", property(lambda self: usage, lambda self, value: None), raising=False)
        t = Topology("t")
        rows = t.spout("rows", Source(), max_parallelism=most)
        rows.bolt("count", Count, by_key(), max_parallelism=1).sink("out", Landed())
        settings = Settings(root_rows=16, **settings)
        more = {"parallelism": parallelism} if parallelism else {}
        local = LocalRuntime(t, clock=clock, policies=policies, settings=settings, **more)
        local.driver.hosts = (HostUsage("localhost", cores=cores, cpu=0.9 / cores),)
        if kill is not None:
            local.run_until(lambda: local.driver.units["rows"].changing)
            steps, newest = kill
            for _ in range(steps):
                local.step()
            local.kill((max if newest else min)(local.driver.units["rows"].subs))
        local.run_until_drained()
        return local

    return run


def right(local):
    found = defaultdict(list)
    for row in local.landed("out"):
        found[row.key].append(row.value)
    assert found == {name: [(n + 1, n) for n in range(ROWS)] for name in SPLITS}


def readers(local):
    return [(c.unit, c.before, c.after, c.policy) for c in local.report().changes if c.unit == "rows" and not c.dropped]


def test_a_full_reader_gets_another_where_a_core_is_free(run):
    local = run({"": "auto"})
    right(local)
    assert readers(local)[0] == ("rows", 1, 2, "auto")
    assert "cores are free" in local.report().changes[0].reason


@pytest.mark.parametrize(
    "given",
    [
        {"policies": {"": "none"}},
        {"policies": {"": "auto", "rows": "none"}},
        {"policies": {"": "auto"}, "cores": 1},
        {"policies": {"": "auto"}, "busy": 0.5},
        {"policies": {"": "auto"}, "most": 1},
        {"policies": {"": "auto"}, "parallelism": {"rows": 1}},
    ],
)
def test_there_is_one_where_that_was_said_or_brings_nothing(run, given):
    local = run(**given)
    right(local)
    assert readers(local) == []


@pytest.mark.parametrize(
    "kill", [(0, False), (3, True), (3, False), (10, True), (10, False), (30, True), (30, False), (100, True)]
)
def test_one_that_dies_while_another_is_started_loses_nothing_of_a_checkpoint(run, kill):
    local = run({"": "auto"}, kill=kill, delivery="eo", checkpoint_every=0.3)
    right(local)
    assert local.report().deaths == 1
