"""Ports for servers of tests that stop and start again at the same place."""

from __future__ import annotations

import random
import socket

#: below those that the system gives to clients: one of them could take the port of a server that is away
LOWEST, HIGHEST = 12_000, 32_000


def free_port() -> int:
    """Return a port of the loopback that nothing listens on."""
    for port in random.SystemRandom().sample(range(LOWEST, HIGHEST), 100):
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
