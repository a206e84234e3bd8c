"""A sample of where tuples fall on the ring."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from esault.messages.probe import HEAVIEST, POINTS, KeyLoad


@given(st.lists(st.integers(0, 40), max_size=3 * POINTS))
def test_its_points_divide_a_sample_into_equal_parts_and_its_heaviest_keys_come_first(places):
    load = KeyLoad.of(places, str)
    assert load.size == len(places)
    assert list(load.points) == sorted(load.points)
    assert len(load.points) == min(len(places), POINTS)
    counts = Counter(places)
    assert [share for _, _, share in load.heaviest] == [n / len(places) for _, n in counts.most_common(HEAVIEST)]
    assert all(name == str(place) and share == counts[place] / len(places) for name, place, share in load.heaviest)
    if len(places) <= POINTS:
        assert list(load.points) == sorted(places)
    else:
        part = len(places) / POINTS
        below = [sum(place < point for place in places) for point in load.points]
        assert all(n <= (i + 1) * part for i, n in enumerate(below))


def test_a_heavy_key_stands_repeatedly():
    load = KeyLoad.of([7] * 90 + list(range(10)), str)
    assert load.heaviest[0] == ("7", 7, 0.91)
    assert load.points.count(7) > 0.8 * len(load.points)
