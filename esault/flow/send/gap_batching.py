"""The paper's batching in front of each target (Zhan et al. 2017, the authors' code), under its own rule.

A tuple that comes when nothing is buffered, more than the gap after the last one, goes at once; else it is buffered, and the
buffer goes as one block a gap after buffering began. The engine's own rule (`OutChannel`) sends full buffers at once and
all buffers when there is nothing else to do, which under light load waits for nothing.
"""

from __future__ import annotations

from typing import Any

__all__ = ["GapBatching"]


class GapBatching:
    """Times are seconds; `gap` is the paper's 2 ms."""

    def __init__(self, gap: float = 0.002) -> None:
        self._gap = gap
        self._last: float | None = None
        self._buffer: list[Any] = []
        self._since = 0.0

    def add(self, item: Any, now: float) -> list[tuple[float, list[Any]]]:
        """Take an item; the blocks that went since the last call, each with the time at which it went."""
        sent = self.due(now)
        alone = self._last is None or now - self._last > self._gap + 1e-12
        if not self._buffer and alone:
            sent.append((now, [item]))
        else:
            if not self._buffer:
                self._since = now
            self._buffer.append(item)
        self._last = now
        return sent

    def due(self, now: float) -> list[tuple[float, list[Any]]]:
        """The block whose time has come by `now`, if there is one."""
        if not self._buffer or now < self._since + self._gap:
            return []
        block, self._buffer = self._buffer, []
        return [(self._since + self._gap, block)]
