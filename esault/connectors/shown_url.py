"""URLs with passwords: how people see them, and what is wrong where a password hides the host."""

from __future__ import annotations

import re

__all__ = ["password_remedy", "without_password"]


def without_password(url: object) -> str:
    """Return a URL as an error may show it: without its user, its password and what stands behind its path."""
    if not isinstance(url, str):
        return repr(url)
    scheme, found, rest = url.rpartition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2].partition('?')[0]}"


def password_remedy(url: str) -> str:
    """Return what to write where a password has characters at which the host of a URL ends; nothing where it has none."""
    rest = url.partition("://")[2]
    hidden = "@" in rest and "@" not in re.split("[/?#]", rest, maxsplit=1)[0]
    return "in a password write / as %2F, ? as %3F and # as %23" if hidden else ""
