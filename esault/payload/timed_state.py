"""The state of a key with its timers: what it was before there were timers, unless it has some; then it begins with a head that says which."""

from __future__ import annotations

import struct
from typing import Any

from esault.errors import FrameError
from esault.payload.codec import Codec

__all__ = ["EVENT", "PROCESSING", "Timer", "with_timers", "without_timers"]

EVENT, PROCESSING = "event", "processing"
#: begins the state of a key that has timers, with the version of its form; neither a pickle nor MessagePack begins so
_HEAD = b"\xc1T\x01"
_LENGTH = struct.Struct(">I")

#: (name, time, which clock) of a timer
Timer = tuple[str, float, str]


def with_timers(state: bytes, timers: tuple[Timer, ...], codec: Codec) -> bytes:
    """The state of a key with its timers."""
    if not timers:
        return state
    said = codec.pack(timers)
    return b"".join((_HEAD, _LENGTH.pack(len(said)), said, state))


def without_timers(state: bytes, codec: Codec) -> tuple[bytes, tuple[Timer, ...]]:
    """The state alone, and the timers that it came with. Raises FrameError."""
    if state[:2] != _HEAD[:2]:
        return state, ()
    if state[:3] != _HEAD:
        raise FrameError("the timers of a key are written in a form that this version does not know")
    start = len(_HEAD) + _LENGTH.size
    if len(state) < start:
        raise FrameError("the state of a key ends within the length of its timers")
    end = start + _LENGTH.unpack_from(state, len(_HEAD))[0]
    said: Any = codec.unpack(state[start:end])
    if type(said) is not tuple or any(
        type(each) is not tuple
        or len(each) != 3
        or type(each[0]) is not str
        or type(each[1]) not in (int, float)
        or each[2] not in (EVENT, PROCESSING)
        for each in said
    ):
        raise FrameError("timers of a key are names, times and clocks")
    return state[end:], said
