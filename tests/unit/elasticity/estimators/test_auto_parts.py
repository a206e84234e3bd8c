"""What `auto` is made of: the load's rhythm, idle times, staffing, and the queue of the next seconds."""

from __future__ import annotations

import json
import math
import random

import depth
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault.elasticity.estimators.flow_forecast import STEP, outflow, sized
from esault.elasticity.estimators.idle_times import LEAST, IdleTimes
from esault.elasticity.estimators.load_history import MOST, LoadHistory
from esault.elasticity.estimators.staffing import enough


def history(rate, seconds, window=0.25, noise=0.0, seed=1):
    made = LoadHistory()
    order = random.Random(seed)
    for i in range(int(seconds / window)):
        made.add(rate(i * window) * (1 + noise * order.gauss(0, 1)), window)
    return made


def square(t):
    return 1000.0 if t % 60 < 20 else 100.0


def test_a_rhythm_is_found_and_foretells_the_next_jump():
    seen = history(square, 170)  # 50 s into the third round: the next jump is 10 s away
    assert seen.period == 60
    assert seen.foretold(0, 5) == pytest.approx(100, abs=1)
    assert seen.foretold(9, 12) == pytest.approx(1000, abs=1)
    assert seen.foretold(10 + 60, 12 + 60) == pytest.approx(1000, abs=1)  # and the round after


def test_it_is_found_under_noise_and_for_a_wave():
    assert history(square, 200, noise=0.1).period == pytest.approx(60, abs=1)
    wave = history(lambda t: 500 + 400 * math.sin(2 * math.pi * t / 40), 130)
    assert wave.period == pytest.approx(40, abs=1)


@pytest.mark.parametrize(
    "rate",
    [
        lambda t: 500.0,
        lambda t: 100.0 + t,
        lambda t: random.Random(int(t // 5)).uniform(100, 1000),
    ],
    ids=["steady", "ramp", "random"],
)
def test_where_there_is_none_nobody_knows(rate):
    seen = history(rate, 200)
    assert seen.period is None
    assert seen.foretold(0, 1) is None


def test_steps_and_then_a_noisy_plateau_are_none():
    order = random.Random(3)
    seen = LoadHistory()
    for i in range(400):
        mean = 500.0 * min(4, 1 + i // 40)
        seen.add(max(0.0, order.gauss(mean, math.sqrt(64 * mean / 0.25))), 0.25, 64.0)
        assert seen.period is None


def test_one_round_is_no_rhythm_yet():
    assert history(square, 100).period is None


@pytest.mark.slow  # two seconds, and half a minute where branches are counted
def test_a_long_history_stays_small_and_reaches_far_back():
    seen = history(lambda t: 500 + 400 * math.sin(2 * math.pi * t / 300), 1600, window=1.0)
    assert [len(each.bins) for each in seen.resolutions[:3]] == [MOST, MOST, 400]
    assert len(seen.resolutions) <= math.log2(1600) + 2
    assert seen.period == pytest.approx(300, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("minutes", depth.chosen([5, 48], [5]))
def test_a_rhythm_of_ten_seconds_stays_one_for_hours(minutes):
    seen = history(lambda t: 1000.0 if t % 10 < 3 else 100.0, 60 * minutes + 5, window=0.5)
    assert seen.period == 10
    assert seen.foretold(0, 3) == pytest.approx(100, abs=1)
    assert seen.foretold(5, 6) == pytest.approx(1000, abs=1)


@pytest.mark.slow
def test_a_day_is_found_within_a_week():
    day = 86_400.0
    rate = lambda t: 1000.0 if 0.4 < t % day / day < 0.6 else 100.0
    seen = LoadHistory(240.0)
    for i in range(round(4.3 * day / 60)):
        seen.add(rate(60.0 * i), 60.0)
    assert seen.period == pytest.approx(day, rel=0.01)
    jump = 0.1 * day
    assert seen.foretold(0.5 * jump, 0.6 * jump) == pytest.approx(100, abs=1)
    assert seen.foretold(1.05 * jump, 1.1 * jump) == pytest.approx(1000, abs=1)


@pytest.mark.slow
def test_a_rhythm_that_ends_is_no_longer_foretold():
    seen = history(lambda t: square(t) if t < 400 else 300.0, 1000)
    assert seen.period is None


def test_a_load_that_has_left_its_rhythm_is_foretold_as_little_as_has_come():
    # 1 000 tuples/s are due from 180 s on for 20 s
    left = history(lambda t: square(t) if t < 180 else 20.0, 186)
    assert left.period == 60
    assert left.foretold(0, 5) == pytest.approx(20, rel=0.3)
    # nothing at all comes: nothing is foretold
    assert history(lambda t: square(t) if t < 180 else 0.0, 188).foretold(0, 5) == 0.0


def test_a_rhythm_that_comes_back_is_foretold_again():
    seen = history(lambda t: 20.0 if 180 <= t < 190 else square(t), 230)
    assert seen.period == 60
    assert seen.foretold(22, 28) == pytest.approx(1000, abs=1)  # as 190 to 200 s were


@pytest.mark.parametrize("share", [0.3, 1.0, 3.0])
def test_a_day_of_a_third_keeps_the_rhythm_and_so_does_one_of_more(share):
    seen = history(lambda t: square(t) if t < 180 else share * square(t), 196)
    assert seen.foretold(0, 3) == pytest.approx(1000, abs=1)


def test_a_rush_that_is_a_bin_late_is_still_foretold():
    seen = history(lambda t: square(t) if t < 180 else square(t - 1.0), 182)
    assert seen.foretold(0, 5) == pytest.approx(1000, abs=1)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.05, 5)), max_size=60))
