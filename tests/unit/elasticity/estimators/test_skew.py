"""Load that lies unevenly: mended where other ranges can, and left where keys are too few."""

from __future__ import annotations

from dataclasses import replace

import pytest
from elasticity_views import KeyLoad, sample, view

from esault.elasticity.estimators.skew import Skew
from esault.routing.ring import RING
from esault.routing.table import OutputTable

HALF = RING // 2
SERVICE = 0.01


def places(low, many):
    """So many places in a half of the ring, each as often as makes 120 points."""
    return tuple(sorted([low + (i + 1) * HALF // (many + 1) for i in range(many)] * (120 // many)))


def uneven(keys_left, keys_right, share):
    """Two sub-units, of which the first has that share of the load."""
    ranges = [tuple(OutputTable.even([1, 2]).ranges(i)) for i in (1, 2)]
    loads = [KeyLoad(places(0, keys_left), (), 20_000), KeyLoad(places(HALF, keys_right), (), 20_000)]
    return [
        sample(i + 1, arrivals=100.0 * part, load_share=part, ranges=ranges[i], key_load=loads[i])
        for i, part in enumerate((share, 1 - share))
    ]


def asked(samples, rate=160.0, seconds=4.0, full=None):
    skew, found = Skew(0.92, 2.0), []
    for i in range(int(seconds / 0.25)):
        now = 100 + 0.25 * i
        found.append(skew.share_anew(view(now, samples).unit, now, rate, SERVICE, full))
    return [(0.25 * i, action.n) for i, action in enumerate(found) if action]


def test_who_has_too_much_for_a_while_is_relieved_without_more_sub_units():
    assert asked(uneven(60, 60, 0.6))[0] == (2.0, 2)


@pytest.mark.parametrize(
    ("rate", "share"),
    [
        pytest.param(160.0, 0.56, id="hardly uneven"),
        pytest.param(140.0, 0.6, id="the heaviest has time left"),
    ],
)
def test_what_is_even_enough_or_not_full_is_left(rate, share):
    assert not asked(uneven(60, 60, share), rate)


def test_where_probes_are_late_less_is_too_much():
    assert asked(uneven(60, 60, 0.6), rate=140.0, full=0.8)[0] == (2.0, 2)


def test_keys_that_no_cut_divides_better_are_left():
    assert not asked(uneven(3, 2, 0.6))  # five equal keys, three here and two there


def test_nothing_is_said_before_shares_are_known():
    samples = [
        sample(i, arrivals=a, ranges=tuple(OutputTable.even([1, 2]).ranges(i))) for i, a in ((1, 90.0), (2, 9.0))
    ]
    assert not asked(samples)


def test_a_key_with_too_much_to_do_is_told_of_once_it_lasts():
    heavy = KeyLoad(places(0, 10), (("'a'", HALF, 0.9),), 20_000)
    busy, calm = (
        [sample(1, arrivals=rate, ranges=tuple(OutputTable.even([1]).ranges(1)), key_load=heavy)]
        for rate in (249.0, 35.0)
    )
    skew = Skew(0.92, 2.0)

    def told(samples, since, until):
        return [t for t in range(since, until) if skew.heavy_key(view(t, samples).unit, SERVICE, float(t))]

    assert told(busy, 0, 8) == []  # what had piled up behind a throttle
    assert told(calm, 8, 20) == []
    assert told(busy, 20, 60) == [30]


def test_calls_of_one_key_follow_one_another_however_many_are_open():
    """A hundred at a time, of a second each, are 10 ms a tuple; of one key it is one a second."""
    heavy = KeyLoad(places(0, 10), (("'a'", HALF, 0.9),), 20_000)
    samples = [sample(1, arrivals=4.0, ranges=tuple(OutputTable.even([1]).ranges(1)), key_load=heavy)]
    skew, said = Skew(0.92, 2.0), []
    for now in range(20):
        unit = view(now, samples).unit
        said.append(skew.heavy_key(replace(unit, plan=replace(unit.plan, concurrency=100)), SERVICE, float(now)))
    (advice,) = [each.reason for each in said if each]
    assert "key 'a' alone brings 4 tuples/s, and one sub-unit can process 1/s" in advice
