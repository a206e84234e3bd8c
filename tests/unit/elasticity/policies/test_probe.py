"""The default policy: one step to what is needed, nothing at steady load, and advice where it cannot help."""

from __future__ import annotations

import pytest
from elasticity_views import HostUsage, KeyLoad, in_time, sample, view

from esault.elasticity.action import Advise, Rescale
from esault.elasticity.policies.probe import Probe
from esault.elasticity.view import UnitView
from esault.topology.plan import UnitPlan

SERVICE = 0.01


class Unit:
    """A unit of `n` sub-units that is told a rate and does what it is told."""

    def __init__(self, policy=None, n=1, **more):
        self.policy, self.n, self.more = policy or Probe(), n, more
        self.now, self.number, self.changed_at = 100.0, 0, None
        self.actions = []
        self.backlog = 0.0

    def run(self, rate, seconds, carry_out=True, **figures):
        until = self.now + seconds
        while self.now < until - 1e-9:
            self.now += 0.1
            self.number += 1
            capacity = self.n / SERVICE
            done = min(rate + self.backlog / 0.1, capacity)
            self.backlog = max(0.0, self.backlog + (rate - done) * 0.1)
            delay = 0.002 + self.backlog / self.n * SERVICE
            samples = []
            for i in range(self.n):
                probe = in_time(self.number, self.now - 0.1 - delay, done / self.n, delay)
                given = {
                    "arrivals": rate / self.n,
                    "processed": done / self.n,
                    "busy": done / self.n * SERVICE,
                    "backlog": int(self.backlog / self.n),
                    "probe_delay": delay,
                    **figures,
                }
                samples.append(sample(i + 1, [probe], **given))
            seen = view(self.now, samples, changed_at=self.changed_at, **self.more)
            actions = list(self.policy.decide(seen))
            self.actions += [(self.now, a) for a in actions]
            for action in actions:
                if isinstance(action, Rescale) and carry_out:
                    self.n, self.changed_at = action.n, self.now

    @property
    def rescales(self):
        return [a for _, a in self.actions if isinstance(a, Rescale)]


def test_at_steady_load_nothing_changes():
    unit = Unit(n=4)
    unit.run(250, 120)  # each is busy for 62 % of its time
    assert unit.actions == []


def test_a_jump_by_eight_is_one_change():
    unit = Unit(n=1)
    unit.run(50, 20)
    assert unit.actions == []
    begun = unit.now
    unit.run(400, 10)
    (at, action), *others = unit.actions
    assert others == []
    assert 6 <= action.n <= 9  # 4 busy ones at 65 %, and what had piled up
    assert at - begun < 2.0
    assert "tuples/s" in action.reason


def test_after_the_peak_it_shrinks_in_one_change_and_stays():
    unit = Unit(n=8)
    unit.run(480, 20)
    assert unit.actions == []
    unit.run(60, 60)
    assert [a.n for a in unit.rescales] == [1]
    unit.run(60, 60)
    assert len(unit.actions) == 1


def test_a_burst_of_a_second_does_not_make_it_shrink_and_grow():
    unit = Unit(n=4)
    for _ in range(20):
        unit.run(100, 1)
        unit.run(300, 1)
    assert len(unit.rescales) <= 1


def test_between_growing_and_shrinking_nothing_happens():
    unit = Unit(n=3)
    for rate in (190, 200, 225, 240, 200):
        unit.run(rate, 20)
    assert unit.rescales == []


def test_a_source_that_lags_tells_how_much_more_would_come():
    """The window holds the source back: what comes is what one sub-unit can do, what is due is eight times that."""
    source = UnitPlan("lines", "spout")
    unit = Unit(n=1, spouts=("lines",))
    unit.more["units"] = {"lines": UnitView("lines", source, (sample(9, emitted=100.0, lag=0),))}
    unit.run(50, 10)
    unit.more["units"] = {"lines": UnitView("lines", source, (sample(9, emitted=100.0, lag=350, lag_growth=300.0),))}
    unit.run(100, 3, busy=1.0, processed=100.0)
    assert unit.rescales[0].n >= 6


def test_a_source_that_cannot_know_lets_a_full_unit_double():
    source = UnitPlan("lines", "spout")
    held = UnitView("lines", source, (sample(9, emitted=100.0, backpressured=0.9),))
    unit = Unit(n=2, spouts=("lines",), units={"lines": held})
    unit.run(200, 5, busy=1.0, processed=100.0, carry_out=False)
    assert unit.rescales[0].n == 4


def test_without_a_free_core_work_for_the_processor_does_not_grow():
    busy = [HostUsage("here", cores=2, cpu=0.97)]
    unit = Unit(n=1, hosts=busy)
    unit.run(200, 10, cpu=0.98, carry_out=False)
    assert unit.rescales == []
    # sleeping for others is no work for the processor
    unit = Unit(n=1, hosts=busy)
    unit.run(200, 10, cpu=0.05, carry_out=False)
    assert unit.rescales


def test_a_free_core_is_used():
    unit = Unit(n=1, hosts=[HostUsage("here", cores=8, cpu=0.25)])
    unit.run(200, 10, cpu=0.98, carry_out=False)
    assert 2 <= unit.rescales[0].n <= 6


def test_a_key_too_heavy_for_one_is_reported_once_with_what_to_do():
    load = KeyLoad((5,) * 128, (("'the'", 5, 0.9),), 2048)
    unit = Unit(n=2)
    unit.run(190, 20, key_load=load, carry_out=False)
    advice = [a for _, a in unit.actions if isinstance(a, Advise)]
    assert len(advice) <= 2  # one for each of the two words
    assert "'the'" in advice[0].reason
    assert "partial_key()" in advice[0].reason


def test_an_uneven_share_is_shared_anew_without_more_sub_units():
    policy = Probe()
    now, actions = 100.0, []
    for number in range(1, 80):
        now += 0.1
        heavy = sample(1, [in_time(number, now - 0.1, 95)], arrivals=95.0, load_share=0.86, processed=95.0, busy=0.95)
        light = sample(2, [in_time(number, now - 0.1, 15)], arrivals=15.0, load_share=0.14, processed=15.0, busy=0.15)
        actions += policy.decide(view(now, [heavy, light]))
    assert actions
    assert isinstance(actions[0], Rescale)
    assert actions[0].n == 2
    assert "86%" in actions[0].reason


@pytest.mark.parametrize("changing", [True, False])
def test_nothing_is_judged_during_a_change_or_right_after(changing):
    policy = Probe()
    for number in range(1, 50):
        now = 100 + number * 0.1
        seen = view(now, [sample(1, arrivals=900.0, processed=100.0, busy=1.0)], changing=changing, changed_at=now)
        assert not policy.decide(seen)
