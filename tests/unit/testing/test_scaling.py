"""Policies over whole runs in virtual time: what they see, what is done, and that nothing is lost."""

from __future__ import annotations

import random
from collections import Counter

import depth
import pytest
from small_bolts import Total as Count
from steady import Steady

from esault import Bolt, EndOfStream, Sink, Spout, Topology, by_key, shuffle
from esault.control.report.summary import snapshot
from esault.elasticity.action import Advise, Merge, NoChange, Rescale, Split
from esault.messages.settings import Settings
from esault.testing import LocalRuntime
from esault.testing.manual_clock import ManualClock

pytestmark = pytest.mark.slow  # not in `make quick`

KEYS = 200


class Unhurried(Steady):
    """Knows that it is never behind."""

    def lag(self):
        return 0


class Landed(Sink):
    def write(self, rows):
        pass


def topology(seconds, rate=100, **options):
    t = Topology("scaled")
    count = t.spout("load", Unhurried(seconds, rate=rate, keys=KEYS)).bolt("count", Count, grouping=by_key(), **options)
    count.sink("totals", Landed())
    return t


class Written:
    """A policy that a test writes."""

    probe_period = 0.1
    window = 0.5

    def __init__(self, decide):
        self.decide = decide


def run(name_policy, decide, seconds=4.0, **options):
    name_policy("written", lambda: Written(decide))
    local = LocalRuntime(topology(seconds, **options), policies={"count": "written"})
    local.run_until_drained()
    seen = Counter()
    for key, total in local.emitted("count"):
        assert total == seen[key] + 1, key  # neither lost nor doubled nor from fresh state
        seen[key] = total
    assert sum(seen.values()) == local.report().units["load"].tuples_out > 0
    return local


def test_a_view_holds_what_was_measured(name_policy):
    views = []
    run(name_policy, lambda view: views.append(view) or (), rate=500, parallelism=2)
    view = views[-3]
    assert {"load", "count"} == set(view.units)
    assert view.unit.spouts == ("load",)
    assert view.free_slots == 16 - 3
    both = view.unit.samples
    assert 400 < sum(s.arrivals for s in both) < 600
    assert 400 < sum(s.processed for s in both) < 600
    assert 400 < sum(s.emitted for s in both) < 600
    assert all(s.probe_delay is not None and s.probe_delay < 0.3 for s in both)
    assert all(s.key_load.size > 50 for s in both)
    for sample in both:
        assert all(any(low <= p <= high for low, high in sample.ranges) for p in sample.key_load.points)
    assert view.units["load"].samples[0].lag == 0
    # probes are told once, in order, and come back
    told = [p for v in views for s in v.unit.samples if s.sub_unit == both[0].sub_unit for p in s.probes]
    back = [p.number for p in told if p.back is not None]
    assert back == sorted(set(back))
    assert len(back) > 20
    assert any(p.rate is not None and 150 < p.rate < 350 for p in told)


def test_what_a_policy_wants_is_done_and_logged(name_policy):
    def decide(view):
        if view.unit.width == 1 and view.since_start > 1:
            return [Rescale("because of the test", 4)]
        if view.unit.width == 4 and view.since_start > 2:
            first, second = view.unit.samples[:2]
            return [Merge("cold", first.sub_unit, second.sub_unit), Split("hot", view.unit.samples[3].sub_unit)]
        return ()

    local = run(name_policy, decide)
    report = local.report()
    assert [(c.kind, c.before, c.after) for c in report.changes[:2]] == [("rescale", 1, 4), ("rescale", 4, 4)]
    assert report.changes[0].policy == "written"
    assert report.changes[0].reason == "because of the test"
    assert (report.decisions[0].what, report.decisions[0].outcome) == ("rescale: 1 -> 4", "done")
    assert "because of the test" in str(report)
    assert report.as_dict()["decisions"][0]["reason"] == "because of the test"


