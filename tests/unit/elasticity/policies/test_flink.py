"""The policy flink: capacities worked by hand from the operator's formulas, windows, bounds and delays."""

from __future__ import annotations

import pytest
from run_views import run, widths

from esault import UsageError
from esault.elasticity.policies.flink import Flink
from esault.elasticity.policy import make, parameters

CHAIN = {"work": ("src",)}
#: the defaults, sixty times as fast, and shrinking at once
FAST = {
    "reconcile_interval": 10.0,
    "metrics_window": 10.0,
    "stabilization_interval": 0.0,
    "scale_down_interval": 0.0,
    "catch_up_duration": 60.0,
    "restart_time": 10.0,
}


def fast(**parameters):
    return Flink(**{**FAST, **parameters})


def chain(now=10.0, due=100.0, width=2, each=50.0, lag=0.0, growth=0.0, free=100, **work):
    """src reads `due`/s, `growth`/s are left over; work has `width` sub-units that can do `each`/s."""
    done = min(due, width * each)
    share = done / (width * each)
    units = {
        "src": {
            "arrivals": 10 * due,
            "emitted": 10 * due,
            "processed": 10 * due,
            "lag_before": lag - 10 * growth,
            "lag": lag,
        },
        "work": {
            "arrivals": 10 * due,
            "processed": 10 * done,
            "busy": 10 * share * width,
            "width": width,
            "samples": [{"busy": share}] * width,
            **work,
        },
    }
    return run(now, units, CHAIN, free=free)


def test_defaults_are_those_of_the_operator():
    assert parameters("flink") == {
        "reconcile_interval": 60.0,
        "utilization_target": 0.7,
        "target_utilization_boundary": 0.3,
        "utilization_max": 0.0,
        "utilization_min": 0.0,
        "metrics_window": 900.0,
        "stabilization_interval": 300.0,
        "scale_down_interval": 3600.0,
        "scale_down_max_factor": 0.6,
        "scale_up_max_factor": 100_000.0,
        "catch_up_duration": 1800.0,
        "restart_time": 300.0,
        "backlog_processing_lag_threshold": 300.0,
        "vertex_min_parallelism": 1,
        "vertex_max_parallelism": 200,
        "metrics_busy_time_aggregator": "MAX",
        "scaling_effectiveness_detection_enabled": False,
        "scaling_effectiveness_threshold": 0.1,
    }


def test_up_with_the_reserve_for_a_restart():
    # 120/s due, 100/s can be done; needed 120 / 0.7 + 120 * 10 / 60 = 191.43; ceil(2 * 1.9143) = 4
    (action,) = fast().decide(chain(due=120.0))
    assert (action.unit, action.n) == ("work", 4)
    assert action.reason == ("it can do 100.0/s and should be able to do 191.4/s for 120.0/s due: 4 rather than 2")


def test_full_to_the_brim_is_within_bounds():
    # capacity(1.0, no) = 100 is not more than what it can do; by the formula for n it would be 4
    assert fast().decide(chain(due=100.0)) == ()
    assert widths(fast(utilization_max=0.9).decide(chain(due=100.0))) == {"work": 4}  # 100/0.7 + 100/6 = 159.5


def test_down_stops_at_forty_per_cent_left():
    # 10/s of 1000/s: needed 10 / 0.7 + 10 / 6 = 15.95, factor 0.016, but no more than 60 % go: 0.4 * 20 = 8
    assert widths(fast().decide(chain(due=10.0, width=20))) == {"work": 8}
    assert widths(fast(scale_down_max_factor=1.0).decide(chain(due=10.0, width=20))) == {"work": 1}


def test_down_only_below_the_lower_bound():
    # 8 sub-units, 400/s; lower bound 0.4: 150 / 0.4 + 150 / 6 = 400, no more. With 149/s: 397.3 < 400, and 237.7/s are needed
    assert fast().decide(chain(due=150.0, width=8)) == ()
    assert widths(fast().decide(chain(due=149.0, width=8))) == {"work": 5}


def test_lag_and_its_growth_count():
    # 120/s due in both, of which 40/s or 20/s are left over; a lag of 600 is 10/s for a minute: 10 + 20 + 171.43 = 201.43
    # are needed, of 80/s (2 * 2.52) and of 100/s (2 * 2.01)
    assert widths(fast().decide(chain(due=80.0, each=40.0, lag=600.0, growth=40.0))) == {"work": 6}
    assert widths(fast().decide(chain(due=100.0, each=50.0, lag=600.0, growth=20.0))) == {"work": 5}


