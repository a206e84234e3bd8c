"""A web service: where it is, and what it is told of who asks."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from esault.connectors.http.library import library
from esault.connectors.shown_url import without_password
from esault.errors import EsaultError, TopologyError

__all__ = ["Service"]


class Service:
    """The address of a service with the headers of each request. `who` is the class that asks for it."""

    def __init__(
        self,
        who: str,
        url: str,
        example: str,
        headers: Mapping[str, str] | None,
        token: str | None,
    ) -> None:
        """`example` is an address as it should be; its scheme, with and without TLS, is what is taken. Raises TopologyError."""
        try:
            parts = urlsplit(url) if isinstance(url, str) else None
        except ValueError:  # brackets that are no address
            parts = None
        scheme = example.partition(":")[0].removesuffix("s")
        if parts is None or parts.scheme not in (scheme, f"{scheme}s") or not parts.hostname:
            raise TopologyError(f'{who}: url={without_password(url)}: write one such as "{example}"')
        if headers is not None and not isinstance(headers, Mapping):
            raise TopologyError(f'{who}: headers={headers!r}: write a dict, such as {{"Accept-Language": "en"}}')
        self._class, self.url, self._host = who, url, parts.hostname
        #: the class with the address, for messages: without what may be secret
        self.who = f"{who} {without_password(url)}"
        self.headers = {**(headers or {}), **({} if token is None else {"Authorization": f"Bearer {token}"})}

    def check(self, error: type[EsaultError]) -> None:
        """Raises `error` where aiohttp is missing or the host has no address."""
        library(self._class, error)
        try:
            socket.getaddrinfo(self._host, None)
        except (OSError, UnicodeError) as why:  # the second: no name that DNS has, such as one of 64 characters
            said = getattr(why, "strerror", None) or why
            raise error(f"{self.who}: the host is not known ({said}); check its name") from None
