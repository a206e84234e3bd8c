"""Bolts with an object per key and broadcast state, of which each sub-unit has the same."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from esault.errors import StateError
from esault.flow.operators.broadcast_copies import BroadcastCopies
from esault.flow.operators.derived_class import NO_WINDOW, maker
from esault.flow.operators.element_operator import ElementOperator
from esault.flow.operators.element_state import pack_state
from esault.flow.operators.operator import STOPPING
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError
from esault.topology.bolt import Bolt
from esault.topology.broadcast_state import BroadcastState

__all__ = ["BroadcastOperator"]


class BroadcastOperator(ElementOperator):
    """Rows of some inputs go to one object that stands for no key, and changes the state that the objects of all keys read.

    The state stands in checkpoints under no key, beside what else does. A new sub-unit gets it from an old owner.
    """

    def __init__(self, parameters: OperatorParameters) -> None:
        self.broadcast = BroadcastState()
        copies = self.copies = BroadcastCopies(parameters.plan.name, parameters.codec, self.broadcast)
        super().__init__(parameters)
        self._to_all = self.plan.broadcast_inputs
        assert self.plan.factory is not None
        members = {"emit": _refuse_emit, "context": self.context, **NO_WINDOW, "broadcast_state": self.broadcast}
        new, _ = maker(self.plan.factory, members, Bolt)
        try:
            self._taker = copies.taker = self._silent(new, "__init__")
            self._taker.key = None
            self._opened(self._taker, None)
        except STOPPING:
            raise
        except BaseException as error:
            raise self._fail(error, None, "open") from error
        #: its state, packed, which must stay as it is; None: not known yet
        self._taker_state: bytes | None = None
        #: whether it is known that the state can move
        self._tried_broadcast = False

    def _members(self) -> dict[str, Any]:
        return {**super()._members(), "broadcast_state": self.broadcast}

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        if input not in self._to_all:
            super().run(input, keys, values, ids)
            return
        process = self._taker.process_broadcast
        if type(self._taker).process_broadcast_stream is not Bolt.process_broadcast_stream:
            process = functools.partial(self._taker.process_broadcast_stream, self._streams[input])
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
                self.state.broadcast_copy()  # that it cannot move is found now and not when it must
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


def _refuse_emit(element: Any, key: Any, value: Any, stream: str | None = None) -> None:
    raise RuntimeError(
        f"{type(element).__name__}.emit: process_broadcast is called in each sub-unit, so that what is emitted there would go out "
        "several times; emit in process, or have a bolt of its own read the same stream"
    )
