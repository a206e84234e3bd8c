"""After a death sinks commit once more what belongs to a complete checkpoint: who prepared it may have died before it could."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from esault.flow.send.sink_call import call_sink
from esault.messages.checkpoint import CompletedCheckpoint
from esault.topology.plan import SinkPlan

__all__ = ["go_back", "recommit"]


def recommit(kept: CompletedCheckpoint | None, sinks: Iterable[SinkPlan]) -> None:
    """Idempotent. Raises SinkError, UserError."""
    if kept is None:
        return
    by_name = {sink.name: sink.sink for sink in sinks}
    for handle in kept.handles:
        sink = by_name.get(handle.sink)
        if sink is not None:
            call_sink(handle.sink, "commit", partial(sink.commit, handle.number, handle.handle))


def go_back(kept: CompletedCheckpoint | None, sinks: Iterable[SinkPlan]) -> None:
    """Commit what belongs to the checkpoint that all went back to, and let go of what was prepared beyond it.

    Raises SinkError, UserError.
    """
    sinks = list(sinks)
    recommit(kept, sinks)
    for sink in sinks:
        call_sink(sink.name, "forget_staged", sink.sink.forget_staged)
