"""Transient errors of sinks and sources on LocalRuntime: restarts, each tuple once, and the end when none is left."""

from __future__ import annotations

import errno
import os
from collections import Counter

import pytest
from small_bolts import Total as Count

from esault import Bolt, Topology, TopologyFailed, by_key
from esault.errors import SourceError
from esault.messages.settings import Settings
from esault.sinks import JsonLines
from esault.sources import Items, Paced
from esault.testing import LocalRuntime
from esault.testing.memory_connectors import CollectingSink

N = 400


class Trouble:
    """Raises so often, when it is its turn."""

    def __init__(self, error, times, after=0):
        self.error, self.left, self.after = error, times, after

    def __call__(self):
        self.after -= 1
        if self.after < 0 and self.left:
            self.left -= 1
            raise self.error


def topology(source_trouble=None, bolt=Count):
    class Source(Items):
        def read(self, limit):
            if source_trouble is not None:
                source_trouble()
            return super().read(limit)

    t = Topology("restarted")
    rows = [(f"k{i % 5}", 1) for i in range(N)]
    t.spout("in", Paced(Source(rows), rate=200)).bolt("count", bolt, grouping=by_key()).sink(
        "out", JsonLines("no.jsonl")
    )
    return t


def local(made, strategy="", delivery="eo"):
    settings = Settings(delivery=delivery, checkpoint_every=0.5, restart_strategy=strategy)
    return LocalRuntime(made, settings=settings, policies={"": "none"})


@pytest.fixture
def sink(monkeypatch):
    """Has the sink raise in `prepare`."""

    def troubled(trouble):
        prepare = CollectingSink.prepare

        def prepared(self, epoch):
            trouble()
            return prepare(self, epoch)

        monkeypatch.setattr(CollectingSink, "prepare", prepared)

    return troubled


def full():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out.jsonl")


def landed(run):
    return [(row.key, row.value) for row in run.landed("out")]


def check(run):
    rows = landed(run)
    assert len(rows) == len(set(rows)) == N
    assert Counter(key for key, _ in rows) == Counter(f"k{i % 5}" for i in range(N))


@pytest.mark.parametrize("error", [full(), ConnectionRefusedError("away"), TimeoutError("slow")], ids=repr)
def test_a_sink_whose_error_passes_costs_restarts_and_each_tuple_counts_once(sink, error):
    sink(Trouble(error, 3))
    run = local(topology())
    run.run_until_drained()
    report = run.report()
    assert report.restarts == 3
    assert len(report.restores) == 3
    check(run)
    assert any("restart 3 of 8 in 2 s, all go back to" in line for line in run.driver.notices)


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), SourceError("away")], ids=repr)
def test_so_does_a_source(error):
    if isinstance(error, SourceError):
        error.__cause__ = TimeoutError("slow")
    run = local(topology(Trouble(error, 2, after=3)))
    run.run_until_drained()
    assert run.report().restarts == 2
    check(run)


def test_the_run_ends_with_the_error_when_no_restart_is_left(sink):
    sink(Trouble(full(), 100))
    run = local(topology(), "fixed-delay:attempts=2,delay=1")
    with pytest.raises(TopologyFailed, match="No space left on device") as failed:
        run.run_until_drained()
    assert failed.value.report is not None
    assert run.report().restarts == 2
    assert any("no restart is left (fixed-delay: 2)" in line for line in run.driver.notices)


def test_without_checkpoints_there_is_none_unless_it_is_said_and_then_the_sub_unit_is_replaced(sink):
    sink(Trouble(full(), 1))
    run = local(topology(), delivery="alo")
    with pytest.raises(TopologyFailed, match="No space left on device"):
        run.run_until_drained()
    sink(Trouble(full(), 2))
    run = local(topology(), "fixed-delay", delivery="alo")
    run.run_until_drained()
    report = run.report()
    assert report.restarts == 2
    assert report.deaths == 0
    assert len(landed(run)) >= N  # at least once


@pytest.mark.parametrize("kind", ["bolt", "sink", "source"])
def test_errors_of_bolts_and_errors_that_do_not_pass_end_the_run_as_before(sink, kind):
    class Away(Bolt):
        def process(self, key, value):
            raise ConnectionRefusedError("away")

    if kind == "sink":
        sink(Trouble(ValueError("wrong"), 1))
    trouble = Trouble(KeyError("no such thing"), 1) if kind == "source" else None
    run = local(topology(trouble, Away if kind == "bolt" else Count))
    with pytest.raises(TopologyFailed):
        run.run_until_drained()
    assert run.report().restarts == 0