def test_no_tuple_is_forgotten_in_bins(windows):
    seen = LoadHistory()
    for rate, seconds in windows:
        seen.add(rate, seconds)
    finest = seen.resolutions[0]
    kept = sum(finest.bins) * finest.bin_seconds + finest.count
    assert kept == pytest.approx(sum(r * s for r, s in windows), rel=1e-6, abs=1e-6)


def test_without_a_past_one_waits_for_as_long_as_a_change_costs():
    idle = IdleTimes(5.0)
    assert idle.patience(4) == 5.0
    idle.needed(3, 4, 0.0)
    idle.needed(3, 4, 7.0)
    assert idle.idle(4, 7.0) == 7.0
    assert idle.idle(3, 7.0) == 0.0


def _lived(idle_seconds, change=5.0, times=8):
    """The second sub-unit is needed for a second, again and again after so long."""
    idle, now = IdleTimes(change), 0.0
    for _ in range(times):
        idle.needed(2, 2, now)
        now += 1.0
        idle.needed(2, 2, now)
        for _ in range(int(idle_seconds * 4)):
            now += 0.25
            idle.needed(1, 2, now)
    idle.needed(2, 2, now + 0.25)
    return idle


def test_short_idle_times_teach_to_keep_and_long_ones_to_let_go():
    assert _lived(3.0).patience(2) >= 3.0  # to keep costs 3, to stop costs 5
    assert _lived(150.0).patience(2) == LEAST  # it will not be needed for long: at once
    assert _lived(8.0).patience(2) == LEAST


def test_the_least_wait_counts_in_what_a_stop_costs():
    """7 s of idleness cost 7; a stop after `LEAST` costs 1.5 and the 5.8 of the change."""
    assert _lived(7.0, change=5.8).patience(2) >= 7.0
    assert _lived(7.0, change=5.0).patience(2) == LEAST


def _two_kinds(times):
    """The tenth sub-unit is not needed for 3 s at a time, and like all but two for a minute now and then."""
    idle, now = IdleTimes(5.0), 0.0
    for _ in range(times):
        for count, seconds in [(10, 0.5), (9, 3.0)] * 3 + [(10, 0.5), (2, 60.0)]:
            for _ in range(int(seconds * 4)):
                idle.needed(count, 10, now)
                now += 0.25
    return idle


