"""After a death sinks commit once more what belongs to a complete checkpoint: who prepared it may have died before it could."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from esault.flow.send.sink_call import call_sink
from esault.messages.checkpoint import CompletedCheckpoint
from esault.topology.plan import SinkPlan
from esault.topology.sink import forgets_always

__all__ = ["forget_staged", "go_back", "recommit"]


def recommit(kept: CompletedCheckpoint | None, sinks: Iterable[SinkPlan]) -> None:
    """Idempotent. Raises SinkError, UserError."""
    if kept is None:
        return
    by_name = {sink.name: sink.sink for sink in sinks}
    for handle in kept.handles:
        sink = by_name.get(handle.sink)
        if sink is not None:
            call_sink(handle.sink, "commit", partial(sink.commit, handle.number, handle.handle))


def go_back(kept: CompletedCheckpoint | None, sinks: Iterable[SinkPlan], back: bool = True) -> None:
    """Commit what belongs to the checkpoint that all went back to, or that the run begins with, and let go of what was prepared beyond it.

    `back`: all went back, maybe to the beginning. Raises SinkError, UserError.
    """
    sinks = list(sinks)
    recommit(kept, sinks)
    for sink in sinks:
        handles = () if kept is None else tuple(each.handle for each in kept.handles if each.sink == sink.name)
        forget_staged(sink, handles, back or kept is not None)


def forget_staged(sink: SinkPlan, handles: tuple[Any, ...], back: bool) -> None:
    """Have a sink let go of what it staged and will not commit; one that takes no handles is asked only where all go back or go on."""
    forget = sink.sink.forget_staged
    if forgets_always(sink.sink):
        call_sink(sink.name, "forget_staged", partial(forget, handles))
    elif back:
        call_sink(sink.name, "forget_staged", forget)
