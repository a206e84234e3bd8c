"""Channels in memory: bounded queues with the manners of the sockets."""

from __future__ import annotations

from collections import deque

__all__ = ["Inlet", "MemoryWire"]

#: frames that a link takes before it refuses more, as the sockets' high-water mark
CAPACITY = 8


class Inlet:
    """A receiving socket: frames arrive in order on each link, in any order between links."""

    def __init__(self) -> None:
        self.links: list[deque[bytes]] = []

    def waiting(self) -> list[deque[bytes]]:
        """Links with frames on them."""
        return [link for link in self.links if link]


class _Link:
    def __init__(self, wire: MemoryWire, endpoint: str) -> None:
        self._queue: deque[bytes] = deque()
        self._closed = False
        self._express = endpoint.endswith("/express")
        inlet = wire.inlets.get(endpoint)
        if inlet is not None:
            inlet.links.append(self._queue)

    def send(self, frame: bytes) -> bool:
        if self._closed or len(self._queue) >= CAPACITY:
            return False
        self._queue.append(frame)
        return True

    def finish(self) -> None:
        self._closed = True
        if not self._express:
            self._queue.clear()  # as sockets may; see `Inlets` in esault.runtime.sockets

    def close(self) -> None:
        self._closed = True
        self._queue.clear()


class MemoryWire:
    """All inlets of a run, by endpoint. A link to one that is gone takes frames that are never read."""

    def __init__(self) -> None:
        self.inlets: dict[str, Inlet] = {}

    def bind(self, endpoint: str) -> Inlet:
        """Make the receiving side of an endpoint."""
        inlet = self.inlets[endpoint] = Inlet()
        return inlet

    def link(self, endpoint: str) -> _Link:
        """Make a sending side."""
        return _Link(self, endpoint)

    def unbind(self, endpoint: str) -> None:
        """Drop the inlet: the receiver is gone, and with it what was not read."""
        self.inlets.pop(endpoint, None)