def test_more_than_there_are_slots_keeps_the_topology_alive_and_says_so(name_policy):
    told = []

    def decide(view):
        told.extend(view.refusals)
        return [Rescale("greed", 99)] if view.unit.width < 15 else ()

    local = run(name_policy, decide)
    assert local.report().units["count"].parallelism[-1][1] == 15  # 16 slots, one is the spout's
    assert any("more slots" in refusal for refusal in told)
    refused = [d for d in local.report().decisions if d.outcome.startswith("refused")]
    assert "15 are free" not in refused[0].outcome
    assert "14 are free" in refused[0].outcome


def test_a_policy_that_raises_or_talks_nonsense_is_told_of_and_skipped(name_policy):
    def decide(view):
        if view.since_start < 2:
            raise ZeroDivisionError("oh no")
        return ["more", Split("nobody", 4711)]

    local = run(name_policy, decide)
    decisions = local.report().decisions
    assert decisions[0].outcome == "failed"
    assert "ZeroDivisionError: oh no" in decisions[0].reason
    assert decisions[0].times > 5
    assert any("'more' is no action" in d.outcome for d in decisions)
    assert any("no sub-unit 4711" in d.outcome for d in decisions)
    assert local.report().changes == []
    assert any("oh no" in notice for notice in local.driver.notices)


def test_nonsense_in_an_action_is_refused_and_said(name_policy):
    local = run(name_policy, lambda view: [Rescale(4, "the wrong way round")], seconds=1.0)
    (decision,) = local.report().decisions
    assert decision.outcome.startswith("refused: Rescale(reason=4")
    assert "its reason is no text" in decision.outcome


def test_advice_reaches_the_user_and_the_log(name_policy):
    said = iter([Advise("buy a bigger machine")])
    local = run(name_policy, lambda view: [a for a in [next(said, None)] if a], seconds=1.0)
    assert "buy a bigger machine" in local.driver.notices
    assert [d.outcome for d in local.report().decisions] == ["said"]


@pytest.mark.parametrize("name", depth.chosen(["probe", "esault"], ("esault",)))
def test_at_steady_load_real_policies_leave_the_unit_alone(name):
    local = LocalRuntime(topology(8.0, rate=200, parallelism=2, min_parallelism=2), policies={"count": name})
    local.run_until_drained()
    assert local.report().changes == []


def test_the_papers_first_table_is_halved():
    local = LocalRuntime(topology(1.0, parallelism=6), policies={"count": "esault"})
    local.run_for(0.5)
    widths = sorted(high - low + 1 for low, high, _ in local.driver.units["count"].table.intervals())
    assert widths[-1] == 2 * widths[0]
    local.run_until_drained()


def test_slots_are_taken_and_given_back(name_policy):
    wishes = iter([5, 2])

    def decide(view):
        if view.unit.changed_at is None or view.now > view.unit.changed_at + 0.5:
            n = next(wishes, None)
            return [Rescale("up and down", n)] if n else ()
        return ()

    free = []

    def watched(view):
        free.append(view.free_slots)
        return decide(view)

    run(name_policy, watched)
    assert free[0] == 14
    assert min(free) == 10
    assert free[-1] == 13


def test_a_policy_begins_no_change_while_a_checkpoint_is_taken_and_neither_starves(name_policy):
    wanted = [1]

    def decide(view):
        wanted[0] = 5 - wanted[0]
        return [Rescale("always something else", wanted[0])]

    name_policy("written", lambda: Written(decide))
    local = LocalRuntime(
        topology(4.0), policies={"count": "written"}, settings=Settings(delivery="eo", checkpoint_every=0.2)
    )
    while local.driver.phase != "ended":
        changing = any(unit.change is not None for unit in local.driver.units.values())
        assert not (changing and local.driver.checkpoints.current is not None)
        if not local.step():
            local.wait()
    assert local.driver.failure is None
    assert len(local.driver.units["count"].changes) >= 3
    assert len(local.kept) >= 10
    seen = Counter()
    for key, total in local.emitted("count"):
        assert total == seen[key] + 1, key
        seen[key] = total


