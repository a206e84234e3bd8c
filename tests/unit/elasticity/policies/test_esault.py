"""The paper's policy against vectors reckoned from its rules (Zhan et al. 2017: probes, judgements, merge partners)."""

from __future__ import annotations

import pytest
from elasticity_views import in_time, sample, view

from esault.elasticity.action import Merge, Split
from esault.elasticity.policies.esault import HIGH, LOW, NORMAL, OVERLOAD, UNDERLOAD, ESault, Health
from esault.elasticity.view import ProbeSample

NAMES = {"N": NORMAL, "L": LOW, "U": UNDERLOAD, "H": HIGH, "O": OVERLOAD}
T = "T"
VECTORS = {
    "V1": ([10, T, T, T, 10, 10, 10, 10, 10], "NHHOOOHHN", "NHHHHHHHN"),
    "V2": ([10, T, T, 10, T, T, 10], "NHHHOOO", "NHHHHOH"),
    "V3": ([100, 40, 40, 40, 40], "NLLUU", "NLLLU"),
    "V4": ([100, 40, 120, 50, 50, 50, 70], "NLLLUUU", "NLLLLUL"),
    "V5": ([100, 40, 40, T, 40, 10, 10, 10, 10, 10, 10], "NLLHHHHHUUU", "NLLHHHHHUUU"),
    "V6": ([100, 50, 49, 49, 49], "NNLLU", "NNLLL"),
}


def small(strict):
    return Health(5, 0.6, 5, 0.6, 0.5, strict)


def feed(health, samples):
    return [health.sample(s is T or s == T, 0.0 if s == T else float(s)) for s in samples]


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("strict", [False, True])
def test_judgements_are_those_of_the_specification(name, strict):
    samples, loose, tight = VECTORS[name]
    assert feed(small(strict), samples) == [NAMES[c] for c in (tight if strict else loose)]


def test_a_late_probe_makes_the_peak_invalid_and_the_next_rate_sets_it():
    health = small(False)
    feed(health, [100, 40, 40, T])
    assert health.peak == 0.0
    feed(health, [40])
    assert health.peak == 40.0


@pytest.mark.parametrize(("strict", "first"), [(False, 16), (True, 17)])
def test_with_defaults_only_late_probes_overload_at_the_sixteenth(strict, first):
    health = Health(strict=strict)
    statuses = feed(health, [T] * 20)
    assert statuses.index(OVERLOAD) + 1 == first


@pytest.mark.parametrize(("strict", "first"), [(False, 81), (True, 82)])
def test_with_defaults_light_samples_underload_at_the_eighty_first(strict, first):
    health = Health(strict=strict)
    statuses = feed(health, [1000] + [50] * 100)
    assert statuses.index(UNDERLOAD) + 1 == first


def test_after_a_late_probe_underload_is_blocked_for_its_window():
    health = Health()
    feed(health, [1000] + [50] * 100)
    assert health.sample(True) == HIGH
    assert health.peak == 0.0
    statuses = feed(health, [50] * 20)
    assert statuses[:19] == [HIGH] * 19
    assert statuses[19] == LOW
    assert health.peak == 50.0


def judged(policy, ticks, rate=100.0, late=(), sub_units=(1, 2), period=0.1, rates=None):
    """Feed `ticks` views in which each sub-unit had one probe a tick; actions by tick."""
    given = {}
    for tick in range(1, ticks + 1):
        now = tick * period
        samples = []
        for sub_unit in sub_units:
            sent = now - period
            if sub_unit in late:
                probe = ProbeSample(tick, sent)
            else:
                probe = in_time(tick, sent, (rates or {}).get(sub_unit, rate))
            samples.append(sample(sub_unit, [probe]))
        actions = list(policy.decide(view(now, samples)))
        if actions:
            given[tick] = actions
    return given


def test_an_overloaded_sub_unit_is_split_in_the_middle():
    given = judged(ESault(start_adaptive=0, update_adaptive=0), 16, late=(2,))
    (tick, (action,)) = next(iter(given.items()))
    assert tick == 16
    assert isinstance(action, Split)
    assert (action.sub_unit, action.at) == (2, None)
    assert "overloaded" in action.reason


