"""The surroundings that a process gives the sub-unit that lives in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esault.flow.channel.wire import Wire
from esault.flow.checkpoint.snapshot import StateStore
from esault.flow.operators.event_loop import EventLoop
from esault.flow.operators.packed_states import PackedStates, memory_states
from esault.flow.operators.user_error import DeadLetters
from esault.flow.send.sink_call import Background
from esault.payload.codec import Codec
from esault.topology.context import at_once
from esault.value_class import value_class

__all__ = ["Environment"]


@value_class(frozen=True)
class Environment:
    """Channels, time and places to write: a core does no I/O but through these."""

    wire: Wire
    #: seconds since the epoch
    clock: Callable[[], float]
    #: where dead letters go, by the path that the topology names
    dead_letters: Callable[[str | None], DeadLetters]
    #: of the sub-unit's random numbers; None: another one each time
    seed: int | None = None
    #: the run's own folder, where it has one
    run_dir: str | None = None
    #: where checkpoints are written and read; None: nowhere
    state_store: StateStore | None = None
    #: makes the event loop of a bolt with `async def process`, which goes by this clock; None: there are no such bolts
    event_loop: Callable[[Callable[[], float]], EventLoop] | None = None
    #: runs coroutines of sinks; None: there are none
    background: Background | None = None
    #: has something done in a thread beside the data loop, and returns a future of it; at once where there is none
    in_thread: Callable[[Callable[[], Any]], Any] = at_once
    #: called from any thread: a sink is done with what it was asked for, so that a turn has something to do
    wake: Callable[[], None] = lambda: None
    #: makes a place for states that have no room in memory
    states_on_disk: Callable[[Codec], PackedStates] = memory_states
    #: gives memory back to the system that was freed
    free_memory: Callable[[], None] = lambda: None
    #: waits for so many seconds, before a tuple is tried again
    pause: Callable[[float], None] = lambda seconds: None
