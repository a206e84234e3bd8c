"""Addresses on this machine that the processes of a peer can listen at."""

from __future__ import annotations

import socket

__all__ = ["free_addresses"]


def free_addresses(count: int) -> list[str]:
    """Return so many free ports of this machine, as HOST:PORT. Nothing keeps them free."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses
