"""Rows of one sub-unit on their way into durable parts, for sinks that land Parquet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from esault.sinks.landing.buffer import Buffer

__all__ = ["Staging"]

#: Arrow bytes of one epoch that stay in memory; more go into a part of their own at once
_SPILL = 64 * 2**20

P = TypeVar("P")


class Staging(Generic[P]):
    """A buffer and the parts that were written of it; `P` is what says of a part where it is.

    Parquet is made, and made durable, by `in_thread`: rows may come meanwhile, and belong to the next epoch. Where a disk refuses, what
    was to be written stays, and the next `prepare` tries it again.
    """

    def __init__(
        self,
        buffer: Buffer,
        write: Callable[[Buffer], list[P]],
        sync: Callable[[], None],
        in_thread: Callable[[Callable[[], Any]], Any],
    ) -> None:
        """`write` makes parts of all rows of a buffer, `sync` their names durable; both may be called in any thread, one at a time."""
        self.buffer = buffer
        self._write = write
        self._sync = sync
        self._in_thread = in_thread
        self._parts: list[P] = []
        #: rows that are not written, in front of those in the buffer
        self._buffers: list[Buffer] = []
        #: what a thread could not write, and the parts of the same epoch that it could
        self._failed: deque[tuple[list[P], list[Buffer]]] = deque()

    def spill(self) -> None:
        """Bound the memory of long epochs: a part that is complete, and not visible before the epoch is committed. Raises SinkError."""
        if self.buffer.bytes >= _SPILL:
            self._parts += self._write(self.buffer)
            self.buffer.clear()

    def prepare(self, done: Callable[[list[P]], Any]) -> Any:
        """Return, maybe in a future, what `done` makes of the parts of all rows so far, once they are durable. Raises SinkError."""
        while self._failed:
            parts, buffers = self._failed.popleft()
            self._parts, self._buffers = parts + self._parts, buffers + self._buffers
        parts, self._parts = self._parts, []
        buffers, self._buffers = self._buffers, []
        if len(self.buffer):
            buffers.append(self.buffer.take())
        if not parts and not buffers:
            return done([])
        return self._in_thread(partial(self._make_durable, parts, buffers, done))

    def _make_durable(self, parts: list[P], buffers: list[Buffer], done: Callable[[list[P]], Any]) -> Any:
        try:
            while buffers:
                parts += self._write(buffers[0])
                del buffers[0]
            self._sync()
        except BaseException:
            self._failed.append((parts, buffers))
            raise
        return done(parts)
