"""Policies that judge a topology as a whole, over runs of the real engine in virtual time."""

from __future__ import annotations

from collections import Counter

import pytest
from small_bolts import Total as Count
from steady import Steady

from esault import Bolt, Topology, by_key, shuffle
from esault.elasticity.action import Rescale, Throttle
from esault.elasticity.judge import Judge
from esault.elasticity.scaling import Scaling
from esault.errors import PolicyTimeout, UsageError
from esault.testing import LocalRuntime

pytestmark = pytest.mark.slow  # not in `make quick`

KEYS = 100


class Doubling(Steady):
    """Twice as many tuples a second from the middle on."""

    def due_by(self, passed):
        return int(self.rate * (passed + max(0.0, passed - self.seconds / 2)))

    def lag(self):
        return 0 if self.start is None else max(0, self.due_by(self.context.now() - self.start) - self.count)


class Twice(Bolt):
    def process(self, key, value):
        self.emit(key, value)
        self.emit(key, value)


def topology(seconds=4.0):
    t = Topology("together")
    t.spout("load", Doubling(seconds, rate=400, keys=KEYS)).bolt("twice", Twice, grouping=shuffle()).bolt(
        "count", Count, grouping=by_key()
    )
    return t


class Written:
    def __init__(self, decide, period=0.5):
        self._decide, self.period = decide, period

    def decide(self, view):
        return self._decide(view)


def run(name_policy, decide, seconds=4.0, policies=None, period=0.5):
    name_policy("written", lambda: Written(decide, period))
    local = LocalRuntime(topology(seconds), policies=policies or {"": "written"})
    local.run_until_drained()
    seen = Counter()
    for key, total in local.emitted("count"):
        assert total == seen[key] + 1, key  # neither lost nor doubled nor from fresh state
        seen[key] = total
    assert sum(seen.values()) == 2 * local.report().units["load"].tuples_out > 0
    return local


def test_windows_of_all_units_end_together_and_agree(name_policy):
    views = []
    run(name_policy, lambda view: views.append(view) or [])
    full = [v.units for v in views if v.units["count"].window is not None]
    assert len(full) >= 6
    for units in full:
        load, twice, count = (units[n].window for n in ("load", "twice", "count"))
        assert load.start == twice.start == count.start
        assert load.end == count.end == pytest.approx(load.start + 0.5)
        assert load.lag is not None
    steady = full[2]
    assert steady["load"].window.emitted == pytest.approx(200, rel=0.15)
    assert steady["twice"].window.processed == pytest.approx(200, rel=0.15)
    assert steady["count"].window.arrivals == pytest.approx(400, rel=0.15)
    assert steady["twice"].window.emitted == pytest.approx(2 * steady["twice"].window.processed, rel=0.05)
    assert sum(u["count"].window.processed for u in full) <= 2 * 400 * 6
    view = views[-1]
    assert view.managed == ("twice", "count")
    assert view.senders["count"] == ("twice",)


def test_what_it_wants_at_once_is_begun_at_once_and_loses_nothing(name_policy):
    asked = []

    def decide(view):
        if len(asked) < 1 and view.since_start > 1.0:
            asked.append(view.now)
            return [Rescale("more", 3, unit="twice"), Rescale("more", 4, unit="count")]
        return []

    local = run(name_policy, decide)
    changes = [c for u in local.driver.units.values() for c in u.changes]
    assert {(c.unit, c.before, c.after) for c in changes} == {("twice", 1, 3), ("count", 1, 4)}
    assert changes[0].at == changes[1].at
    assert [d.unit for d in local.driver.scaling.log] == ["twice", "count"]
    assert all(d.outcome == "done" for d in local.driver.scaling.log)


def test_a_spout_can_be_throttled_and_unknown_units_are_refused(name_policy):
    def decide(view):
        return [Throttle("slower", 100.0, 0.5, unit="load"), Rescale("more", 2, unit="cuont")]

    local = run(name_policy, decide, seconds=2.0)
    outcomes = {d.what: d.outcome for d in local.driver.scaling.log}
    assert outcomes["throttle to 100/s for 0.5 s"] == "done"
    assert "no unit 'cuont' that this policy may change" in outcomes["action"]


def test_a_unit_with_a_policy_of_its_own_is_not_judged_with_the_others(name_policy):
    seen = []
    run(name_policy, lambda view: seen.append(view.managed) or [], policies={"": "written", "twice": "none"})
    assert set(seen) == {("count",)}


@pytest.mark.parametrize("wrong", [lambda view: 1 / 0, lambda view: None, lambda view: ["grow"], lambda view: [3]])
def test_one_that_fails_or_talks_nonsense_harms_nobody(name_policy, wrong):
    local = run(name_policy, wrong, seconds=2.0)
    assert local.driver.failure is None
    record = local.driver.scaling.log[0]
    assert record.outcome == "failed" or "is no action" in record.outcome
    assert record.times > 1  # told once, counted on


def test_one_that_takes_too_long_rests():
    calls = []

    def ask(call):
        calls.append(call)
        raise PolicyTimeout("it took longer than 1 s")

    told = []
    judge = Judge(("a", "b"), Written(lambda view: []), "written", told.append, ask)
    for second in range(30):
        judge.decide(None, {}, float(second))
    assert len(calls) == 3  # at 0, 10 and 20 s
    assert judge.log[0].outcome == "failed"
    assert judge.log[0].times == 3
    assert "asked again in 10 s" in told[0]


def test_a_period_that_is_none_is_refused():
    plan = topology().plan()
    with pytest.raises(UsageError, match="period is 0"):
        Scaling(plan, {"": Written(list, period=0)}, 0.1, print)


def test_auto_runs_on_the_engine():
    local = LocalRuntime(topology(3.0), policies={"": "auto"})
    local.run_until_drained()
    assert local.driver.failure is None
    assert not [d for d in local.driver.scaling.log if d.outcome == "failed"]
