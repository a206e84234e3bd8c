"""The policy ds2: equations (7) and (8) worked by hand, and when it acts."""

from __future__ import annotations

import pytest
from run_views import run, widths

from esault import UsageError
from esault.elasticity.policies.ds2 import DS2
from esault.elasticity.policy import make

CHAIN = {"split": ("src",), "count": ("split",)}


def eager(**parameters):
    """No warm-up, so that one view tells."""
    return DS2(**{"warm_up_time": 0, **parameters})


def chain(now=10.0, read=1000.0, split=None, count=None, **source):
    """src -> split (10 out of 1) -> count. Split can do 250/s each, count 2000/s each; both are full."""
    units = {
        "src": {"arrivals": read, "emitted": read, "rates": True, **source},
        "split": {"processed": 250.0, "busy": 1.0, "emitted": 2500.0, "rates": True, **(split or {})},
        "count": {"processed": 2000.0, "busy": 1.0, "emitted": 0.0, "rates": True, **(count or {})},
    }
    return run(now, units, CHAIN)


def test_all_operators_in_one_step():
    # 1000/s at 250/s each: 4. They will emit 10 000/s, at 2000/s each: 5.
    assert widths(eager().decide(chain())) == {"split": 4, "count": 5}


def test_the_reason_has_the_numbers():
    first, second = eager().decide(chain())
    assert first.reason == "1,000.0/s are due and one sub-unit does 250.0/s: 4 rather than 1"
    assert second.reason == "10,000.0/s are due and one sub-unit does 2,000.0/s: 5 rather than 1"


def test_true_rates_count_useful_time_only():
    # half idle: 125/s in half a second of work a second is a true rate of 250/s
    assert widths(eager().decide(chain(split={"processed": 125.0, "busy": 0.5, "emitted": 1250.0}))) == {
        "split": 4,
        "count": 5,
    }


def test_rates_are_per_instance():
    # two instances, busy for 2 s a second together, 500/s: 250/s each
    seen = chain(split={"width": 2, "processed": 500.0, "busy": 2.0, "emitted": 5000.0})
    assert widths(eager().decide(seen)) == {"split": 4, "count": 5}


def test_a_diamond_sums_what_comes_together():
    # src 600/s -> left (keeps 1/2, 200/s each), right (doubles, 300/s each); join gets 300 + 1200 = 1500/s, 400/s each: 3.75
    units = {
        "src": {"arrivals": 600.0, "emitted": 600.0, "rates": True},
        "left": {"processed": 100.0, "busy": 0.5, "emitted": 50.0, "rates": True},
        "right": {"processed": 150.0, "busy": 0.5, "emitted": 300.0, "rates": True},
        "join": {"processed": 350.0, "busy": 0.875, "emitted": 0.0, "rates": True},
    }
    senders = {"left": ("src",), "right": ("src",), "join": ("left", "right")}
    assert widths(eager().decide(run(10.0, units, senders))) == {"left": 3, "right": 2, "join": 4}


def test_two_sources_add_up():
    units = {
        "a": {"arrivals": 100.0, "emitted": 100.0, "rates": True},
        "b": {"arrivals": 50.0, "emitted": 150.0, "rates": True},
        "join": {"processed": 90.0, "busy": 1.0, "rates": True},
    }
    assert widths(eager().decide(run(10.0, units, {"join": ("a", "b")}))) == {"join": 3}  # 250 / 90


def test_exactly_full_is_no_more():
    assert eager().decide(chain(read=250.0, count={"width": 2})) == ()


def test_lag_that_grows_is_load():
    seen = chain(read=250.0, lag_before=0.0, lag=7500.0, backpressured=0.5)
    assert widths(eager().decide(seen)) == {"split": 4, "count": 5}


def test_a_backpressured_source_without_a_lag_counts_as_seen():
    assert eager().decide(chain(read=250.0, backpressured=0.9, count={"width": 2})) == ()


def test_nothing_due_is_one_sub_unit():
    idle = {"width": 6, "processed": 0.0, "busy": 0.0, "emitted": 0.0}
    actions = eager().decide(chain(read=0.0, split=idle, count=idle))
    assert widths(actions) == {"split": 1, "count": 1}
    assert actions[0].reason == "nothing is due: 1 rather than 6"


def test_an_unknown_rate_leaves_the_unit_alone_and_passes_on_what_was_known():
    policy = eager()
    policy.decide(chain())
    stuck = {"width": 4, "processed": 0.0, "busy": 0.0, "emitted": 0.0}
    assert widths(policy.decide(chain(split=stuck, count={"width": 1}))) == {"count": 5}


