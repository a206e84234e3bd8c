"""The key of a tuple, made of what stands in a record, and how a record that is of no use is told."""

from __future__ import annotations

from typing import Any

__all__ = ["UnusableError", "as_key", "described", "shown"]


class UnusableError(ValueError):
    """A record can be read, and is not what a tuple can be made of."""


def as_key(found: Any) -> Any:
    """Return the value as a tuple's key; a list becomes a tuple. Raises UnusableError."""
    if isinstance(found, (bytes, int)):
        return found
    if isinstance(found, str):
        if not found.isascii() and any("\ud800" <= character <= "\udfff" for character in found):
            raise UnusableError(f"the key would be {shown(repr(found))}, which holds a lone surrogate and has no UTF-8")
        return found
    if isinstance(found, (list, tuple)):
        return tuple(as_key(one) for one in found)
    raise UnusableError(
        f"the key would be {shown(repr(found))}, of type {type(found).__name__}, and a key is text, a whole number, "
        "true, false or a list of them"
    )


def described(error: BaseException) -> str:
    """Return what to say of an error: its text, and its type where that says more."""
    return str(error) if type(error) in (UnusableError, ValueError) else f"{type(error).__name__}: {error}"


def shown(text: str) -> str:
    """Return a text, cut short where it is long."""
    return text if len(text) <= 80 else text[:77] + "..."