def test_what_waits_in_inboxes_is_backlog_too():
    # 100/s and 600 that wait: 10 + 16.67 + 142.86 = 169.5, of 100; the bound for full units is 10 + 100
    assert widths(fast().decide(chain(due=100.0, waiting=600.0))) == {"work": 4}
    assert fast(backlog_processing_lag_threshold=5.0).decide(chain(due=50.0, width=4, waiting=600.0)) == ()


def test_no_backlog_with_a_catch_up_of_zero():
    seen = chain(due=100.0, lag=600.0, growth=20.0)
    assert widths(fast(catch_up_duration=0.0).decide(seen)) == {"work": 4}  # 171.43


def test_a_backlog_that_is_worked_off_is_no_reason_to_change():
    # lag of 100 s at 20/s due and 200/s possible: under-used, but the backlog is to go first
    behind = chain(due=20.0, width=4, lag=2000.0)
    assert fast(backlog_processing_lag_threshold=60.0).decide(behind) == ()
    assert widths(fast(backlog_processing_lag_threshold=101.0, catch_up_duration=600.0).decide(behind)) == {"work": 2}


def test_nothing_to_do_shrinks_by_the_factor():
    assert widths(fast().decide(chain(due=0.0, width=10))) == {"work": 4}


def test_rates_walk_the_edges():
    # src 100/s -> twice (2 out of 1) -> sink, each unit at its limit of 50/s and 100/s with one sub-unit
    units = {
        "src": {"arrivals": 1000, "emitted": 1000, "lag_before": 0, "lag": 500},
        "twice": {"arrivals": 1000, "processed": 500, "emitted": 1000, "busy": 10.0, "samples": [{"busy": 1.0}]},
        "sink": {"arrivals": 1000, "processed": 1000, "busy": 10.0, "samples": [{"busy": 1.0}]},
    }
    # src: 150/s due, one out of one. twice: 150/0.7 + 25 = 239.3 of 50: 5. sink: 300 due, 478.6 of 100: 5
    actions = fast(catch_up_duration=60.0).decide(run(10.0, units, {"twice": ("src",), "sink": ("twice",)}))
    lag = 500 / 60.0
    assert widths(actions) == {"twice": 5, "sink": 5}
    assert f"{150 / 0.7 + 25 + lag:,.1f}/s" in actions[0].reason
    assert f"{300 / 0.7 + 50 + 2 * lag:,.1f}/s" in actions[1].reason


def test_a_diamond_subtracts_what_others_send():
    # join gets 1100: right emits 800 and only to it, so left's edge carries 300, half of what left takes
    units = {
        "src": {"arrivals": 600, "emitted": 600},
        "left": {"arrivals": 600, "processed": 600, "emitted": 300, "busy": 5.0},
        "right": {"arrivals": 600, "processed": 600, "emitted": 800, "busy": 5.0},
        "join": {"arrivals": 1100, "processed": 100, "busy": 10.0},
    }
    senders = {"left": ("src",), "right": ("src",), "join": ("left", "right")}
    policy = fast(metrics_busy_time_aggregator="AVG", restart_time=0.0)
    assert widths(policy.decide(run(10.0, units, senders)))["join"] == 16  # 110 / 0.7 = 157.1 of 10


def test_the_busiest_sub_unit_stands_for_the_unit():
    # 100/s, one of two sub-units full: MAX says the unit can do 100/s, AVG 133/s, MIN 200/s
    seen = {"processed": 1000.0, "busy": 15.0, "samples": [{"busy": 1.0}, {"busy": 0.5}]}
    for aggregator, said in (("MAX", "100.0"), ("AVG", "133.3"), ("MIN", "200.0")):
        policy = fast(metrics_busy_time_aggregator=aggregator)
        (action,) = policy.decide(chain(due=250.0, **seen))
        assert action.reason.startswith(f"it can do {said}/s"), aggregator


def test_nothing_before_the_metrics_window_is_full():
    policy = fast(stabilization_interval=20.0, metrics_window=30.0)
    for now in (10.0, 20.0, 30.0, 40.0):
        assert policy.decide(chain(now, due=120.0)) == (), now
    assert widths(policy.decide(chain(50.0, due=120.0))) == {"work": 4}  # windows from 20 s on


