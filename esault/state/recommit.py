"""After a death sinks commit once more what belongs to a complete checkpoint: who prepared it may have died before it could."""

from __future__ import annotations

from collections.abc import Iterable

from esault.errors import SinkError
from esault.messages.checkpoint import CompletedCheckpoint
from esault.topology.plan import SinkPlan

__all__ = ["go_back", "recommit"]


def recommit(kept: CompletedCheckpoint | None, sinks: Iterable[SinkPlan]) -> None:
    """Idempotent. Raises SinkError."""
    if kept is None:
        return
    by_name = {sink.name: sink.sink for sink in sinks}
    for handle in kept.handles:
        sink = by_name.get(handle.sink)
        if sink is None:
            continue
        try:
            sink.commit(handle.number, handle.handle)
        except SinkError as error:
            raise SinkError(f"sink {handle.sink!r}, checkpoint {handle.number}: {error}") from error


def go_back(kept: CompletedCheckpoint | None, sinks: Iterable[SinkPlan]) -> None:
    """Commit what belongs to the checkpoint that all went back to, and let go of what was prepared beyond it. Raises SinkError."""
    sinks = list(sinks)
    recommit(kept, sinks)
    for sink in sinks:
        sink.sink.forget_staged()
