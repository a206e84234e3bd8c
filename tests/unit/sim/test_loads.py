"""Load shapes: the papers' numbers."""

from __future__ import annotations

import itertools
import math

import pytest

from esault import UsageError
from esault.sim.loads import (
    LOADS,
    WORKERS,
    Day,
    Drawn,
    Lines,
    Noisy,
    Part,
    Ramp,
    Steps,
    Telegraph,
    Week,
    esault_steps,
    levels,
    load,
    migration,
    scaled,
)


@pytest.mark.parametrize(
    ("t", "rate"),
    [
        (0, 520),
        (9.9, 520),
        (10, 1020),
        (20, 1520),
        (30, 2020),
        (99.9, 2020),
        (100, 1520),
        (120, 1020),
        (140, 520),
        (160, 20),
        (249.9, 20),
        (250, 520),
    ],
)
def test_esault_reading_b(t, rate):
    assert LOADS["esault"].rate(t) == rate


@pytest.mark.parametrize(
    ("t", "rate"),
    [(0, 50e3), (10, 100e3), (20, 150e3), (99.9, 150e3), (100, 100e3), (120, 50e3), (140, 0), (229.9, 0), (230, 50e3)],
)
def test_esault_reading_a(t, rate):
    assert esault_steps(0.0, 50_000.0, 3).rate(t) == rate


@pytest.mark.parametrize(
    ("t", "rate"),
    [
        (0, 4),
        (299, 4),
        (300, 4),
        (450, 4 * 35**0.5),
        (600, 140),
        (1499, 140),
        (1500, 100),
        (1620, 60),
        (1740, 30),
        (1860, 4),
        (2219, 4),
    ],
)
def test_autoscale(t, rate):
    assert Ramp().rate(t) == pytest.approx(rate)


def test_autoscale_is_irregular_by_a_fifth_each_second():
    noisy, plain = LOADS["autoscale"], Ramp()
    assert noisy.seconds == plain.seconds == 2220
    factors = [noisy.rate(t + 0.5) / plain.rate(t + 0.5) for t in range(2220)]
    assert 0.8 <= min(factors) < 0.81 < 1.19 < max(factors) <= 1.2
    assert noisy.rate(700.1) == noisy.rate(700.9) != noisy.rate(701.1)
    assert Noisy(plain, seed=2).rate(700) != noisy.rate(700)


def test_craa():
    assert [LOADS["craa_step"].rate(5 * k + 2.5) for k in range(7)] == [1000, 2000, 5000, 6000, 5000, 2000, 1000]
    jitter = LOADS["craa_jitter"]
    assert [jitter.rate(t) for t in (0, 49, 50, 54, 55, 154, 155, 159, 160, 210)] == (
        [3000, 3000, 6000, 6000, 3000, 3000, 1000, 1000, 3000, 6000]
    )
    sine = LOADS["craa_sine"]
    assert [round(sine.rate(t)) for t in (0, 125, 250, 375, 500)] == [5000, 7500, 5000, 2500, 5000]
    assert sine.rate(62.5) == pytest.approx(5000 + 2500 * math.sqrt(0.5))
    assert [LOADS["craa_stage"].rate(t) for t in (0, 249, 250, 349, 350, 499, 500)] == (
        [5000, 5000, 10000, 10000, 2000, 2000, 5000]
    )


def test_craa_random_is_of_its_seed():
    drawn = LOADS["craa_random"]
    rates = [drawn.rate(5 * k) for k in range(120)]
    assert 1000 <= min(rates) < 3000 < 48_000 < max(rates) <= 50_000
    assert drawn.peak == max(rates)
    assert drawn.rate(4.9) == rates[0]
    assert rates == [Drawn().rate(5 * k) for k in range(120)] != [Drawn(seed=2).rate(5 * k) for k in range(120)]


def test_migration_of_all_workers():
    # the last row of the table: all workers together, one copy
    total = LOADS["migration"]
    assert [total.rate(60 * i + 30) for i in range(10)] == (
        [4500, 5500, 3500, 3500, 3500, 3000, 4500, 3500, 4500, 3000]
    )
    assert total.rate(65) == 5000  # half of the way
    assert total.rate(0) == 1000  # all low before


def test_migration_by_worker():
    # the table's column of events, if steps were instantaneous
    events = [210, 180, 210, 180, 150, 180, 240, 120, 210, 120, 150, 240, 150]
    for worker, expected in enumerate(events, 1):
        instant = migration(worker, ramp=0.0)
        assert sum(60 * instant.rate(60 * i + 30) for i in range(10)) == 1000 * expected, worker
    assert sum(migration(w).rate(95) for w in range(1, len(WORKERS) + 1)) == migration().rate(95)
    with pytest.raises(UsageError, match="there is no worker 14: say 1 to 13, or 0"):
        migration(14)


def test_orientstream():
    assert [levels(0.5).rate(t) for t in (0, 0.4, 0.5, 1.0, 1.4, 1.5)] == [2000, 2000, 8000, 4000, 4000, 2000]


