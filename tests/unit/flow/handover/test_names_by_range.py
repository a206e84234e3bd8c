"""The names that subscales to come will move: all that are there, and none that belongs to another range."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from esault.flow.handover.divide import MovedKeys
from esault.flow.handover.names_by_range import NamesByRange
from esault.routing.ring import INT_MAX, RING, canonical, position
from esault.routing.table import Move
from esault.routing.table_change import subscales

keys = st.one_of(st.text(max_size=3), st.integers(-3, 3), st.booleans(), st.binary(max_size=2))
UPPER = RING // 2


@example(there=["a"], made=[(0, letter) for letter in "bcdefghi"], many=2)
@given(
    there=st.lists(keys, max_size=60),
    made=st.lists(st.tuples(st.integers(0, 8), keys), max_size=30),
    many=st.integers(1, 9),
)
def test_each_subscale_finds_the_names_of_its_range_though_others_are_made_meanwhile(there, made, many):
    """`made`: before the look ends (0), or before the subscale of this number."""
    parts = subscales([Move(UPPER, INT_MAX, 1, 2)], many)
    ranges = [[(move.low, move.high) for move in moves] for moves in parts]
    index = NamesByRange(tuple((low, high, 2) for part in ranges[1:] for low, high in part))
    of = lambda part: MovedKeys([(low, high, 2) for low, high in part])
    here = {canonical(key) for key in there}
    index.made.extend(canonical(key) for at, key in made if at == 0)
    looked = index.look(iter(list(here)), of(ranges[0]))
    # One that was on a disk is brought into memory before the look comes to it, and is found among those that were made alone.
    here |= {canonical(key) for at, key in made if at == 0}
    first = {name for new, name in looked if new}
    gone = {name for name in here if ranges[0][0][0] <= position(_key(name)) <= ranges[0][0][1]}
    assert first == gone
    for number, part in enumerate(ranges[1:], 1):
        new = {canonical(key) for at, key in made if at == number}
        here |= new
        index.made.extend(new)
        assert index.knows(part)
        found = {name for owner, name in index.take(part, of(part)) if owner}
        low, high = part[0]
        assert found == {name for name in here if low <= position(_key(name)) <= high}
        assert not index.knows(part)
    assert not index


def _key(name):
    return getattr(name, "key", name)
