"""A client of nats-py that says who it is by TLS alone, where that is asked for."""

from __future__ import annotations

from typing import Any

__all__ = ["NoTlsError", "over_tls"]


class NoTlsError(Exception):
    """A server without TLS where it was asked for."""


def over_tls(nats: Any) -> Any:
    """Return a client of the package nats; its own also takes a server without TLS for tls://, and tells it the password."""

    class OverTls(nats.NATS):  # type: ignore[misc]
        def _connect_command(self) -> bytes:
            if self._current_server.uri.scheme == "tls" and not self._server_info.get("tls_required"):
                raise NoTlsError("the server speaks no TLS")
            command: bytes = super()._connect_command()
            return command

    return OverTls()
