"""Copies of broadcast state, by which it is saved, and given to new sub-units."""

from __future__ import annotations

from typing import Any

from esault.errors import FrameError, PayloadError, StateError
from esault.payload.codec import Codec, explain
from esault.payload.schema import Evolution
from esault.topology.broadcast_state import BroadcastState

__all__ = ["BroadcastCopies"]


class BroadcastCopies:
    """The broadcast state of an operator through bytes. Its errors name what of it cannot be."""

    def __init__(self, unit: str, codec: Codec, broadcast: BroadcastState) -> None:
        self._unit, self._codec, self._broadcast = unit, codec, broadcast
        #: the object that takes its tuples, once there is one
        self.taker: Any = None
        #: whether it is that of a checkpoint
        self._restored = False

    def copy(self) -> bytes:
        """Pack it. Raises StateError."""
        state = dict(self._broadcast)
        try:
            return self._codec.pack_value(state, self.taker)
        except PayloadError as error:
            for key, value in state.items():
                reason = explain(key, self.taker) or explain(value, self.taker)
                if reason is not None:
                    raise StateError(
                        f"unit {self._unit!r}: broadcast_state[{key!r}] cannot be saved or moved: {reason}"
                    ) from None
            raise StateError(f"unit {self._unit!r}: the broadcast state cannot be saved or moved: {error}") from None

    def put(self, state: bytes) -> None:
        """Take in that of another sub-unit. Raises StateError."""
        try:
            self._broadcast.replace(self._codec.unpack(state, self.taker))
        except (FrameError, TypeError, ValueError) as error:
            raise self._lost(error) from None

    def restore(self, state: bytes) -> None:
        """Begin with that of a checkpoint, in which all sub-units had the same. Raises StateError."""
        if not self._restored:
            self._restored = True
            self.put(state)

    def evolved(self, state: bytes, evolution: Evolution) -> bytes:
        """That of another version of the code, as this one has it. Raises StateError."""
        try:
            found = evolution.read(state, self.taker)
        except FrameError as error:
            raise self._lost(error) from None
        return self._codec.pack_value(found, self.taker)

    def _lost(self, error: Exception) -> StateError:
        return StateError(f"unit {self._unit!r}: the broadcast state cannot be restored: {error}")
