"""The policy `autoscale` on views."""

from __future__ import annotations

import pytest
from elasticity_views import numbers_of
from window_views import run, unit

from esault import UsageError
from esault.elasticity.action import Rescale
from esault.elasticity.policies.autoscale import Autoscale
from esault.elasticity.policy import make

SENDERS = {"sink": ("src",)}


def iteration(policy, counts, at=0.0, processed=75, service=0.08, waiting=0, width=1, most=24, **more):
    """Feed an iteration of one unit; what it wants at the end, and that it wants nothing before."""
    for k, arrivals in enumerate(counts):
        sink = unit(
            "sink",
            width,
            most=most,
            end=at + 10 * (k + 1),
            arrivals=arrivals,
            processed=processed,
            busy=processed * service,
            waiting=waiting,
            spouts=("src",),
            **more,
        )
        wants = policy.decide(run([unit("src", kind="spout", end=at + 10 * (k + 1), arrivals=arrivals), sink], SENDERS))
        assert k == len(counts) - 1 or not wants
    return wants


def test_it_is_known_by_name():
    policy = make("autoscale:theta_min=0.2,samples=4,mode=printed,propagate_only_if_changed=yes")
    assert isinstance(policy, Autoscale)
    assert (policy.period, policy.samples, policy.theta_min, policy.theta_max, policy.mode) == (
        10,
        4,
        0.2,
        0.8,
        "printed",
    )


@pytest.mark.parametrize("wrong", [{"samples": 1}, {"period": 0.0}, {"theta_min": 0.9}, {"theta_max": 1.5}])
def test_parameters_that_cannot_be(wrong):
    with pytest.raises(UsageError, match="policy 'autoscale'"):
        Autoscale(**wrong)


def test_the_window_sequence_of_the_specification():
    policy = Autoscale()
    (first,) = iteration(policy, [1400] * 6, processed=125, waiting=7650)
    assert isinstance(first, Rescale)
    assert (first.unit, first.n) == ("sink", 22)
    assert first.reason == (
        "8,400 tuples expected in 60 s and 7,650 waiting are 21.40 of what 1 can process: critical, not increasing; 22"
    )
    policy = Autoscale()
    (first,) = iteration(policy, [1400] * 6, processed=125, waiting=7650, most=12)
    assert first.n == 12
    # 1.717 of what 12 can process is critical, and they are the most
    assert not iteration(policy, [1400] * 6, 60, processed=1500, waiting=7050, width=12, most=12)
    assert not iteration(policy, [1400] * 6, 120, processed=1500, waiting=6450, width=12, most=12)
    (third,) = iteration(policy, [1400] * 6, 180, processed=1500, waiting=7050, width=12, most=24)
    assert third.n == 21  # ceil(12 * 1.71666)


def test_the_forecast_looks_one_iteration_ahead_unless_it_is_printed():
    rising = [100, 120, 140, 160, 180, 200]
    (wants,) = iteration(Autoscale(), rising, service=0.1, waiting=150, width=2)
    assert wants.n == 3
    (wants,) = iteration(Autoscale(mode="printed"), rising, service=0.1, waiting=150, width=2)
    assert (wants.n, "0.88" in wants.reason, "strong, increasing" in wants.reason) == (3, True, True)
    assert not iteration(Autoscale(mode="printed"), rising[::-1], service=0.1, waiting=150, width=2)


def test_it_shrinks_to_what_is_needed():
    (wants,) = iteration(Autoscale(), [375] * 6, width=12)
    assert wants.n == 3
    assert wants.reason.startswith("2,250 tuples expected in 60 s and 0 waiting are 0.25 of what 12 can process: low")


def test_nothing_is_decided_before_a_tuple_was_processed():
    policy = Autoscale()
    assert not iteration(policy, [1400] * 6, processed=0, waiting=8400)
    # from then on the last known latency is as good as any
    assert iteration(policy, [1400] * 6, 60, processed=125, waiting=7650)
    assert iteration(policy, [1400] * 6, 120, processed=0, waiting=16050)


def test_a_unit_that_is_changing_or_is_not_its_own_is_left_alone():
    assert not iteration(Autoscale(), [1400] * 6, changing=True)


def test_after_a_change_it_rests_for_the_grace():
    policy = Autoscale(grace=1)
    assert iteration(policy, [1400] * 6)
    assert not iteration(policy, [1400] * 6, 60)
    assert iteration(policy, [1400] * 6, 120)


def line(policy, heads, tail, **head):
    """A head that is at its most and a tail with little to do."""
    for k in range(6):
        end = 10.0 * (k + 1)
        src = unit("src", kind="spout", end=end, arrivals=heads)
        a = unit("a", head.get("width", 1), most=head.get("most", 4), end=end, arrivals=heads, processed=100, busy=8)
        b = unit("b", 2, end=end, arrivals=tail, processed=tail, busy=0.08 * tail)
        wants = policy.decide(run([src, a, b], {"a": ("src",), "b": ("a",)}, managed=head.get("managed")))
    return {w.unit: w for w in wants}


def test_a_scale_out_is_inherited_as_one_more():
    wants = line(Autoscale(), heads=400, tail=150)
    assert (wants["a"].n, wants["b"].n) == (4, 3)
    assert "but its sender is scaled out" in wants["b"].reason


def test_a_scale_in_under_a_scale_out_is_nothing():
    assert set(line(Autoscale(), heads=400, tail=50)) == {"a"}
    assert line(Autoscale(), heads=100, tail=50)["b"].n == 1


def test_what_changes_nothing_counts_downstream_unless_told_otherwise():
    assert set(line(Autoscale(), heads=400, tail=150, width=4, most=4)) == set()
    assert set(line(Autoscale(), heads=4000, tail=150, width=4, most=4)) == {"b"}
    assert not line(Autoscale(propagate_only_if_changed=True), heads=4000, tail=150, width=4, most=4)


def test_only_managed_units_are_changed():
    assert set(line(Autoscale(), heads=400, tail=150, managed=("b",))) == {"b"}


def test_free_slots_are_shared():
    policy = Autoscale()
    for k in range(6):
        end = 10.0 * (k + 1)
        units = [
            unit("src", kind="spout", end=end),
            *(unit(n, most=None, end=end, arrivals=400, processed=100, busy=8) for n in "ab"),
        ]
        wants = policy.decide(run(units, {"a": ("src",), "b": ("src",)}, free=3))
    assert dict(zip([w.unit for w in wants], numbers_of(wants))) == {"a": 4}


def held(policy, lag):
    for k in range(6):
        end = 10.0 * (k + 1)
        src = unit("src", kind="spout", end=end, arrivals=125, lag_before=lag * k, lag=lag * (k + 1))
        sink = unit("sink", end=end, arrivals=125, processed=125, busy=10, spouts=("src",))
        wants = policy.decide(run([src, sink], SENDERS))
    return wants


def test_what_sources_hold_back_counts():
    (wants,) = held(Autoscale(), lag=1275)
    assert wants.n == 22  # as if all that is due had come
    assert not held(Autoscale(count_due=False), lag=1275)
    assert not held(Autoscale(), lag=0)
