"""What `esault check` says of states before a run is started."""

from __future__ import annotations

import threading

import pytest

from esault import BatchBolt, Bolt, Topology, by_key, shuffle
from esault.runtime.session.new_state import refused_states
from esault.sources import Items


class Scaled(Bolt):
    def __init__(self, scale=None):
        self.scale = scale

    def process(self, key, value):
        self.emit(key, self.scale(value))


class Locked(Bolt):
    def __init__(self):
        self.lock = threading.Lock()

    def process(self, key, value):
        self.emit(key, value)


class Asks(Bolt):
    def __getstate__(self):
        return {"unit": self.context.unit}

    def process(self, key, value):
        self.emit(key, value)


class ForgetsHow(Bolt):
    def __getstate__(self):
        return 3

    def process(self, key, value):
        self.emit(key, value)


class Fails(Bolt):
    def __getstate__(self):
        raise ValueError("no")

    def process(self, key, value):
        self.emit(key, value)


class Counts(Bolt):
    made = 0

    def __init__(self):
        Counts.made += 1
        if Counts.made > 1:
            raise OSError("one only")

    def process(self, key, value):
        self.emit(key, value)


class Batches(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch(rows)


def said(factory, grouping=by_key):
    t = Topology("t")
    t.spout("in", Items([("a", 1)])).bolt("b", factory, grouping=grouping()).map(abs)
    return refused_states(t.plan())


@pytest.mark.parametrize("grouping", [by_key, shuffle])
def test_an_attribute_that_cannot_travel_is_named(grouping):
    def half(value):
        return value / 2

    (why,) = said(lambda: Scaled(half), grouping)
    assert "unit 'b': attribute 'scale' of Scaled cannot be saved or moved" in why
    assert "define it at the top of the file" in why


class Windowed(Bolt):
    def __init__(self, window):
        self.window = window

    def process(self, key, value):
        self.emit(key, value)


def test_an_attribute_that_is_called_window_is_looked_at_as_others_are():
    (why,) = said(lambda: Windowed(object()))
    assert "attribute 'window' of Windowed cannot be saved or moved" in why
    assert said(lambda: Windowed([1])) == []


@pytest.mark.parametrize("factory", [Scaled, lambda: Scaled(abs), Locked, Asks, Batches])
def test_what_can_travel_is_no_matter(factory):
    assert said(factory) == []


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        (ForgetsHow, "ForgetsHow.__getstate__ returns a int, and nothing puts that back"),
        (Fails, "the state of a new object cannot be saved: ValueError: no"),
        (Counts, "its constructor raised OSError: one only"),
    ],
)
def test_what_a_run_would_end_with_is_said(factory, why):
    (found,) = said(factory)
    assert why in found
