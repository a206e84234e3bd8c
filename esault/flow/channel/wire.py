"""The ports through which the plain cores of the data path reach the world."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Link", "Wire"]


class Link(Protocol):
    """One way to one endpoint: frames arrive in order, or not at all. Sending never blocks."""

    def send(self, frame: bytes) -> bool:
        """Return whether the frame was taken; False: not now, offer it again later."""
        ...

    def finish(self) -> None:
        """Send nothing more; what was taken is still delivered, if it goes to an express endpoint: those are always read.

        On a data endpoint what the receiver has not read may be lost, as with `close`.
        """
        ...

    def close(self) -> None:
        """Forget the endpoint; what was taken and not yet delivered may be lost."""
        ...


class Wire(Protocol):
    """Makes links. Each runtime has its own: sockets, or queues in memory."""

    def link(self, endpoint: str) -> Link:
        """A link of one's own to `endpoint`."""
        ...
