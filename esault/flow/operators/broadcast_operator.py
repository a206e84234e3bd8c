"""Bolts with an object per key and broadcast state, of which each sub-unit has the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esault.errors import FrameError, PayloadError, StateError
from esault.flow.operators.derived_class import maker
from esault.flow.operators.element_operator import ElementOperator
from esault.flow.operators.element_state import pack_state
from esault.flow.operators.key_timer_operator import KeyTimerOperator
from esault.flow.operators.operator import STOPPING
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError
from esault.payload.codec import explain
from esault.payload.schema import Evolution
from esault.routing.ring import Name
from esault.topology.bolt import Bolt
from esault.topology.broadcast_state import BroadcastState

__all__ = ["BroadcastOperator", "BroadcastTimerOperator"]


class BroadcastOperator(ElementOperator):
    """Rows of some inputs go to one object that stands for no key, and changes the state that the objects of all keys read.

    The state stands in checkpoints under no key, beside what else does. A new sub-unit gets it from an old owner.
    """

    def __init__(self, parameters: OperatorParameters) -> None:
        self.broadcast = BroadcastState()
        super().__init__(parameters)
        self._to_all = self.plan.broadcast_inputs
        assert self.plan.factory is not None
        members = {"emit": _refuse_emit, "context": self.context, "broadcast_state": self.broadcast}
        new, _ = maker(self.plan.factory, members, Bolt)
        try:
            self._taker = self._silent(new, "__init__")
            self._taker.key = None
            self._opened(self._taker, None)
        except STOPPING:
            raise
        except BaseException as error:
            raise self._fail(error, None, "open") from error
        #: its state, packed, which must stay as it is; None: not known yet
        self._taker_state: bytes | None = None
        #: whether it is known that the state can move; whether it is that of a checkpoint
        self._tried_broadcast = self._restored = False

    def _members(self) -> dict[str, Any]:
        return {**super()._members(), "broadcast_state": self.broadcast}

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        if input not in self._to_all:
            super().run(input, keys, values, ids)
            return
        process = self._taker.process_broadcast
        try:
            if self._taker_state is None:
                self._taker_state = pack_state(self.plan.name, self._taker, self.codec)
            self.broadcast.writable = True
            for key, value in zip(keys, values):
                self._attempt(lambda k=key, v=value: process(k, v), key, value, "process_broadcast")  # type: ignore[misc]
            if pack_state(self.plan.name, self._taker, self.codec) != self._taker_state:
                raise StateError(
                    f"unit {self.plan.name!r}: process_broadcast of {type(self._taker).__name__} changed attributes of self, which stands "
                    "for no key there, so that they would be lost; keep what all keys are to see in self.broadcast_state"
                )
            if not self._tried_broadcast:
                self._tried_broadcast = True
                self.broadcast_copy()  # that it cannot move is found now and not when it must
        except StateError as error:
            raise UserError(str(error)) from error
        finally:
            self.broadcast.writable = False
        self._settle()

    def close(self) -> None:
        super().close()
        self._close(self._taker)

    @property
    def states(self) -> int:
        return super().states or bool(self.broadcast)

    def reload(self, keys: Sequence[Any]) -> None:
        super().reload(keys)
        try:
            self._put(self.broadcast_copy())
        except StateError as error:
            raise UserError(str(error)) from error

    # state -------------------------------------------------------------------------------------

    def broadcast_copy(self) -> bytes:
        state = dict(self.broadcast)
        try:
            return self.codec.pack_value(state, self._taker)
        except PayloadError as error:
            for key, value in state.items():
                reason = explain(key, self._taker) or explain(value, self._taker)
                if reason is not None:
                    raise StateError(
                        f"unit {self.plan.name!r}: broadcast_state[{key!r}] cannot be saved or moved: {reason}"
                    ) from None
            raise StateError(
                f"unit {self.plan.name!r}: the broadcast state cannot be saved or moved: {error}"
            ) from None

    def install_broadcast(self, state: bytes) -> None:
        self._put(state)

    def _put(self, state: bytes) -> None:
        try:
            self.broadcast.replace(self.codec.unpack(state, self._taker))
        except (FrameError, TypeError, ValueError) as error:
            raise StateError(f"unit {self.plan.name!r}: the broadcast state cannot be restored: {error}") from None

    def beside_keys(self) -> list[Name]:
        return [None]

    def peek(self, name: Name) -> bytes | None:
        if name is not None:
            return super().peek(name)
        # One that leaves was sent nothing since the table without it: that of the others is newer.
        return self.codec.pack((None if self.leaving else self.broadcast_copy(), super().peek(None)))

    def install_state(self, key: Any, state: bytes) -> None:
        if key is not None:
            super().install_state(key, state)
            return
        more = self._take_copy(state)
        if more is not None:
            super().install_state(None, more)

    def _take_copy(self, state: bytes) -> bytes | None:
        """Begin with the broadcast state of a checkpoint; what else stood under no key."""
        copy, more = self._copy_and_more(state)
        if copy is not None and not self._restored:  # all sub-units had the same
            self._restored = True
            self._put(copy)
        return more

    def evolved_more(self, state: bytes, evolution: Evolution) -> bytes:
        copy, more = self._copy_and_more(state)
        if copy is None:
            return state
        try:
            found = evolution.read(copy, self._taker)
        except FrameError as error:
            raise StateError(f"unit {self.plan.name!r}: the broadcast state cannot be restored: {error}") from None
        return self.codec.pack((self.codec.pack_value(found, self._taker), more))

    def _copy_and_more(self, state: bytes) -> tuple[bytes | None, bytes | None]:
        """The broadcast state, if it was kept, and what else stands under no key."""
        found = self.codec.unpack(state)
        if type(found) is tuple and len(found) == 2 and (found[0] is None or type(found[0]) is bytes):
            return found[0], found[1]
        return None, state  # of code that had no broadcast state


class BroadcastTimerOperator(BroadcastOperator, KeyTimerOperator):
    """The same for objects that set timers."""

    def install_watermark(self, state: bytes, ranges: Sequence[tuple[int, int]]) -> None:
        more = self._take_copy(state)
        if more is not None:
            super().install_watermark(more, ranges)


def _refuse_emit(element: Any, key: Any, value: Any, stream: str | None = None) -> None:
    raise RuntimeError(
        f"{type(element).__name__}.emit: process_broadcast is called in each sub-unit, so that what is emitted there would go out "
        "several times; emit in process, or have a bolt of its own read the same stream"
    )
