"""The policy dhalion: the paper's example, who is to blame, what is done and what is not done again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from run_views import run, widths

from esault import UsageError
from esault.elasticity.action import Advise
from esault.elasticity.policies.dhalion import Dhalion
from esault.elasticity.policy import make

CHAIN = {"a": ("src",), "b": ("a",), "c": ("b",)}


def chain(now=60.0, backpressured=0.0, seconds=60.0, free=100, managed=None, **units):
    """src -> a -> b -> c, each with 4 sub-units and nothing waiting."""
    made = {"src": {"backpressured": backpressured}}
    for name in "abc":
        made[name] = {"width": 4, "least": 4, "arrivals": 100.0, "processed": 100.0, **units.get(name, {})}
    return run(now, made, CHAIN, seconds=seconds, free=free, managed=managed)


def filled(per=2000, width=4, **more):
    return {"width": width, "waiting": per * width, "samples": [{"backlog": per, "processed": 10.0}] * width, **more}


def test_twenty_per_cent_of_back_pressure_is_a_quarter_more():
    (action,) = Dhalion().decide(chain(backpressured=0.2, b=filled()))
    assert widths([action]) == {"b": 5}
    assert action.reason == "20% back-pressure, 2,000 tuples wait per sub-unit: 5 rather than 4"


@pytest.mark.parametrize(("backpressured", "wanted"), [(0.5, 8), (0.6, 10), (0.75, 16), (0.9, 20), (1.0, 20)])
def test_growth_follows_back_pressure_up_to_four_times_more(backpressured, wanted):
    assert widths(Dhalion().decide(chain(backpressured=backpressured, b=filled()))) == {"b": wanted}


def test_the_cause_is_the_lowest_full_unit():
    assert widths(Dhalion().decide(chain(backpressured=0.5, a=filled(), b=filled()))) == {"b": 8}
    assert widths(Dhalion().decide(chain(backpressured=0.5, a=filled(), c=filled()))) == {"c": 8}


def test_without_a_full_inbox_the_fullest_is_to_blame():
    some = {"b": {"waiting": 40.0}, "a": {"waiting": 12.0}}
    assert widths(Dhalion().decide(chain(backpressured=0.5, **some))) == {"b": 8}
    assert Dhalion().decide(chain(backpressured=0.5)) == ()


def test_noise_is_no_back_pressure():
    assert Dhalion().decide(chain(backpressured=0.02, b=filled())) == ()
    assert widths(Dhalion().decide(chain(backpressured=0.021, b=filled()))) == {"b": 5}


def test_dropping_is_back_pressure_of_a_bounded_inbox():
    assert widths(Dhalion().decide(chain(b={"arrivals": 100.0, "dropped": 20.0}))) == {"b": 5}


def test_skew_is_shared_anew():
    hot = {
        "waiting": 8000,
        "samples": [{"backlog": 7900, "processed": 40.0}] + [{"backlog": 30, "processed": 20.0}] * 3,
    }
    (action,) = Dhalion().decide(chain(backpressured=0.5, b=hot))
    assert widths([action]) == {"b": 4}
    assert action.reason == "50% back-pressure, its sub-units differ in load and inboxes: shared anew"


def test_a_slow_sub_unit_is_named_once_and_gets_less():
    slow = {
        "waiting": 8000,
        "samples": [{"backlog": 10, "processed": 20.0}] * 3 + [{"backlog": 7970, "processed": 18.0}],
    }
    policy = Dhalion(wait=0.0)
    advice, action = policy.decide(chain(60.0, backpressured=0.5, b=slow))
    assert isinstance(advice, Advise)
    assert "sub-unit 4 is slow: 7,970 tuples wait there" in advice.reason
    assert widths([action]) == {"b": 4}
    (action,) = policy.decide(chain(120.0, backpressured=0.4, b=slow))  # it helped a little: again, and not said again
    assert widths([action]) == {"b": 4}


def test_what_was_in_vain_goes_on_the_blacklist():
    hot = {
        "waiting": 8000,
        "samples": [{"backlog": 7900, "processed": 40.0}] + [{"backlog": 30, "processed": 20.0}] * 3,
    }
    policy = Dhalion()
    assert widths(policy.decide(chain(60.0, backpressured=0.5, b=hot))) == {"b": 4}
    assert widths(policy.decide(chain(240.0, backpressured=0.5, b=hot))) == {"b": 8}  # sharing anew did not help
    assert policy.decide(chain(420.0, backpressured=0.5, b=hot)) == ()  # nor did growing
    assert policy.decide(chain(480.0, backpressured=0.5, b=hot)) == ()


def test_the_blacklist_goes_by_the_share_of_vain_attempts():
    policy = Dhalion()
    for now, backpressured in ((60.0, 0.5), (240.0, 0.4), (420.0, 0.4)):  # less, then no less: one of two
        assert widths(policy.decide(chain(now, backpressured=backpressured, b=filled()))), now
    assert policy.decide(chain(600.0, backpressured=0.4, b=filled())) == ()  # two of three


def test_more_done_a_second_is_help_too():
    # the load rises: as much back-pressure as before, and yet the unit does twice as many
    policy = Dhalion()
    assert widths(policy.decide(chain(60.0, backpressured=0.5, b=filled()))) == {"b": 8}
    assert widths(policy.decide(chain(240.0, backpressured=0.5, b=filled(width=8, processed=200.0)))) == {"b": 16}
    assert policy.decide(chain(420.0, backpressured=0.5, b=filled(width=16, processed=201.0)))  # one of two in vain
    assert policy.decide(chain(600.0, backpressured=0.5, b=filled(width=16, processed=202.0))) == ()


def test_the_next_narrow_unit_does_not_speak_against_an_action():
    policy = Dhalion()
    assert widths(policy.decide(chain(60.0, backpressured=0.5, b=filled()))) == {"b": 8}
    assert widths(policy.decide(chain(240.0, backpressured=0.9, c=filled(processed=50.0)))) == {"c": 20}
    assert widths(policy.decide(chain(420.0, backpressured=0.2, b=filled(width=8)))) == {"b": 10}


def test_nothing_is_judged_while_an_action_settles():
    policy = Dhalion()
    assert policy.decide(chain(60.0, backpressured=0.5, b=filled()))
    for now in (120.0, 180.0):
        assert policy.decide(chain(now, backpressured=0.9, b=filled(width=8))) == ()
    assert widths(policy.decide(chain(240.0, backpressured=0.2, b=filled(width=8)))) == {"b": 10}


def test_empty_inboxes_without_back_pressure_shrink_one_unit_at_a_time():
    wide = {"a": {"width": 10, "least": 1, "busy": 300.0}, "b": {"width": 10, "least": 1, "busy": 100.0}}
    policy = Dhalion()
    (action,) = policy.decide(chain(60.0, **wide))
    assert widths([action]) == {"b": 8}
    assert action.reason == "no back-pressure, 0.0 tuples wait per sub-unit: 8 rather than 10"
    assert policy.decide(chain(120.0, **wide)) == ()
    wide["b"]["width"] = 8
    assert widths(policy.decide(chain(240.0, **wide))) == {"b": 7}  # 6.4, rounded up


def test_shrinking_takes_at_least_one_and_stops_at_the_least():
    assert widths(Dhalion().decide(chain(b={"width": 2, "least": 1}))) == {"b": 1}
    assert widths(Dhalion(scale_down_factor=0.9).decide(chain(b={"width": 10, "least": 4}))) == {"b": 4}
    assert Dhalion().decide(chain(b={"width": 10, "least": 1, "waiting": 11.0})) == ()


def test_a_shrinking_that_brought_back_pressure_is_not_repeated():
    policy = Dhalion()
    wide = {"width": 10, "least": 1}
    assert widths(policy.decide(chain(60.0, b=wide))) == {"b": 8}
    assert widths(policy.decide(chain(240.0, backpressured=0.2, b=filled(width=8)))) == {"b": 10}
    assert policy.decide(chain(420.0, b=wide)) == ()


def test_bounds():
    assert widths(Dhalion().decide(chain(backpressured=0.75, b=filled(most=6)))) == {"b": 6}
    assert widths(Dhalion().decide(chain(backpressured=0.75, b=filled(), free=3))) == {"b": 7}
    assert Dhalion().decide(chain(backpressured=0.75, b=filled(), free=0)) == ()


def test_a_cause_that_may_not_be_scaled_is_said_once():
    policy = Dhalion()
    (advice,) = policy.decide(chain(backpressured=0.5, b=filled(), managed=("a", "c")))
    assert isinstance(advice, Advise)
    assert advice.reason == "b holds the others up, and may not be scaled"
    assert policy.decide(chain(120.0, backpressured=0.5, b=filled(), managed=("a", "c"))) == ()


def test_changes_that_are_on_are_waited_for():
    assert Dhalion().decide(chain(backpressured=0.5, b=filled(changing=True))) == ()


def test_parameters_are_checked():
    assert make("dhalion:interval=300").period == 300.0
    with pytest.raises(UsageError, match="policy 'dhalion': interval=0 must be above 0"):
        make("dhalion:interval=0")
    with pytest.raises(UsageError, match="scale_down_factor=20 is a share, at most 1"):
        make("dhalion:scale_down_factor=20")


@pytest.mark.parametrize(
    ("read", "grown", "wanted"), [(75.0, 25.0, 6), (50.0, 50.0, 8), (60.0, 0.0, None), (5.0, 95.0, 20)]
)
def test_growth_follows_what_was_due_and_not_read_where_that_is_known(read, grown, wanted):
    # held back all the time, as in any overload: that is a symptom, and no size
    view = chain(backpressured=1.0, b=filled())
    source = {"backpressured": 1.0, "arrivals": read, "lag_before": 10.0, "lag": 10.0 + grown}
    window = replace(view.units["src"].window, **source)
    units = {**view.units, "src": replace(view.units["src"], window=window)}
    found = widths(Dhalion().decide(replace(view, units=units)))
    assert found == ({} if wanted is None else {"b": wanted})


def test_rates_that_differ_alone_are_no_diagnosis():
    uneven = {"waiting": 8000, "samples": [{"backlog": 2000, "processed": rate} for rate in (40.0, 20.0, 20.0, 20.0)]}
    assert Dhalion().decide(chain(backpressured=0.5, b=uneven)) == ()
    nearly = {"waiting": 8000, "samples": [{"backlog": 2000, "processed": rate} for rate in (30.0, 20.0, 20.0, 20.0)]}
    assert widths(Dhalion().decide(chain(backpressured=0.5, b=nearly))) == {"b": 8}
