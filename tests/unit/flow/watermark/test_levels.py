"""Up to which time windows were closed: of a key what its place came with, until the new owner has caught up."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from esault.flow.watermark.levels import Levels
from esault.routing.ring import RING, position

TOP = RING - 1
times = st.floats(-1e6, 1e6)
keys = st.text(max_size=3)
#: what came: ranges around places of these keys
ranges = st.tuples(st.integers(0, TOP), st.integers(0, TOP)).map(lambda r: (min(r), max(r)))
levels = st.lists(st.tuples(ranges, times).map(lambda r: (*r[0], r[1])), max_size=4)


def made(own, others):
    found = Levels()
    found.own = own
    found.merge(others)
    return found


@given(times, levels, keys)
def test_the_newest_that_has_the_place_holds(own, others, key):
    place = position(key)
    expected = next((level for low, high, level in others if low <= place <= high), own)
    assert made(own, others).of(key) == expected


#: of twenty places, which meet and cover one another
few = st.tuples(st.integers(0, 19), st.integers(0, 19), st.sampled_from([1.0, 2.0])).map(
    lambda each: (min(each[:2]), max(each[:2]), each[2])
)


@given(st.lists(st.lists(few, max_size=3), max_size=6))
def test_places_side_by_side_are_kept_as_one_where_that_says_the_same(came):
    found, newest_first = Levels(), []
    for some in came:
        found.merge(some)
        newest_first = [*some, *newest_first]
    for place in range(20):
        of = lambda levels, at=place: next((level for low, high, level in levels if low <= at <= high), None)
        assert of(found.others) == of(newest_first)


def test_the_ranges_of_a_change_in_subscales_are_no_more_than_its_moves():
    found = Levels()
    for n in range(128):
        found.merge([(1000 + 10 * n, 1009 + 10 * n, 5.0), (9000 - 10 * n, 9009 - 10 * n, 5.0)])
    assert sorted(found.others) == [(1000, 2279, 5.0), (7730, 9009, 5.0)]


@given(times, levels, ranges, keys, times)
def test_a_key_keeps_its_level_where_it_goes(own, others, moved, key, there):
    source, target = made(own, others), made(there, [])
    target.merge(source.cut([moved]))
    here = moved[0] <= position(key) <= moved[1]
    assert target.of(key) == (source.of(key) if here else there)


@given(times, levels, keys)
def test_a_checkpoint_brings_each_place_back(own, others, key):
    source, target = made(own, others), Levels()
    target.restore(source.saved(), [(0, TOP)])
    assert target.of(key) == source.of(key)
    assert target.own <= own


@given(st.lists(st.tuples(times, levels), min_size=1, max_size=3), keys)
def test_of_several_that_wrote_each_place_is_where_it_was(wrote, key):
    edges = [round(TOP / len(wrote) * i) for i in range(len(wrote))] + [TOP + 1]
    target = Levels()
    for (own, others), low, end in zip(wrote, edges, edges[1:]):
        target.restore(made(own, others).saved(), [(low, end - 1)])
    place = position(key)
    owner = next(i for i, end in enumerate(edges[1:]) if place < end)
    assert target.of(key) == made(*wrote[owner]).of(key)


def test_where_ranges_are_not_known_the_slowest_holds():
    target = Levels()
    target.restore(20.0, None)
    target.restore((10.0, ((0, TOP, 99.0),)), None)
    target.restore(15.0, None)
    assert target.own == 10.0 and target.others == []


def test_nothing_that_is_here_changes_nothing():
    target = Levels()
    target.restore(20.0, [])
    assert target.own == Levels().own
    target.restore(30.0, None)
    assert target.own == 30.0


def test_what_the_own_has_come_up_to_is_over():
    found = made(5.0, [(0, 9, 4.0), (10, 19, 5.0), (20, 29, 6.0), (30, 39, math.inf)])
    found.catch_up()
    assert found.others == [(20, 29, 6.0), (30, 39, math.inf)]
    assert found.saved() == (5.0, ((20, 29, 6.0), (30, 39, math.inf)))


def test_of_two_that_came_for_one_place_the_later_holds():
    found = made(5.0, [(0, TOP, 7.0)])
    found.merge([(0, TOP, 6.0)])
    assert found.of("a") == 6.0