def test_each_rank_waits_by_its_own_idle_times():
    idle = _two_kinds(14)
    assert idle.patience(3) == LEAST
    assert idle.patience(10) >= 3.0


def test_where_few_idle_times_are_known_of_a_rank_all_decide_together():
    idle = _two_kinds(2)
    assert {idle.patience(rank) for rank in range(1, 12)} == {idle.patience(10)}
    assert _two_kinds(0).patience(3) == 5.0
    new = _two_kinds(14)  # nobody was ever the 30th
    assert new.patience(30) == new._least_cost([seconds for _, seconds in new._ended])


@given(st.lists(st.floats(1.0, 200.0), min_size=4, max_size=60), st.floats(0.5, 40))
def test_no_wait_would_have_cost_less(ended, change):
    def cost(wait):
        return sum(d if d <= wait else wait + change for d in ended)

    chosen = cost(IdleTimes(change)._least_cost(ended))
    assert all(
        chosen <= cost(wait) + 1e-6 for wait in [LEAST, *(d for d in [change, *ended] if LEAST < d < 4 * change)]
    )


def test_what_was_learnt_counts_from_the_next_look_on():
    idle = IdleTimes(5.0)
    seen = []
    for i in range(6):
        idle.needed(2, 2, 40.0 * i)
        seen.append(idle.patience(2))
    assert seen == [5.0] * 2 + [LEAST] * 4  # two ranks, so four idle times after the second look


def test_what_a_change_is_worth_counts_at_once():
    idle = IdleTimes(5.0)
    assert idle.patience(2) == 5.0
    idle.change = 9.0  # state has to move, too
    assert idle.patience(2) == 9.0


def test_enough_for_the_work_and_more_for_bursts():
    assert enough(0.0, 0.01, 0.8, 0.1) == 1
    assert enough(80.0, 0.01, 0.8, 0.1) == 1
    assert enough(81.0, 0.01, 0.8, 0.1) == 2
    assert enough(560 * 8 * 0.8, 1 / 560, 0.8, 0.1) == 8
    assert enough(560 * 8 * 0.8, 1 / 560, 0.8, 0.1, burst=512) > 8


@given(st.floats(0, 1e5), st.floats(1e-6, 0.1), st.floats(0.3, 0.95), st.floats(0.001, 5), st.floats(0, 1000))
def test_it_is_never_fewer_than_the_work_takes(rate, service, busy, latency, burst):
    n = enough(rate, service, busy, latency, burst)
    assert n >= 1
    assert rate * service <= n * busy + 1e-3


def test_a_queue_fills_until_the_new_ones_are_there_and_empties_after():
    processed, queue = outflow([200.0] * 12, 0.0, 100.0, 300.0, 1.0)
    assert queue[3] == pytest.approx(100.0)  # a second of 100/s too much
    assert queue[7] == pytest.approx(0.0)
    assert processed[0] == 100.0
    assert processed[4] == 300.0
    assert processed[-1] == 200.0


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=24), st.floats(0, 1000), st.floats(0, 500), st.floats(0, 500))
def test_what_comes_waits_or_is_processed(inflow, waiting, before, after):
    processed, queue = outflow(inflow, waiting, before, after, 1.0)
    assert sum(processed) * STEP + queue[-1] == pytest.approx(sum(inflow) * STEP + waiting, rel=1e-6, abs=1e-6)


def test_the_fewest_that_catch_up_in_time():
    steady = [100.0] * 24
    assert sized(steady, 0.0, 2, 100.0, 0.5, 2.0, 0.1, 10) == 2
    # 400 wait and 100/s come: within 1.5 s of the new ones that takes 100 + 400/1.5 a second and what piles up till then
    assert sized(steady, 400.0, 1, 100.0, 0.5, 2.0, 0.1, 10) == 4
    assert sized(steady, 1e6, 1, 100.0, 0.5, 2.0, 0.1, 10) == 10
    # more comes later than it looks now
    assert sized([100.0] * 4 + [450.0] * 20, 0.0, 2, 100.0, 0.5, 2.0, 0.1, 10) >= 4


