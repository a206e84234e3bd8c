"""The packed state of a key as people look at it: its timers left out, and what windows hold in it opened."""

from __future__ import annotations

from typing import Any

from esault.errors import CheckpointError, FrameError
from esault.payload.codec import Codec
from esault.payload.pickles import OwnerShown
from esault.payload.timed_state import without_timers

__all__ = ["opened"]


def opened(packed: bytes, codec: Codec) -> Any:
    """Return the attributes of a key's object as a dict, or what its __getstate__ gave; where it holds itself, `self`. Raises FrameError."""
    return _parts(codec, codec.unpack(without_timers(packed, codec)[0], OwnerShown()))


def _parts(codec: Codec, state: Any) -> Any:
    """The state with what windows hold packed in it, which are objects of their own."""
    if type(state) is tuple:
        return tuple(_parts(codec, part) for part in state)
    if type(state) is bytes:
        try:
            return codec.unpack(state, OwnerShown())
        except (FrameError, CheckpointError):
            return state
    return state
