"""The sinks of a sub-unit: a commit, a checkpoint and the end pass all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from esault.flow.send.sink_writer import SinkWriter

__all__ = ["SinkWriters"]


class SinkWriters(list[SinkWriter]):
    """All writers that a sub-unit has. `exactly`: checkpoints commit them."""

    def __init__(self, exactly: bool) -> None:
        super().__init__()
        self._exactly = exactly

    def most_rows(self, count: int) -> int:
        """Return how many rows to process next for the sake of slow sinks, where the last were `count`; 0: any number."""
        slow = [most for sink in self if (most := sink.most_rows(count))]
        return min(slow) if slow else 0

    def commit(self, now: float, closing: bool, idle: bool) -> None:
        """Commit sinks that are due, sooner where there is nothing else to do; all of them when the end waits for it."""
        for sink in self:
            due = sink.due_at(idle)
            if due is not None and (closing or now >= due):
                sink.commit()

    def due_at(self, idle: bool) -> Iterator[float]:
        """Yield the times at which a commit is due; `idle`: while there is nothing else to do."""
        for sink in self:
            due = sink.due_at(idle)
            if due is not None:
                yield due

    def prepare(self, number: int, said: Callable[[], None]) -> dict[str, Any]:
        """Have the sinks make what they hold durable, as part of a checkpoint, and return what they say of it, by name.

        That is all of it where none is `preparing`; `said` is called when one has said something.
        """
        handles: dict[str, Any] = {}

        def take(name: str, handle: Any) -> None:
            handles[name] = handle
            said()

        for sink in self if self._exactly else ():
            sink.prepare(number, partial(take, sink.name))
        return handles

    @property
    def waiting(self) -> tuple[str, ...]:
        """Return the names of those of which a hook is not done."""
        return tuple(sink.name for sink in self if sink.hooks.open)

    @property
    def preparing(self) -> bool:
        """Return whether a sink has not said yet what it prepared."""
        return any(sink.preparing for sink in self)

    def complete(self, number: int, handles: dict[str, Any]) -> None:
        """Have the sinks show what they prepared; a handle goes when that is done."""
        for sink in self:
            if sink.name in handles:
                sink.complete(number, handles[sink.name], lambda done, name=sink.name: handles.pop(name))  # type: ignore[misc]

    @property
    def uncommitted(self) -> bool:
        """Return whether a sink has rows that are not durable, or hooks that are not done."""
        return any(sink.uncommitted for sink in self)

    def finish(self) -> None:
        """Commit sinks, and wait until all of their hooks are done."""
        for sink in self:
            sink.finish()

    def close(self) -> list[str]:
        """Close them all; what went wrong, for people."""
        wrong = []
        for sink in self:
            try:
                sink.close()
            except Exception as error:
                wrong.append(f"sink {sink.name!r} cannot be closed: {error}")
        return wrong
