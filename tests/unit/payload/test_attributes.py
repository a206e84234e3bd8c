"""State without a dict of its own: always what vars() says, and on CPython 3.11 and later without making that dict."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Bolt
from esault.flow.operators.derived_class import NO_WINDOW, derive
from esault.payload.attributes import IN_A_ROW, get_attributes, has_window, set_attributes


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        if value > 10:
            self.large = list(range(value))


class Copy(Bolt):
    """Its one attribute is its key."""

    def process(self, key, value):
        self.name = key


class Default(Bolt):
    total = 0

    def process(self, key, value):
        self.total = value
        self.other = value


class Held(Bolt):
    def process(self, key, value):
        self.held = {"a": value}


class Guessing(Bolt):
    def process(self, key, value):
        self.known = value

    def __getattr__(self, name):
        return 7


class Watched(Bolt):
    def __init__(self):
        self._total = 0

    @property
    def total(self):
        return self._total

    @total.setter
    def total(self, value):
        self._total = (value, value)


KINDS = (Count, Copy, Default, Held, Guessing, Watched)
values = st.one_of(
    st.integers(0, 20), st.text(max_size=3), st.dictionaries(st.text(max_size=2), st.integers(), max_size=2)
)


def _made(kind, key):
    made = kind()
    made.key = key
    return made


@given(
    st.sampled_from(KINDS),
    st.one_of(st.text(max_size=3), st.integers(0, 300)),
    st.lists(st.tuples(st.sampled_from(["total", "large", "name", "known", "stranger", "held"]), values), max_size=6),
    st.sampled_from(["none", "before", "after"]),
)
def test_it_is_what_vars_says(kind, key, writes, looked):
    made = _made(kind, key)
    if looked == "before":
        vars(made)
    for name, value in writes:
        setattr(made, name, value)
    if writes and writes[0][1] == 3:
        made.window = "a window"
    if looked == "after":
        vars(made)
    got = get_attributes(made)
    assert got == vars(made)
    assert all(got[name] is value for name, value in vars(made).items())
    assert get_attributes(made) == got


def test_an_object_with_a_window_and_a_dict_is_not_taken_for_another():
    class Two(Bolt):
        def process(self, key, value):
            self.one = self.two = value

    plain = _made(Two, "k")
    plain.process("k", 1)
    assert get_attributes(plain) == get_attributes(plain) == {"one": 1, "two": 1}
    made = _made(Two, "k")
    made.process("k", 2)
    made.stranger, made.window = 3, "a window"
    vars(made)
    assert get_attributes(made) == {"one": 2, "two": 2, "stranger": 3}


@pytest.mark.parametrize("attributes", [("one",), ("one", "two"), ("one", "two", "three")])
def test_an_object_with_a_window_is_taken_for_no_other(attributes):
    class Some(Bolt):
        def process(self, key, value):
            self.one = self.two = self.three = value

    windowed = _made(Some, "k")
    windowed.window = "a window"
    for name in attributes:
        setattr(windowed, name, name)
    for _ in range(2):
        assert get_attributes(windowed) == dict(zip(attributes, attributes))
        for more in ((), ("stranger",), ("stranger", "other")):
            for window in (False, True):
                for looked in (False, True):
                    made = _made(Some, "k")
                    if window:
                        made.window = "another"
                    for name in (*attributes, *more):
                        setattr(made, name, name)
                    if looked:
                        vars(made)
                    assert get_attributes(made) == {name: name for name in (*attributes, *more)}


def test_a_value_that_stands_twice_hides_no_other():
    made = _made(Copy, "k")
    vars(made)
    made.name = made.key
    made.stranger = 5
    assert get_attributes(made) == {"name": "k", "stranger": 5}
    made = _made(Default, "k")
    made.process("k", 0)
    assert get_attributes(made) == {"total": 0, "other": 0}


@pytest.mark.skipif(not IN_A_ROW, reason="there a dict costs an object little")
@pytest.mark.parametrize("window", [False, True])
@pytest.mark.parametrize("kind", [Count, Copy, Held])
def test_no_dict_is_made(kind, window):
    made = _made(kind, "k")
    if window:
        made.window = "a window"
    made.process("k", 20)
    before = len(gc.get_referents(made))
    state = get_attributes(made)
    assert get_attributes(made) == state
    assert len(gc.get_referents(made)) == before == len(state) + 2 + window
    assert not any(each == vars(made) for each in gc.get_referents(made)[:-1])
    fresh = _made(kind, "k")
    set_attributes(fresh, state)
    fresh.process("k", 20)
    assert len(gc.get_referents(fresh)) == before - window
    assert get_attributes(fresh).keys() == state.keys()


def test_setting_is_as_by_the_dict():
    made = _made(Watched, "k")
    set_attributes(made, {"_total": 4, "total": 9})
    assert vars(made) == {"_total": 4, "total": 9}
    assert made.total == 4  # the setter was not asked
    made = _made(Count, "k")
    set_attributes(made, {"total": 3, "stranger": 1})
    assert vars(made) == {"total": 3, "stranger": 1}


def test_classes_of_runs_that_are_over_are_let_go():
    refs = []
    for _ in range(500):
        cls = type("Own", (Count,), {"__slots__": ()})
        made = _made(cls, "k")
        get_attributes(made)
        refs.append(weakref.ref(cls))
    del cls, made
    gc.collect()
    assert sum(ref() is not None for ref in refs) < 300


def test_outside_windows_a_window_is_an_attribute_and_no_dict_is_made_for_it():
    class Mean(Bolt):
        def process(self, key, value):
            self.window = value

    made = derive(Mean, NO_WINDOW)()
    made.key = "k"
    assert not hasattr(made, "window")
    assert get_attributes(made) == {}
    made.process("k", 2000)
    before = len(gc.get_referents(made))
    assert not has_window(made)
    assert get_attributes(made) == get_attributes(made) == {"window": 2000}
    if IN_A_ROW:
        assert len(gc.get_referents(made)) == before
    windowed = Mean()
    windowed.key, windowed.window = "k", "a window"
    assert has_window(windowed)
    assert get_attributes(windowed) == {}
