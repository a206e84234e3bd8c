"""The policy hpa: wishes, the highest of five minutes, and the pace."""

from __future__ import annotations

import pytest
from run_views import run, widths

from esault import UsageError
from esault.elasticity.policies.hpa import HPA
from esault.elasticity.policy import make


def view(now, width, busy, **more):
    """One bolt whose sub-units are busy for that share of 15 s."""
    figures = {"width": width, "busy": busy * 15.0 * width, **more}
    return run(now, {"src": {}, "work": figures}, {"work": ("src",)}, seconds=15.0)


@pytest.mark.parametrize(
    ("width", "busy", "wanted"),
    [
        (4, 1.0, 5),  # 4 / 0.8
        (10, 1.0, 13),  # 12.5
        (10, 0.88, None),  # within 10 % of 80 %
        (10, 0.72, None),
        (10, 0.881, 12),  # 11.01
        (4, 0.8, None),
    ],
)
def test_wishes_upward(width, busy, wanted):
    assert widths(HPA().decide(view(15.0, width, busy))).get("work") == wanted


def test_the_reason_has_the_numbers():
    (action,) = HPA().decide(view(15.0, 4, 1.0))
    assert action.reason == "100% busy, 80% wanted: 5 rather than 4"


def test_down_waits_for_five_minutes_and_takes_the_highest_wish():
    policy = HPA()
    for i in range(1, 21):
        busy = 0.2 if i != 3 else 0.4  # wishes of 2 of 8, one of 4
        assert policy.decide(view(15.0 * i, 8, busy)) == []  # the first look notes the width of 8, at 15 s
    assert widths(policy.decide(view(315.0, 8, 0.2))) == {"work": 4}  # the 8 of 15 s is 300 s old, the 4 of 45 s is not
    assert policy.decide(view(330.0, 4, 0.4)) == []
    assert widths(policy.decide(view(345.0, 4, 0.4))) == {"work": 2}


def test_without_the_window_down_is_at_once():
    assert widths(HPA(scale_down_stabilization_window=0.0).decide(view(15.0, 8, 0.2))) == {"work": 2}


def test_up_may_wait_too():
    policy = HPA(scale_up_stabilization_window=30.0)
    assert policy.decide(view(15.0, 4, 1.0)) == []
    assert policy.decide(view(30.0, 4, 1.0)) == []
    assert widths(policy.decide(view(45.0, 4, 1.0))) == {"work": 5}


def test_pace_up_is_four_or_double():
    eager = {"target": 0.1}
    assert widths(HPA(**eager).decide(view(15.0, 2, 1.0))) == {"work": 6}  # 2 + 4
    assert widths(HPA(**eager).decide(view(15.0, 6, 1.0))) == {"work": 12}  # 6 + 100 %
    policy = HPA(**eager, policy_period=60.0)
    assert widths(policy.decide(view(15.0, 2, 1.0))) == {"work": 6}
    assert policy.decide(view(30.0, 6, 1.0)) == []  # four in a minute, and four it were
    assert widths(policy.decide(view(75.0, 6, 1.0))) == {"work": 12}


def test_pace_down():
    policy = HPA(scale_down_stabilization_window=0.0, scale_down_percent=10.0)
    assert widths(policy.decide(view(15.0, 20, 0.1))) == {"work": 18}


def test_bounds():
    assert widths(HPA().decide(view(15.0, 4, 1.0, most=4))) == {}
    down = HPA(scale_down_stabilization_window=0.0)
    assert widths(down.decide(view(15.0, 8, 0.0, least=3))) == {"work": 3}
    assert widths(HPA(scale_down_stabilization_window=0.0).decide(view(15.0, 8, 0.0))) == {"work": 1}


def test_a_unit_that_changes_is_left_alone():
    assert HPA().decide(view(15.0, 4, 1.0, changing=True)) == []


def test_of_the_processor():
    cpu = {"samples": [{"cpu": 1.0}, {"cpu": 0.6}, {"cpu": None}]}
    assert widths(HPA(metric="cpu", target=0.5).decide(view(15.0, 3, 0.0, **cpu))) == {"work": 5}  # 0.8 / 0.5 * 3
    assert HPA(metric="cpu").decide(view(15.0, 3, 1.0)) == []


def test_parameters_are_checked():
    assert make("hpa:sync_period=30").period == 30.0
    with pytest.raises(UsageError, match="policy 'hpa': target=0 must be above 0"):
        make("hpa:target=0")
    with pytest.raises(UsageError, match="metric='memory' must be one of: busy, cpu"):
        make("hpa:metric=memory")


def test_a_unit_that_is_never_idle_is_full():
    # it processes for 80 % of its time, and the engine around it takes the rest
    waits = {"processed": 100.0, "waiting_before": 50.0, "waiting": 50.0, "samples": [{"backlog": 25}, {"backlog": 25}]}
    assert HPA().decide(view(15.0, 2, 0.8)) == []
    assert widths(HPA().decide(view(15.0, 2, 0.8, **waits))) == {"work": 3}
