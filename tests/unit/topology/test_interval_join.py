"""Pairs of tuples whose times are near each other, compared with all pairs of a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.topology.interval_join import IntervalJoin
from esault.topology.join import LEFT, RIGHT
from tests.unit.topology.operators.recorded import recorded

rows = st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=14)
bounds = st.tuples(st.integers(-3, 5), st.integers(-3, 5)).filter(lambda b: -b[0] <= b[1])
kinds = st.sampled_from(["inner", "left", "right", "outer"])


def come(bolt, rows, watermarks=None, first=0):
    for number, (left, at) in enumerate(rows, first):
        assert bolt.take(LEFT if left else RIGHT, (number, at), float(at), float("-inf"))
        if watermarks is not None:
            bolt.advance(watermarks[number])


def near(left, right, within):
    return left[1] - within[0] <= right[1] <= left[1] + within[1]


def expected(rows, within, kind, keep):
    lefts = [(n, at) for n, (left, at) in enumerate(rows) if left]
    rights = [(n, at) for n, (left, at) in enumerate(rows) if not left]
    pairs = [(one, two) for one in lefts for two in rights if near(one, two, within)]
    if keep != "all":
        side = min if keep == "first" else max
        pairs = [
            (one, side((two for a, two in pairs if a == one), key=lambda row: (row[1], row[0])))
            for one in lefts
            if any(a == one for a, _ in pairs)
        ]
    if kind in ("left", "outer"):
        pairs += [(one, None) for one in lefts if not any(a == one for a, _ in pairs)]
    return pairs


def key(pair):
    return tuple(row or (-1, -1) for row in pair)


@given(rows, bounds, st.sampled_from(["inner", "left"]), st.sampled_from(["all", "first", "last"]))
def test_the_pairs_are_those_of_all_with_all(rows, within, kind, keep):
    bolt = recorded(IntervalJoin, *within, kind, keep)
    come(bolt, rows)
    bolt.advance(float("inf"))
    assert sorted(bolt.values(), key=key) == sorted(expected(rows, within, kind, keep), key=key)
    assert not bolt.needed and bolt.due == float("inf")


@given(rows, bounds)
def test_outer_tells_each_that_had_no_partner_once(rows, within):
    bolt = recorded(IntervalJoin, *within, "outer", "all")
    come(bolt, rows)
    bolt.advance(float("inf"))
    found = bolt.values()
    pairs = [pair for pair in found if None not in pair]
    assert sorted(pairs) == sorted(expected(rows, within, "inner", "all"))
    for side in (0, 1):
        alone = [pair[side] for pair in found if pair[1 - side] is None]
        paired = {pair[side] for pair in pairs}
        mine = {(n, at) for n, (left, at) in enumerate(rows) if left is (side == 0)}
        assert len(alone) == len(set(alone)) and set(alone) == mine - paired


@given(rows, bounds, kinds, st.sampled_from(["all", "first", "last"]), st.integers(0, 14))
def test_state_goes_to_another_object_and_time_may_pass_between(rows, within, kind, keep, cut):
    rows.sort(key=lambda row: row[1])
    whole = recorded(IntervalJoin, *within, kind, keep)
    come(whole, rows)
    whole.advance(float("inf"))
    one, two = recorded(IntervalJoin, *within, kind, keep), recorded(IntervalJoin, *within, kind, keep)
    watermarks = [float(at) for _, at in rows]
    come(one, rows[:cut], watermarks)
    two.restore(*one.state())
    come(two, rows[cut:], watermarks, first=cut if cut < len(rows) else len(rows))
    two.advance(float("inf"))
    assert sorted(one.values() + two.values(), key=key) == sorted(whole.values(), key=key)


@pytest.mark.parametrize("stream", [LEFT, RIGHT])
def test_what_comes_behind_the_watermark_is_late(stream):
    bolt = recorded(IntervalJoin, 1, 1, "outer", "all")
    assert not bolt.take(stream, "late", 4.0, 5.0) and bolt.take(stream, "on time", 5.0, 5.0)
    bolt.advance(float("inf"))
    assert [[each for each in pair if each] for pair in bolt.values()] == [["on time"]]
