"""Tuples that a test sends while it runs: what each brings is there behind it, whoever dies in between."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, UsageError, by_key
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime, Sent
from esault.windows import TumblingWindow


class Count(Bolt):
    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1
        self.emit(key, self.n)


def topology():
    t = Topology("sent")
    t.spout("rows", Items([("never", 1)])).bolt("count", Count, by_key()).sink("out", Collect())
    return t


def test_what_is_sent_is_processed_behind_the_call():
    local = LocalRuntime(topology(), spouts={"rows": Sent()})
    local.send("rows", ("a", 1))
    assert local.emitted("count") == [("a", 1)]
    local.send("rows", ("a", 1), ("b", 1), seconds=0.1)
    assert sorted(local.emitted("count")[1:]) == [("a", 2), ("b", 1)]
    local.run_for(100)
    assert local.driver.phase == "running"
    local.run_until_drained()
    assert len(local.landed("out")) == 3


def test_the_clock_runs_for_as_long_as_is_said():
    local = LocalRuntime(topology(), spouts={"rows": Sent()})
    before = local.now()
    local.send("rows", ("a", 1), seconds=7)
    assert 7 <= local.now() - before < 7.3


def test_a_sub_unit_that_begins_anew_reads_what_was_sent_before_once():
    local = LocalRuntime(topology(), spouts={"rows": Sent()}, settings=Settings(delivery="eo", checkpoint_every=0.05))
    for n in range(1, 30):
        local.send("rows", ("a", 1), seconds=0.1)
        if n % 7 == 0:
            local.kill(local.sub_units("rows" if n % 2 else "count")[0])
            local.run_for(5)
    local.run_until_drained()
    assert [row.value for row in local.landed("out")] == list(range(1, 30))


def test_late_tuples_are_late_by_what_was_sent_before():
    t = Topology("hours")
    rows = t.spout("rows", Items([]), time=lambda at: at, lateness=10)
    rows.window("count", Count, TumblingWindow(100))["late"].sink("late", Collect())
    local = LocalRuntime(t, spouts={"rows": Sent()})
    for at in (5, 200, 6, 195):
        local.send("rows", ("a", at))
    local.run_until_drained()
    assert [row.value for row in local.landed("late")] == [6]


def test_a_spout_that_has_tuples_of_its_own_is_refused_with_the_remedy():
    local = LocalRuntime(topology())
    with pytest.raises(UsageError, match=r"send\('rows', ...\): .*spouts=\{'rows': Sent\(\)\}"):
        local.send("rows", ("a", 1))


@pytest.mark.parametrize("wrong", ["a", ("a", 1, 2), [("a", 1), ("b", 1)]])
def test_what_is_no_tuple_is_refused_with_the_remedy(wrong):
    local = LocalRuntime(topology(), spouts={"rows": Sent()})
    with pytest.raises(UsageError, match=r"is not \(key, value\); write send\('rows', \(key, value\)"):
        local.send("rows", ("a", 1), wrong)
    local.run_until_drained()
    assert local.landed("out") == []


def test_nothing_is_sent_to_a_run_that_has_ended():
    local = LocalRuntime(topology(), spouts={"rows": Sent()})
    local.run_until_drained()
    with pytest.raises(UsageError, match="the run has ended"):
        local.send("rows", ("a", 1))