def test_a_change_empties_the_window():
    policy = fast(stabilization_interval=20.0, metrics_window=20.0)
    for now in (10.0, 20.0, 30.0):
        assert policy.decide(chain(now, due=120.0)) == ()
    assert policy.decide(chain(40.0, due=120.0, changing=True)) == ()
    for now in (50.0, 60.0, 70.0, 80.0):
        assert policy.decide(chain(now, due=120.0, changed_at=42.0)) == (), now  # stable from 62 s: windows from 70 s
    assert policy.decide(chain(90.0, due=120.0, changed_at=42.0)) != ()


def test_old_windows_leave():
    policy = fast(metrics_window=20.0)
    policy.decide(chain(10.0, due=400.0, width=4))
    assert policy.decide(chain(20.0, due=100.0, width=4))  # the mean of 400 and 100 is over 200
    policy = fast(metrics_window=20.0)
    policy.decide(chain(10.0, due=400.0, width=4))
    policy.decide(chain(20.0, due=120.0, width=4, changing=False, most=4))
    assert policy.decide(chain(30.0, due=120.0, width=4)) == ()


def test_shrinking_waits_and_takes_the_widest_wish():
    policy = fast(scale_down_interval=30.0)
    wishes = []
    for now, due in ((10.0, 20.0), (20.0, 30.0), (30.0, 20.0), (40.0, 20.0)):
        wishes.append(widths(policy.decide(chain(now, due=due, width=10, each=20.0))).get("work"))
    # wishes of 2 and 3 (31.9/s and 47.9/s of 20/s each), at least 4 by the factor
    assert wishes == [None, None, None, 4]
    policy = fast(scale_down_interval=30.0, scale_down_max_factor=1.0)
    wishes = []
    for now, due in ((10.0, 20.0), (20.0, 30.0), (30.0, 20.0), (40.0, 20.0)):
        wishes.append(widths(policy.decide(chain(now, due=due, width=10, each=20.0))).get("work"))
    assert wishes == [None, None, None, 3]


def test_a_wish_to_stay_begins_the_wait_anew():
    policy = fast(scale_down_interval=20.0)
    assert policy.decide(chain(10.0, due=20.0, width=10, each=20.0)) == ()
    assert policy.decide(chain(20.0, due=125.0, width=10, each=20.0)) == ()  # 199.4/s needed of 200/s
    assert policy.decide(chain(30.0, due=20.0, width=10, each=20.0)) == ()
    assert policy.decide(chain(40.0, due=20.0, width=10, each=20.0)) == ()
    assert widths(policy.decide(chain(50.0, due=20.0, width=10, each=20.0))) == {"work": 4}


def test_bounds():
    assert widths(fast(vertex_max_parallelism=3).decide(chain(due=120.0))) == {"work": 3}
    assert widths(fast().decide(chain(due=120.0, most=3))) == {"work": 3}
    assert widths(fast().decide(chain(due=120.0, free=1))) == {"work": 3}
    assert widths(fast(vertex_min_parallelism=9).decide(chain(due=10.0, width=20))) == {"work": 9}
    assert widths(fast(scale_up_max_factor=0.5).decide(chain(due=120.0))) == {"work": 3}
    assert fast().decide(chain(due=10.0, width=2, least=2)) == ()


def test_growth_in_vain_is_not_repeated():
    policy = fast(scaling_effectiveness_detection_enabled=True)
    assert widths(policy.decide(chain(10.0, due=120.0))) == {"work": 4}  # 100/s, expected 200/s
    assert policy.decide(chain(20.0, due=120.0, width=4, each=27.0)) == ()  # 108/s: 8 % of the gain
    assert widths(policy.decide(chain(30.0, due=120.0, width=4, each=28.0))) == {"work": 7}  # 12 %
    assert widths(fast().decide(chain(10.0, due=120.0, width=4, each=27.0))) == {"work": 8}


def test_parameters_are_checked():
    assert make("flink:reconcile_interval=5").period == 5.0
    for spec, says in (
        ("flink:utilization_target=0", "utilization_target=0 must be above 0"),
        ("flink:utilization_target=70", "utilization_target=70 is a share, at most 1"),
        ("flink:metrics_window=0", "metrics_window=0 must be above 0"),
        ("flink:metrics_busy_time_aggregator=max", "must be one of: MAX, AVG, MIN"),
    ):
        with pytest.raises(UsageError, match="policy 'flink'") as caught:
            make(spec)
        assert says in str(caught.value)