@pytest.mark.parametrize("after", depth.chosen([2, 5], (5,)))
def test_who_is_given_ranges_knows_his_keys_anew_and_is_cut_in_equal_parts(name_policy, after):
    views = []

    def decide(view):
        views.append(view)
        unit = view.unit
        if unit.width == 4 and view.since_start > 4:
            return [Rescale("the others' ranges", 2)]
        if (
            unit.width == 2
            and unit.changed_at is not None
            and view.now > unit.changed_at + 3
            and len(unit.samples) != after
        ):
            return [Rescale("cut", after)]
        return ()

    run(name_policy, decide, seconds=16.0, rate=200, parallelism=4)
    end = views[-5].unit
    assert end.width == after
    assert sum(s.load_share for s in end.samples) == pytest.approx(1.0)
    # Two that had kept what they knew of their old ranges were cut where a third of them was left: 1.3 times the mean.
    assert end.heaviest_share * after < 1.2


class Bursts(Spout):
    """Sixty-four at once, at times that nobody foretells; one of them says when."""

    def __init__(self):
        self._order, self._next, self._start = random.Random(5), 0.0, None

    def read(self, limit):
        now = self.context.now()
        if self._start is None:
            self._start = now
        if now - self._start > 30:
            raise EndOfStream
        if now - self._start < self._next:
            return []
        self._next += self._order.expovariate(8)
        return [("at", now)] + [("more", 0.0)] * 63


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Windows:
    """Keeps the windows of the spout; wants nothing."""

    period = 0.25

    def __init__(self, seen):
        self._seen = seen

    def decide(self, view):
        self._seen.append(view.units["bursts"].window)
        return ()


def test_a_burst_counts_in_the_window_in_which_it_was_read(name_policy):
    seen = []
    name_policy("windows", lambda: Windows(seen))
    t = Topology("bursts")
    t.spout("bursts", Bursts()).bolt("same", Same, grouping=by_key()).sink("rows", Landed())
    local = LocalRuntime(t, policies={"same": "windows"}, clock=ManualClock(1_700_000_000.1))
    local.run_until_drained()
    read = [at for key, at in local.emitted("same") if key == "at"]
    assert len(seen) > 100
    assert all(window.end / 0.25 == round(window.end / 0.25) for window in seen)
    came = [64 * sum(window.start < at <= window.end for at in read) for window in seen]
    whole = sum(abs(window.arrivals - tuples) < 1 for window, tuples in zip(seen, came))
    assert whole > 0.9 * len(seen)


def test_where_ranges_do_not_decide_nobody_has_a_share(name_policy):
    views = []
    name_policy("written", lambda: Written(lambda view: views.append(view) or ()))
    t = Topology("shuffled")
    t.spout("load", Unhurried(3.0, rate=500, keys=KEYS)).bolt("same", Same, grouping=shuffle(), parallelism=3)
    LocalRuntime(t, policies={"same": "written"}).run_until_drained()
    assert sum(s.processed for s in views[-5].unit.samples) > 400
    assert {s.load_share for view in views for s in view.unit.samples} == {None}


def test_why_nothing_is_done_is_written_once_for_each_change_of_the_reason(name_policy):
    def decide(view):
        cause = "a" if view.since_start < 4 or view.since_start > 8 else "b"
        swings = view.now % 1 < 0.2  # what does not stand is not written
        return [NoChange(f"{cause} at {view.now:.1f}", "swing" if swings and view.since_start > 10.5 else cause)]

    local = run(name_policy, decide, seconds=12.0, rate=50)
    told = [(d.what, d.reason[0], d.outcome, d.times) for d in local.report().decisions]
    assert told == [("no change", cause, "said", 1) for cause in "aba"]
    assert local.driver.scaling.standing["count"].startswith("a at")
    assert any(line.startswith("now, count: no change (a at") for line in snapshot(local.driver, local.now()).scaling)
