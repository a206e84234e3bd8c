"""Errors of a TLS that will not come about, told from those of a server that is away."""

from __future__ import annotations

__all__ = ["tls_refused"]


def tls_refused(said: str, plain: str, authority: str) -> str | None:
    """Return the remedy where an error says that no waiting brings TLS about; else None.

    `plain` is what the user writes for a connection without TLS, `authority` how an authority's certificate is given.
    """
    text = said.lower()
    if "certificate has expired" in text:
        return "its certificate has expired: have a new one put there"
    if "certificate" in text:
        return f"its certificate is not trusted: name its authority's file by {authority}, or correct the host"
    if "wrong_version_number" in text or "wrong version number" in text or "record layer" in text:
        return f"it does not speak TLS there: correct the port, or write {plain}"
    return None