def test_all_that_is_due_is_done_at_once():
    given = judged(ESault(start_adaptive=0), 16, late=(1, 2, 3), sub_units=(1, 2, 3, 4))
    assert [a.sub_unit for a in given[16]] == [1, 2, 3]


def test_after_a_decision_nobody_is_judged_for_a_while():
    given = judged(ESault(start_adaptive=0, update_adaptive=2.0), 60, late=(2,))
    first, second = list(given)[:2]
    # 2 s of silence, then sixteen late probes again
    assert second - first >= 20 + 16


def test_a_new_sub_unit_is_not_judged():
    policy = ESault(start_adaptive=5.0)
    for tick in range(1, 60):
        now = tick * 0.1
        samples = [sample(1, [ProbeSample(tick, now - 0.1)], age=now)]
        actions = policy.decide(view(now, samples))
        assert not actions or now >= 5.0


def test_a_return_after_max_latency_is_ignored():
    """Sent at 0 ms, back at 99 ms: in time; not back at 100 ms: late, and a return at 130 ms changes nothing."""
    policy = ESault(start_adaptive=0, overload_time=1, overload_factor=1.0)
    assert not policy.decide(view(0.100, [sample(1, [in_time(1, 0.0, 10, delay=0.099), ProbeSample(2, 0.1)])]))
    assert policy.decide(view(0.201, [sample(1, [ProbeSample(3, 0.2)])]))
    # its late return comes together with the next probe's own sample, which must not become in time by it
    policy = ESault(start_adaptive=0, overload_time=2, overload_factor=1.0, update_adaptive=0)
    assert not policy.decide(view(0.1, [sample(1, [ProbeSample(1, 0.0)])]))
    assert policy.decide(view(0.25, [sample(1, [in_time(1, 0.0, 10, delay=0.13), ProbeSample(2, 0.1)])]))


def test_an_underloaded_sub_unit_joins_a_neighbour_that_has_no_late_probes():
    # 1 and 3 carry what they always did; 2 has fallen to a twentieth; 3 is late now and then
    policy = ESault(start_adaptive=0)
    given = {}
    for tick in range(1, 120):
        now = tick * 0.1
        two = in_time(tick, now - 0.1, 1000.0 if tick == 1 else 50.0)
        three = ProbeSample(tick, now - 0.1) if tick % 10 == 0 else in_time(tick, now - 0.1, 500.0)
        one = in_time(tick, now - 0.1, 500.0)
        actions = list(policy.decide(view(now, [sample(1, [one]), sample(2, [two]), sample(3, [three])])))
        if actions:
            given[tick] = actions
            break
    (action,) = given[81]
    assert isinstance(action, Merge)
    assert (action.sub_unit, action.into) == (2, 1)


def test_never_below_the_least_or_above_the_most():
    light = dict.fromkeys(range(2, 200), 50.0)
    policy = ESault(start_adaptive=0)
    for tick in range(1, 200):
        now = tick * 0.1
        rate = light.get(tick, 1000.0)
        samples = [sample(i, [in_time(tick, now - 0.1, rate)]) for i in (1, 2)]
        assert not policy.decide(view(now, samples, least=2))
    policy = ESault(start_adaptive=0)
    for tick in range(1, 40):
        now = tick * 0.1
        assert not policy.decide(view(now, [sample(i, [ProbeSample(tick, now - 0.1)]) for i in (1, 2)], most=2))


def test_a_marked_rise_resets_all_peaks_if_that_reading_is_chosen():
    policy = ESault(start_adaptive=0, peak_reset=2.0)
    rates = {1: 100.0, 2: 100.0}
    for tick in range(1, 10):
        now = tick * 0.1
        policy.decide(view(now, [sample(i, [in_time(tick, now - 0.1, rates[i])]) for i in (1, 2)]))
    now = 1.0
    policy.decide(view(now, [sample(1, [in_time(10, 0.9, 500.0)]), sample(2, [in_time(10, 0.9, 40.0)])]))
    assert policy._watched[1].health.peak == 500.0
    assert policy._watched[2].health.peak == 40.0  # reset by the other's rise, then set anew