def _square(period=20.0):
    return lambda t: 1000.0 if t % period < period / 2 else 50.0


@pytest.mark.parametrize("gone", [0.0, 0.4, 7.0, 93.25, 5000.5])
def test_the_next_run_goes_on_with_the_rhythm_where_it_is_by_then(gone):
    rate, seen = _square(), LoadHistory()
    for i in range(480):
        seen.add(rate(i * 0.25 + 0.1), 0.25)
    assert seen.period == 20.0
    again = LoadHistory.recalled(json.loads(json.dumps(seen.snapshot())), gone)
    assert again.period == 20.0
    now = 120.0 + gone
    for second in range(1, 40):
        at = now + second
        if min(at % 10, (at + 0.5) % 10) > 1.2 and at % 10 < 8.3:  # bins of a second do not know the edges
            assert again.foretold(second, second + 0.5) == pytest.approx(rate(at + 0.2))


def test_without_a_rhythm_the_next_run_begins_with_nothing():
    seen, order = LoadHistory(), random.Random(1)
    for _ in range(400):
        seen.add(order.uniform(10, 1000), 0.25)
    again = LoadHistory.recalled(seen.snapshot(), 30.0)
    assert again.period is None
    assert not any(each.bins for each in again.resolutions)


def test_several_resolutions_are_recalled():
    """A rhythm of 400 s is not in the finest bins, which hold twelve minutes; it is in the next ones."""
    rate, seen = _square(400.0), LoadHistory()
    for i in range(250):
        seen.add(rate(i * 4.0 + 0.5), 4.0)
    again = LoadHistory.recalled(seen.snapshot(), 1000.0)
    assert again.resolutions[0].period is None
    assert again.period == seen.period == pytest.approx(400.0, abs=4)
    assert len(again.resolutions) == len(seen.resolutions)
    now = 2000.0
    for second in (20, 60, 140, 260, 320):
        assert again.foretold(second, second + 1.0) == pytest.approx(rate(now + second), rel=0.01)
    for i in range(50):
        again.add(rate(now + i * 4.0 + 0.5), 4.0)
    assert again.period == pytest.approx(400.0, abs=4)


@settings(max_examples=20)
@given(st.floats(0, 1e7), st.integers(0, 150))
def test_what_is_recalled_stays_bounded_and_can_be_kept_again(gone, windows):
    seen = LoadHistory()
    for i in range(windows):
        seen.add(_square()(i), 1.0)
    again = LoadHistory.recalled(seen.snapshot(), gone)
    assert all(len(each.bins) <= 720 for each in again.resolutions)
    again.add(100.0, 1.0)
    assert LoadHistory.recalled(again.snapshot(), 0.0).period == again.period


@pytest.mark.parametrize(
    "snapshot",
    [
        {},
        {"bin_seconds": 1.0, "resolutions": []},
        {"bin_seconds": 1.0, "resolutions": [{}]},
        {"bin_seconds": "x", "resolutions": [1]},
    ],
)
def test_another_thing_is_no_history(snapshot):
    with pytest.raises((KeyError, TypeError, ValueError)):
        LoadHistory.recalled(snapshot, 0.0)


def test_idle_times_are_recalled():
    before = _lived(3.0)
    idle = IdleTimes(5.0)
    idle.recall(json.loads(json.dumps(before.snapshot())))
    assert idle.patience(2) == before.patience(2) != IdleTimes(5.0).patience(2)


def test_a_rhythm_of_an_earlier_run_that_the_load_leaves_is_foretold_no_more():
    """One of half an hour and more, which the finer resolutions know nothing of: they begin anew, and are full after twelve minutes."""
    seen = history(lambda t: 600 + 500 * math.sin(2 * math.pi * t / 2000), 6000, window=1.0)
    recalled = LoadHistory.recalled(seen.snapshot(), 0.0)
    assert recalled.period == pytest.approx(2000, rel=0.02)
    for _ in range(120):
        recalled.add(0.0, 1.0)
    assert recalled.foretold(0, 1) == pytest.approx(0.0, abs=1.0)