def test_a_day_is_lowest_before_dawn_and_highest_in_the_evening():
    day = Day()
    rates = [day.rate(60.0 * i) for i in range(1440)]
    assert max(rates) == 1000
    assert min(rates) == 100
    assert 2 < rates.index(100) / 60 < 4
    assert 18 < rates.index(1000) / 60 < 20
    dawn, evening = rates.index(100), rates.index(1000)
    assert all(b > a for a, b in zip(rates[dawn:evening], rates[dawn + 1 : evening]))
    assert rates[0] == pytest.approx(day.rate(86_400))


@pytest.mark.parametrize("name", LOADS)
def test_every_load_repeats_stays_below_its_peak_and_is_never_negative(name):
    shape = load(name)
    for i in range(2000):
        t = shape.seconds * (i + 0.5) / 2000
        assert 0 <= shape.rate(t) <= shape.peak * (1 + 1e-12), t
        assert shape.rate(t) == pytest.approx(shape.rate(t + shape.seconds)), t


@pytest.mark.parametrize("name", LOADS)
def test_every_load_can_be_fitted(name):
    shape, fitted = load(name), scaled(load(name), peak=50.0, duration=120.0)
    assert fitted.seconds == pytest.approx(120.0)
    assert fitted.peak == pytest.approx(50.0)
    for i in range(100):
        share = (i + 0.37) / 100  # not where a step may be
        assert fitted.rate(120 * share) == pytest.approx(shape.rate(shape.seconds * share) * 50 / shape.peak)


def test_scaling_leaves_what_is_not_said():
    assert scaled(Ramp(), peak=70.0).seconds == 2220
    assert scaled(Ramp(), duration=222.0).rate(70.0) == 140


def test_a_part_of_a_load():
    part = Part(LOADS["esault"], 90.0, 40.0)
    assert [part.rate(t) for t in (0, 10, 30, 39, 40)] == [2020, 1520, 1020, 1020, 2020]
    assert part.peak == 2020
    assert Part(LOADS["esault"], 160.0, 50.0).peak == 20
    hill = Lines((0.0, 10.0, 20.0), (0.0, 100.0, 0.0), 30.0)
    assert [Part(hill, 5.0, 10.0).peak, Part(hill, 0.0, 5.0).peak, Part(hill, 25.0, 20.0).peak] == pytest.approx(
        [100, 50, 100]
    )
    assert Part(LOADS["craa_sine"], 0.0, 250.0).peak == pytest.approx(7500)


def test_lines_and_steps():
    assert [Lines((0, 10, 20), (0, 100, 50), 30).rate(t) for t in (0, 5, 10, 15, 20, 29, 35)] == [
        0,
        50,
        100,
        75,
        50,
        50,
        50,
    ]
    assert [Steps((0, 10), (1, 2), 20).rate(t) for t in (0, 9.9, 10, 19, 20)] == [1, 1, 2, 2, 1]


def test_what_cannot_be():
    with pytest.raises(UsageError, match="there is no load 'sinus'; there are: constant, esault, autoscale"):
        load("sinus")
    with pytest.raises(UsageError, match="peak=0 must be a number above 0"):
        scaled(Ramp(), peak=0)
    with pytest.raises(UsageError, match="duration=-1 must be"):
        scaled(Ramp(), duration=-1)
    with pytest.raises(UsageError, match="0 all the time"):
        scaled(Steps((0.0,), (0.0,), 1.0), peak=1.0)


def test_week_ends_are_quieter_and_the_next_week_is_the_same():
    week = Week(low=100.0, high=1000.0, week_end=0.4, seconds=700.0)
    evening = max(range(100), key=week.rate)
    assert week.rate(evening) == pytest.approx(1000, rel=0.01)
    assert [week.rate(evening + 100 * day) / week.rate(evening) for day in range(9)] == pytest.approx(
        [1, 1, 1, 1, 1, 0.4, 0.4, 1, 1]
    )


def test_a_telegraph_is_low_and_high_in_turn_for_times_with_a_heavy_tail():
    load = Telegraph(low=1.0, high=2.0, least=4.0, alpha=1.4, seconds=4000.0)
    levels = [load.rate(t / 10) for t in range(40_000)]
    lengths = [sum(1 for _ in group) / 10 for _, group in itertools.groupby(levels)]
    assert levels[0] == 1.0
    assert set(levels) == {1.0, 2.0}
    assert min(lengths[:-1]) >= 3.9
    median, longest = sorted(lengths)[len(lengths) // 2], max(lengths)
    assert median < 4 * 2 ** (1 / 1.4) + 2
    assert longest > 10 * median
    assert Telegraph(seed=2).rate(50.0) in (100.0, 1000.0)
    assert [Telegraph(seed=2).rate(t) for t in range(600)] != [Telegraph(seed=1).rate(t) for t in range(600)]
