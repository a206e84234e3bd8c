"""The address that a server of a run listens on, from what is written on the command line."""

from __future__ import annotations

import ipaddress
import socket

from esault.errors import UsageError

__all__ = ["LOOPBACK", "family_of", "is_loopback", "listen_address", "written"]

LOOPBACK = "127.0.0.1"


def listen_address(option: str, text: str) -> tuple[str, int]:
    """Return the address and port of "PORT" or "ADDRESS:PORT"; without an address that of the loopback. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if colon else LOOPBACK
    try:
        number = int(port)
        ipaddress.ip_address(host)
        if not 0 <= number <= 65535:
            raise ValueError
    except ValueError:
        raise UsageError(
            f"{option} {text!r}: write a port (0: any that is free), or ADDRESS:PORT with an address of this machine, such as "
            "127.0.0.1:8080"
        ) from None
    return host, number


def family_of(host: str) -> socket.AddressFamily:
    """Return the family of an address that `listen_address` gave."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def written(host: str) -> str:
    """Return an address as it stands before a port: one of IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach it."""
    return ipaddress.ip_address(host).is_loopback
