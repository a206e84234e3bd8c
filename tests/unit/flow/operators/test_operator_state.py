"""The state of an operator: each part of it that there may be, as it stands in checkpoints of earlier versions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.errors import FrameError, StateError
from esault.flow.handover.state_sender import Busy
from esault.flow.operators.broadcast_copies import BroadcastCopies
from esault.flow.operators.operator_state import OperatorState
from esault.flow.watermark.key_timers import KeyTimers
from esault.flow.watermark.levels import Levels
from esault.payload.codec import Codec
from esault.topology.broadcast_state import BroadcastState

CODEC = Codec()
#: {"n": 3} with the timer "end" at 7.5 by event time, and the watermark 5.0 with {"rule": 1}
WITH_TIMER = b"\xc1T\x01\x00\x00\x00\x15\x91\x93\xa3end\xcb@\x1e\x00\x00\x00\x00\x00\x00\xa5event\x81\xa1n\x03"


class ByKey(dict):
    """Packed states by key."""

    names = in_memory = dict.copy
    take_state, peek_state, put_state = dict.pop, dict.get, dict.__setitem__

    def on_disk(self):
        return iter(())

    def reload(self, keys):
        return keys


def state_with(**parts):
    plan = SimpleNamespace(name="u", factory=None, batch=False)
    return OperatorState(plan, CODEC, ByKey(), lambda call, what: call(), **parts)


def test_timers_stand_before_the_state_of_their_key():
    timers = KeyTimers()
    state = state_with(timers=timers)
    state.install_state("k", WITH_TIMER)
    assert timers.of("k") == (("end", 7.5, "event"),)
    assert state.peek("k") == WITH_TIMER
    state.reload(["k"])
    assert state.remove_state("k") == WITH_TIMER
    assert not timers and state.peek("k") is None
    with pytest.raises(StateError, match="unit 'u': the state cannot be restored"):
        state.install_state("k", b"\xc1T\x02")


def test_under_no_key_stand_time_and_broadcast_state():
    def made():
        broadcast, levels = BroadcastState(), Levels()
        return broadcast, levels, state_with(levels=levels, broadcast=BroadcastCopies("u", CODEC, broadcast))

    broadcast, levels, state = made()
    state.install_state(None, CODEC.pack((CODEC.pack({"rule": 1}), CODEC.pack(5.0))))
    assert (dict(broadcast), levels.own) == ({"rule": 1}, 5.0)
    assert state.saved_names() == [None]
    other_broadcast, other_levels, other = made()
    other.install_state(None, state.peek(None))
    assert (dict(other_broadcast), other_levels.own) == ({"rule": 1}, 5.0)
    state.leaving = True
    assert CODEC.unpack(state.peek(None)) == (None, CODEC.pack(5.0))


def test_time_goes_with_ranges_where_it_is_to():
    levels, others = Levels(), Levels()
    levels.own = 5.0
    assert state_with(levels=levels).ring_state([(0, 9)]) is None
    said = state_with(levels=levels, levels_move=True).ring_state([(0, 9)])
    state = state_with(levels=others, levels_move=True)
    state.install_ring_state(said)
    assert others.others == [(0, 9, 5.0)]
    with pytest.raises(FrameError, match="ranges and times"):
        state.install_ring_state(((0, 9, "soon"),))


def test_what_a_call_may_change_does_not_go():
    state = state_with()
    state.install_state("k", b"\x80")
    state.busy = "k".__eq__
    with pytest.raises(Busy):
        state.remove_state("k")
    state.busy = None
    assert state.remove_state("k") == b"\x80"