def test_warm_up_windows_are_ignored_at_the_start_and_after_a_change():
    policy = DS2(warm_up_time=2)
    assert policy.decide(chain(10.0)) == ()
    assert policy.decide(chain(20.0)) == ()
    assert widths(policy.decide(chain(30.0))) == {"split": 4, "count": 5}
    new = {"split": {"width": 4, "changed_at": 30.4}, "count": {"width": 5, "changed_at": 30.4}}
    more = {"read": 2000.0, **new}
    assert policy.decide(chain(40.0, **more)) == ()
    assert policy.decide(chain(50.0, **more)) == ()
    assert policy.decide(chain(60.0, **more)) != ()


def test_a_change_of_others_starts_the_warm_up():
    policy = DS2(warm_up_time=1)
    assert policy.decide(chain(10.0)) == ()
    assert policy.decide(chain(20.0, split={"changing": True})) == ()
    assert policy.decide(chain(30.0, split={"changed_at": 21.0})) == ()
    assert policy.decide(chain(40.0, split={"changed_at": 21.0})) != ()


def test_activation_needs_windows_in_a_row():
    policy = eager(activation_time=2)
    calm = chain(read=250.0, count={"width": 2})
    wish = chain(read=1000.0, count={"width": 5})
    assert policy.decide(wish) == ()
    assert policy.decide(calm) == ()
    assert policy.decide(wish) == ()
    assert widths(policy.decide(wish)) == {"split": 4}


def test_widths_of_several_windows_are_combined():
    for combine, expected in (("max", 8), ("median", 4)):
        policy = eager(activation_time=3, combine=combine)
        for read in (1000.0, 2000.0):
            assert policy.decide(chain(read=read, count={"width": 40})) == ()
        assert widths(policy.decide(chain(read=1000.0, count={"width": 40})))["split"] == expected


def test_one_fewer_is_not_worth_a_change_but_two_are():
    seen = {"processed": 1000.0, "busy": 4.0, "emitted": 0.0}
    none = {"width": 1, "processed": 0.0, "busy": 0.0}
    assert eager().decide(chain(split={**seen, "width": 5}, count=none)) == ()
    assert widths(eager().decide(chain(split={**seen, "width": 6}, count=none))) == {"split": 4}
    assert widths(eager(least_drop=1).decide(chain(split={**seen, "width": 5}, count=none))) == {"split": 4}


def test_scaling_factor_adds_a_share():
    assert widths(eager(scaling_factor=0.25).decide(chain())) == {"split": 5, "count": 7}  # 5.0 and 6.25


def test_target_rate_ratio_is_the_last_adjustment():
    # 250/s are due, only 200/s are read, and the model finds nobody too narrow: ratio 1.25 on 1 and on 2
    held = {"read": 200.0, "lag_before": 0.0, "lag": 500.0, "count": {"width": 2}}
    assert eager().decide(chain(**held)) == ()
    assert widths(eager(target_rate_ratio=1.2).decide(chain(**held))) == {"split": 2, "count": 3}
    assert eager(target_rate_ratio=1.3).decide(chain(**held)) == ()


def test_bounds_and_free_places():
    assert widths(eager().decide(chain(split={"most": 3}, count={"most": 1}))) == {"split": 3}
    seen = run(
        10.0, {"src": {"arrivals": 100.0, "emitted": 100.0}, "a": {"processed": 10.0, "busy": 10.0}}, {"a": ("src",)}
    )
    assert widths(eager().decide(seen)) == {"a": 10}
    short = run(
        10.0,
        {"src": {"arrivals": 100.0, "emitted": 100.0}, "a": {"processed": 10.0, "busy": 10.0}},
        {"a": ("src",)},
        free=3,
    )
    assert widths(eager().decide(short)) == {"a": 4}


def test_only_managed_units_are_changed():
    seen = chain()
    only = run(10.0, {}, {}).__class__(**{**seen.__dict__, "managed": ("count",)})
    assert widths(eager().decide(only)) == {"count": 5}


def test_parameters_are_checked():
    assert make("ds2:policy_interval=30").period == 30.0
    for spec, says in (
        ("ds2:policy_interval=0", "policy_interval=0 must be above 0"),
        ("ds2:activation_time=0", "activation_time=0 must be above 0"),
        ("ds2:target_rate_ratio=0.5", "must be 1 or more, or 0"),
        ("ds2:combine=mean", "must be one of: max, median"),
    ):
        with pytest.raises(UsageError, match="policy 'ds2'") as caught:
            make(spec)
        assert says in str(caught.value)


def test_what_the_engine_does_besides_processing_is_useful_too():
    # never idle, and processing for 8 of 10 s: it does 200/s, not 250/s; and that is known when it is idle again
    full = {"processed": 200.0, "busy": 0.8, "waiting_before": 300.0, "waiting": 300.0, "samples": [{"backlog": 300}]}
    policy = eager()
    assert widths(policy.decide(chain(split=full)))["split"] == 5
    calm = {"processed": 1000.0, "busy": 4.0, "width": 7}
    assert widths(policy.decide(chain(split=calm)))["split"] == 5
