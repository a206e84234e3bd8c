"""The policies `craa`, `threshold` and `kalman` on views."""

from __future__ import annotations

import pytest
from elasticity_views import numbers_of
from window_views import run as run_view
from window_views import unit

from esault import UsageError
from esault.elasticity.action import Rescale, Throttle
from esault.elasticity.policies.craa import Craa
from esault.elasticity.policies.kalman import Kalman
from esault.elasticity.policies.threshold import Threshold
from esault.elasticity.policy import make

#: one sub-unit's rate and the buffer, from the paper's table 2
TABLE = {"O2": (400, 500), "O3": (300, 1000), "O4": (200, 2000)}


class Oracle:
    """A filter that knows."""

    def __init__(self, *rates):
        self.rates = rates

    def update(self, rate):
        pass

    def forecast(self, windows):
        return self.rates[windows - 1]


def bolt(name, one, size, arrivals, width, before=0.0, waiting=0.0, **more):
    """A unit that processes what it can of `arrivals` tuples a second, in a window of 5 s."""
    processed = 5 * min(width * one, arrivals + before / 5)
    return unit(
        name,
        width,
        most=more.pop("most", None),
        end=5.0,
        seconds=5.0,
        arrivals=5 * arrivals,
        processed=processed,
        emitted=processed,
        busy=processed / one,
        waiting_before=before,
        waiting=waiting,
        buffer=size,
        spouts=("src",),
        **more,
    )


def source(**counts):
    return unit("src", kind="spout", end=5.0, seconds=5.0, **counts)


CHAIN = {"O2": ("src",), "O3": ("O2",), "O4": ("O3",)}


def chain(policy, forecasts, states, **more):
    """One decision on O2 -> O3 -> O4; `states`: (arrivals, width, waiting)."""
    policy._heads["O2"] = Oracle(*forecasts)
    bolts = [bolt(n, *TABLE[n], i, w, waiting=bo) for n, (i, w, bo) in states.items()]
    wants = policy.decide(run_view([source(emitted=5 * states["O2"][0]), *bolts], CHAIN, **more))
    assert all(isinstance(w, Rescale) for w in wants)
    return {w.unit: w.n - states[w.unit][1] for w in wants}


def test_two_windows_of_algorithm_2():
    first = {"O2": (5000, 13, 0), "O3": (2000, 7, 0), "O4": (2000, 10, 0)}
    assert chain(Craa(), (6000, 6000), first) == {"O2": 2, "O3": 10}
    second = {"O2": (6000, 15, 0), "O3": (5000, 17, 0), "O4": (2000, 10, 0)}
    assert chain(Craa(), (6000, 6000), second) == {"O3": 3, "O4": 14}


def test_a_trough_is_not_followed():
    states = {"O2": (1000, 5, 0), "O3": (2000, 7, 0), "O4": (5000, 25, 1400)}
    assert chain(Craa(), (2000, 5000), states) == {"O4": -15}
    assert chain(Craa(judging=False), (2000, 5000), states) == {"O3": -4, "O4": -15}


def test_heads_are_judged_unless_told_otherwise():
    states = {"O2": (5000, 13, 0), "O3": (5000, 17, 700), "O4": (5000, 25, 1400)}
    # 450 of 500 tuples would be in the buffer: nearly full, but not over, and less comes after it
    assert "O2" not in chain(Craa(), (5290, 5000), states)
    assert chain(Craa(judge_head=False), (5290, 5000), states)["O2"] == 1
    assert chain(Craa(tolerance=0.06), (5290, 5000), states)["O2"] == 1


def test_free_slots_and_bounds_cut_a_change():
    first = {"O2": (5000, 13, 0), "O3": (2000, 7, 0), "O4": (2000, 10, 0)}
    assert chain(Craa(), (6000, 6000), first, free=3) == {"O2": 2, "O3": 1}
    assert chain(Craa(), (6000, 6000), first, managed=("O2", "O4")) == {"O2": 2}


def feedback(policy, first_waits=1000.0):
    """U1 and U2 send to D, which would be full to 74.5 %."""
    head = lambda name, arrivals, width, waiting: bolt(name, 100, 10000, arrivals, width, waiting, waiting)
    units = [source(emitted=5 * 3050), head("U1", 2000, 20, first_waits), head("U2", 1050, 11, 0.0)]
    units.append(bolt("D", 100, 10000, 3000, 30, waiting=7200.0))
    return policy.decide(run_view(units, {"U1": ("src",), "U2": ("src",), "D": ("U1", "U2")}))


def test_a_sender_is_slowed_down_for_a_window():
    (wants,) = feedback(Craa())
    assert isinstance(wants, Throttle)
    assert (wants.unit, wants.seconds) == ("U1", 5.0)
    assert wants.rate == pytest.approx(600)
    assert wants.reason.startswith("unit 'D' would be full to 74% and gets 90 tuples/s too much")


