"""The parameters that all operators are made of, in one value."""

from __future__ import annotations

from collections.abc import Callable

from esault.flow.operators.emitter import Emitter
from esault.flow.operators.packed_states import PackedStates, memory_states
from esault.flow.operators.user_error import DeadLetters
from esault.payload.codec import Codec
from esault.topology.context import Context
from esault.topology.plan import UnitPlan
from esault.value_class import value_class

__all__ = ["OperatorParameters"]


@value_class(frozen=True)
class OperatorParameters:
    """A unit's plan, and the surroundings of its user code in one sub-unit."""

    plan: UnitPlan
    context: Context
    emitter: Emitter
    codec: Codec
    dead_letter_sink: DeadLetters
    #: seconds since the epoch when it is made
    now: float
    #: waits for so many seconds, before a tuple is tried again
    pause: Callable[[float], None] = lambda seconds: None
    #: makes a place for states that have no room in memory
    states_on_disk: Callable[[Codec], PackedStates] = memory_states
