"""State of many objects in columns: what each object's attributes say, or none where that could be another state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Bolt
from esault.payload import state_columns
from esault.payload.codec import Codec
from esault.payload.packed_rows import Rows
from esault.payload.state_columns import get_columns


class Two(Bolt):
    def __init__(self):
        self.one = None
        self.two = 0

    def process(self, key, value):
        self.one = self.two = self.three = value


class One(Bolt):
    def __init__(self):
        self.one = None

    def process(self, key, value):
        self.one = value


def made(kind, number, **attributes):
    thing = kind()
    thing.key = number
    for name, value in attributes.items():
        setattr(thing, name, value)
    return thing


def states(things):
    """What would be read; None where there are no columns."""
    found = get_columns(things)
    if found is None:
        return None
    names, columns = found
    codec = Codec()
    read = [codec.unpack(codec.pack(Rows(column))) for column in columns]
    return [dict(zip(names, row)) for row in zip(*read)]


@pytest.fixture(params=["as here", "in dicts"], autouse=True)
def _kept(request, monkeypatch):
    if request.param == "in dicts":
        monkeypatch.setattr(state_columns, "IN_A_ROW", False)


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary())
FLAT = st.one_of(
    SCALARS, st.tuples(SCALARS, SCALARS), st.lists(SCALARS, max_size=3), st.dictionaries(st.text(), SCALARS)
)


@given(st.lists(st.tuples(FLAT, SCALARS), min_size=1, max_size=50))
def test_they_are_what_each_object_has(values):
    things = [made(Two, number, one=one, two=two) for number, (one, two) in enumerate(values)]
    read = states(things)
    if read is not None:
        assert [list(map(repr, each.items())) for each in read] == [
            list(map(repr, {name: vars(thing)[name] for name in each}.items())) for each, thing in zip(read, things)
        ]
        assert all(each.keys() == vars(thing).keys() for each, thing in zip(read, things))


@pytest.mark.parametrize("value", [1, "text", (1, "a"), [1, (2, 3)], {"a": (1, 2), 3: None}, {1, 2}, bytearray(b"a")])
def test_what_is_pythons_own_goes_in_columns(value):
    things = [made(Two, number, one=value, two=number) for number in range(5)]
    assert states(things) == [{"one": value, "two": number} for number in range(5)]


def test_objects_share_nothing_that_they_shared_before():
    both = [1]
    first, second = states([made(Two, number, one=both) for number in range(2)])
    assert first["one"] == second["one"] and first["one"] is not second["one"]


@pytest.mark.parametrize("value", [[[1]], ([1],), {"a": [1]}, {(1, (2,)): 1}, object(), 1j, type("Int", (int,), {})(3)])
def test_what_is_deeper_or_an_object_is_left_to_be_packed_by_itself(value):
    assert get_columns([made(Two, number, one=value) for number in range(3)]) is None


def test_what_stands_twice_in_an_object_and_can_change_is_left():
    twice = [1]
    assert get_columns([made(Two, number, one=twice, two=twice) for number in range(3)]) is None


@pytest.mark.parametrize("kind", [One, Two])
@pytest.mark.parametrize("more", [{"three": 1}, {"stranger": 1}, {"window": "a window"}])
def test_objects_that_have_other_attributes_are_left_or_told_apart(kind, more):
    for place in range(3):
        things = [made(kind, number, **(more if number == place else {})) for number in range(3)]
        read = states(things)
        assert read is None or read == [vars(thing) for thing in things]
        assert "window" in more or read is None


def test_an_object_without_attributes_is_left():
    class Nothing(Bolt):
        def process(self, key, value):
            pass

    assert get_columns([made(Nothing, 1), made(Nothing, 2)]) is None


def test_an_object_whose_dict_was_looked_at_is_read_all_the_same_or_left():
    things = [made(One, number, one=number) for number in range(3)]
    vars(things[1])
    assert states(things) in (None, [{"one": number} for number in range(3)])
    things = [made(Two, number, two=number) for number in range(3)]
    vars(things[1])
    assert states(things) in (None, [{"one": None, "two": number} for number in range(3)])
