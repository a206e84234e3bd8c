"""The address of a web UI, from what is written on the command line."""

from __future__ import annotations

import secrets
import ssl
from dataclasses import dataclass

from esault.errors import UsageError
from esault.ui.listen_address import is_loopback, listen_address

__all__ = ["Address", "parse"]


@dataclass(frozen=True)
class Address:
    """An address, the certificate that proves it, and the token that is asked for."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    #: empty where only looking is allowed, by who is on this machine
    token: str

    @property
    def beyond(self) -> bool:
        """Return whether other machines can reach it."""
        return not is_loopback(self.host)


def parse(option: str, text: str, control: bool = False, tls: tuple[str, str] | None = None) -> Address:
    """Return the address of "PORT" or "ADDRESS:PORT"; `tls` has the files of a certificate and its key. Raises UsageError."""
    host, number = listen_address(option, text)
    beyond = not is_loopback(host)
    if beyond and tls is None:
        raise UsageError(
            f"{option} {text}: other machines can reach {host}, so {option} needs a certificate there: add --ui-tls CERTIFICATE KEY; or "
            f"leave the address out, and go through ssh -L {number or 8080}:127.0.0.1:{number or 8080}"
        )
    context = None
    if tls is not None:
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"--ui-tls {' '.join(tls)}: {error}") from None
    return Address(host, number, context, secrets.token_urlsafe(16) if control or beyond else "")
