"""Broadcast state through bytes, and which of it cannot be."""

from __future__ import annotations

import pytest

from esault.errors import StateError
from esault.flow.operators.broadcast_copies import BroadcastCopies
from esault.payload.codec import Codec
from esault.topology.broadcast_state import BroadcastState

CODEC = Codec()


def copies(**items):
    state = BroadcastState()
    state.replace(items)
    return BroadcastCopies("rules", CODEC, state), state


def test_a_copy_replaces_what_another_sub_unit_has():
    one, _ = copies(a=1, b={"x"})
    other, state = copies(b=2, c=3)
    other.put(one.copy())
    assert dict(state) == {"a": 1, "b": {"x"}}


def test_of_a_checkpoint_the_first_counts_since_all_had_the_same():
    one, _ = copies(a=1)
    other, state = copies()
    other.restore(one.copy())
    state.replace({"a": 2})  # tuples came meanwhile
    other.restore(one.copy())
    assert dict(state) == {"a": 2}


def test_what_cannot_travel_is_named():
    for items in ({"work": lambda: None}, {"a": 1, "work": [lambda: None]}):
        with pytest.raises(StateError, match=r"unit 'rules': broadcast_state\['work'\] cannot be saved or moved"):
            copies(**items)[0].copy()


@pytest.mark.parametrize("bad", [b"\xc1", CODEC.pack_value(3), CODEC.pack_value([1, 2])])
def test_what_is_no_broadcast_state_is_refused(bad):
    with pytest.raises(StateError, match="unit 'rules': the broadcast state cannot be restored"):
        copies()[0].put(bad)