def test_one_that_grows_cannot_help():
    grows, slowed = sorted(feedback(Craa(), first_waits=9000.0), key=lambda a: a.unit)
    assert (grows.unit, grows.n) == ("U1", 24)
    assert (slowed.unit, slowed.rate) == ("U2", 0)


def test_without_feedback_nobody_is_slowed():
    assert not feedback(Craa(feedback=False))


def test_one_that_was_capped_did_not_emit_at_its_rate():
    policy = Craa()
    assert feedback(policy)
    # the same again: U1 sent 600/s at most, so D is not short of room and needs nobody's help
    assert not any(isinstance(a, Throttle) for a in feedback(policy))


def test_delivery_at_once_foresees_within_the_window():
    # what the head will get in the next window reaches the third unit in it
    states = {"O2": (2000, 10, 0), "O3": (2000, 7, 0), "O4": (2000, 10, 0)}
    assert chain(Craa(), (4000, 4000), states) == {}
    assert chain(Craa(delivery="at_once"), (4000, 4000), states) == {"O3": 6, "O4": 9}


def test_a_bolt_with_a_spout_and_a_bolt_before_it_adds_both():
    policy = Craa()
    a = bolt("a", 100, 1000, 200, 4)
    join = bolt("join", 100, 1000, 500, 6)
    view = run_view([source(emitted=1000), a, join], {"a": ("src",), "join": ("a", "src")})
    for _ in range(20):
        wants = policy.decide(view)
    # 200/s from each are 400/s, but 500/s come for them: b is 1.25
    assert policy._heads["join"].forecast(1) == pytest.approx(250, rel=0.01)
    assert not [w for w in wants if w.unit == "join"]


def test_a_unit_that_is_changing_is_left_alone_and_helps_nobody():
    view = [source(emitted=15250), bolt("U1", 100, 10000, 2000, 20, 1000.0, 1000.0, changing=True)]
    view.append(bolt("D", 100, 10000, 2000, 20, waiting=7200.0))
    assert not Craa().decide(run_view(view, {"U1": ("src",), "D": ("U1",)}))


def test_without_a_bounded_buffer_it_is_half_a_second_of_what_comes():
    unbounded = bolt("O2", 400, None, 2000, 4, waiting=2000.0)
    view = run_view([source(emitted=10000), unbounded], {"O2": ("src",)})
    (wants,) = Threshold().decide(view)
    assert "the buffer of 1,000 is full to 200%" in wants.reason
    assert not Threshold(buffer_default=5000).decide(view)


def test_what_sources_hold_back_is_the_heads():
    held = source(arrivals=8000, emitted=8000, lag_before=0.0, lag=2000.0)
    view = run_view([held, bolt("O2", 400, 5000, 1600, 4)], {"O2": ("src",)})
    assert not Threshold(count_due=False).decide(view)
    assert not Threshold().decide(view)  # 2 000 tuples are 40 % of the buffer
    held = source(arrivals=8000, emitted=8000, lag_before=0.0, lag=4000.0)
    (wants,) = Threshold().decide(run_view([held, bolt("O2", 400, 5000, 1600, 4)], {"O2": ("src",)}))
    # 1 600/s came and 800/s more were due; all that waits but 3 500 is to be gone in 5 s
    assert numbers_of([wants]) == [7]


def test_nothing_before_all_units_have_a_window():
    first = run_view([source(), unit("O2", window=None, kind="bolt")], {"O2": ("src",)})
    bare = run_view([source(), type(first.units["O2"])("O2", first.units["O2"].plan)], {"O2": ("src",)})
    for policy in (Craa(), Threshold(), Kalman()):
        assert not policy.decide(bare)


def test_they_are_known_by_name():
    assert [type(make(name)) for name in ("craa", "threshold", "kalman")] == [Craa, Threshold, Kalman]
    policy = make("craa:tolerance=0.02,head=walk,feedback=no,delivery=at_once")
    assert isinstance(policy, Craa)
    assert (policy.tolerance, policy.head, policy.feedback, policy.delivery) == (0.02, "walk", False, "at_once")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("craa:beta=0.2,gamma=0.3", "beta=0.2, gamma=0.3"),
        ("craa:tau=0", "tau=0"),
        ("threshold:period=0", "policy 'threshold': period"),
        ("kalman:delta=0", "policy 'kalman'"),
        ("craa:head=crystal", "must be one of: trend, walk"),
    ],
)
def test_parameters_that_cannot_be(spec, says):
    with pytest.raises(UsageError) as caught:
        make(spec)
    assert says in str(caught.value)
