"""HOST:PORT."""

from __future__ import annotations

import ipaddress
import socket

from esault.errors import UsageError

__all__ = ["is_loopback", "join", "split"]

#: where a node listens if nothing else is said
DEFAULT_PORT = 7420


def split(address: str) -> tuple[str, int]:
    """The host and the port of `HOST`, `HOST:PORT` or `[HOST]:PORT`. Raises UsageError."""
    host, port = address, str(DEFAULT_PORT)
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise UsageError(f"{address!r} is no address: write [HOST]:PORT")
        port = rest[1:] or port
    elif address.count(":") == 1:
        host, _, port = address.partition(":")
    if not host or not port.isdecimal() or len(port) > 5 or int(port) > 65535:
        raise UsageError(f"{address!r} is no address: write HOST:PORT, such as 10.0.0.2:{DEFAULT_PORT}")
    return host, int(port)


def join(host: str, port: int) -> str:
    """The text that `split` reads."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches it. Raises UsageError for a name that is not known."""
    try:
        found = {each[4][0] for each in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise UsageError(f"there is no host {host!r}: {error}") from None
    return all(ipaddress.ip_address(str(each).partition("%")[0]).is_loopback for each in found)
