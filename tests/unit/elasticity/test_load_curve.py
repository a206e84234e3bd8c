"""Sharing by observed load."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.load_curve import LoadCurve, shared
from esault.elasticity.view import Sample
from esault.messages.probe import KeyLoad
from esault.routing.ring import RING
from esault.routing.table import OutputTable


def uniform(table, points=128):
    """Samples as of a steady, even load."""
    samples = []
    for owner in table.owners():
        ranges = tuple(table.ranges(owner))
        width = sum(high - low + 1 for low, high in ranges)
        places = []
        for low, high in ranges:
            many = max(1, round(points * (high - low + 1) / width))
            places += [low + int((i + 0.5) * (high - low + 1) / many) for i in range(many)]
        rate = 1000 * width / RING
        samples.append(Sample(owner, ranges, arrivals=rate, key_load=KeyLoad(tuple(sorted(places)), (), 2048)))
    return samples


def loads(table, curve):
    return {o: sum(curve.load(*piece) for piece in table.ranges(o)) for o in table.owners()}


def test_six_share_like_six():
    table = OutputTable.even([1])
    for n in range(2, 7):
        curve = LoadCurve.of(uniform(table))
        table = shared(table, curve, table.owners(), [n])
        assert set(table.owners()) == set(range(1, n + 1))
    share = max(loads(table, LoadCurve.of(uniform(table))).values()) / 1000
    assert share < 1.1 / 6  # halving would leave a quarter


def test_a_new_owner_takes_its_part_and_nothing_else_moves():
    table = OutputTable.even([1, 2, 3, 4])
    curve = LoadCurve.of(uniform(table))
    after = shared(table, curve, [1, 2, 3, 4], [5])
    moved = table.moves_to(after)
    assert {m.new for m in moved} == {5}
    assert abs(sum(curve.load(m.low, m.high) for m in moved) / curve.total - 1 / 5) < 0.03


def test_those_who_leave_give_all_and_those_who_stay_give_nothing():
    table = OutputTable.even([1, 2, 3, 4])
    curve = LoadCurve.of(uniform(table))
    after = shared(table, curve, [1, 3], [])
    assert {m.old for m in table.moves_to(after)} == {2, 4}
    shares = loads(after, curve)
    assert abs(shares[1] - shares[3]) < 0.1 * curve.total


def test_a_heavy_key_gets_an_owner_of_its_own_and_is_never_cut():
    heavy = 1_000_000_000
    points = sorted([heavy] * 64 + [int((i + 0.5) * RING / 64) for i in range(64)])
    table = OutputTable.single(1)
    curve = LoadCurve.of([Sample(1, ((0, RING - 1),), arrivals=1000.0, key_load=KeyLoad(tuple(points), (), 2048))])
    after = shared(table, curve, [1], [2, 3])
    owner = after.owner(heavy)
    shares = loads(after, curve)
    assert shares[owner] >= 500
    assert max(load for o, load in shares.items() if o != owner) < 350


def test_where_nobody_sampled_keys_the_ring_is_shared():
    table = OutputTable.single(1)
    curve = LoadCurve.of([Sample(1, ((0, RING - 1),), arrivals=10.0)])
    after = shared(table, curve, [1], [2, 3, 4])
    widths = [sum(h - lo + 1 for lo, h in after.ranges(o)) for o in after.owners()]
    assert max(widths) < 1.2 * RING / 4


@given(
    st.lists(st.tuples(st.integers(0, RING - 1), st.floats(0, 100)), max_size=60),
    st.lists(st.integers(0, RING - 1), unique=True, max_size=12),
    st.data(),
)
def test_whatever_the_load_the_ring_is_tiled_and_everybody_owns_something(points, cuts, data):
    owners = list(range(1, len(cuts) + 2))
    table = OutputTable([(0, 1), *((c, o) for c, o in zip(sorted(set(cuts) - {0}), owners[1:]))])
    owners = table.owners()
    kept = sorted(data.draw(st.sets(st.sampled_from(owners))), key=owners.index)
    news = [100 + i for i in range(data.draw(st.integers(0 if kept else 1, 8)))]
    curve = LoadCurve(points)
    after = shared(table, curve, kept, news)
    after.check()
    assert set(after.owners()) == {*kept, *news}
    assert after.version == table.version


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(0.1, 10)), min_size=2, max_size=40), st.floats(0.1, 50))
def test_a_cut_is_inside_the_range_and_goes_through_no_key(points, upper):
    curve = LoadCurve(points)
    at = curve.cut(0, 1000, upper)
    if at is not None:
        assert 0 < at <= 1000
        assert curve.load(0, at - 1) > 0
        assert curve.load(at, 1000) > 0
        assert abs(curve.load(at, 1000) - upper) < upper
