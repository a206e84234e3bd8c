"""The socket that a server listens on, and its TLS."""

from __future__ import annotations

import errno
import socket
import ssl

from esault.errors import EsaultError

__all__ = ["listening", "server_tls"]


def listening(who: str, host: str, port: int, error: type[EsaultError]) -> socket.socket:
    """Return a socket that listens there. Raises `error` with the remedy; `who` is in it."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as why:
        raise error(f"{who}: the host is not known ({why.strerror or why}); check its name") from None
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(128)
    except OSError as why:
        sock.close()
        remedy = {
            errno.EADDRINUSE: "another process listens there: end it, or choose another port",
            errno.EACCES: "ports below 1024 are for the system's administrator: choose a higher one",
            errno.EADDRNOTAVAIL: 'this machine has no such address: write one it has, or "0.0.0.0" for all',
        }.get(why.errno or 0, "choose another host or port")
        raise error(f"{who}: cannot listen ({why.strerror or why}); {remedy}") from why
    return sock


def server_tls(
    who: str, certificate: str | None, private_key: str | None, error: type[EsaultError]
) -> ssl.SSLContext | None:
    """Return the TLS of a server with these PEM files; None where there is none. Raises `error`."""
    if certificate is None:
        return None
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(certificate, private_key)
    except (OSError, ssl.SSLError) as why:
        raise error(
            f"{who}: the certificate {certificate} and its key cannot be used ({why.strerror or why}); "
            "give the PEM files of both, certificate= and private_key="
        ) from None
    return made
