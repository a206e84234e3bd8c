"""`auto` where probes are late although the figures say that there are enough."""

from __future__ import annotations

import pytest
from run_views import run

from esault.elasticity.action import NoChange, Rescale
from esault.elasticity.policies.auto import Auto
from esault.elasticity.view import ProbeSample

SERVICE, RATE, STEP = 0.004, 960.0, 0.25


class Looks:
    """A unit with work for 3.84, of which one has a tenth more than the mean; what is asked for is done."""

    def __init__(self, width=5):
        self.policy, self.width, self.changed_at, self.now, self.number = Auto(), width, None, 1000.0, 0
        self.asked = []

    def look(self, seconds, delay):
        until = self.now + seconds
        while self.now < until:
            self.now += STEP
            self.number += 1
            probe = ProbeSample(self.number, self.now - STEP - delay, self.now - STEP)
            told = ProbeSample(self.number, self.now - STEP - delay)
            shares = [1.1 / self.width] + [(1 - 1.1 / self.width) / (self.width - 1)] * (self.width - 1)
            samples = [{"load_share": share, "probes": (told, probe)} for share in shares]
            unit = {
                "width": self.width,
                "samples": samples,
                "changed_at": self.changed_at,
                "arrivals": RATE,
                "processed": RATE,
                "emitted": RATE,
                "busy": RATE * SERVICE,
                "rates": True,
            }
            source = {"arrivals": RATE, "emitted": RATE, "lag": 0.0, "lag_before": 0.0, "rates": True}
            view = run(self.now, {"in": source, "work": unit}, {"work": ["in"]}, seconds=STEP, started=900.0)
            for action in self.policy.decide(view):
                if isinstance(action, NoChange):
                    continue
                assert isinstance(action, Rescale)
                self.asked.append((self.now, self.width, action.n))
                self.width, self.changed_at = action.n, self.now


def test_one_more_is_started_and_is_not_taken_for_idle_since_long_ago():
    looks = Looks(width=6)
    looks.look(12, delay=0.01)
    assert [(before, after) for _, before, after in looks.asked] == [(6, 5)]
    while len(looks.asked) < 2 and looks.now < 1030:
        looks.look(STEP, delay=0.15)
    grown, *widths = looks.asked[-1]
    assert widths == [5, 6]
    looks.look(10, delay=0.01)
    assert all(at > grown + 4 for at, *_ in looks.asked[2:])


@pytest.mark.parametrize("delay", [0.01, 0.09])
def test_in_time_is_enough(delay):
    looks = Looks()
    looks.look(15, delay)
    assert not looks.asked
