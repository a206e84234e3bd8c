"""The error for a key that cannot be one: in the same words wherever it is found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from esault.errors import PayloadError
from esault.payload.portable import brief
from esault.payload.remedy import type_name
from esault.routing.ring import check_key

__all__ = ["no_key", "refused_key", "refused_keys"]


def no_key(unit: str) -> PayloadError:
    """Of a tuple without a key where one is needed."""
    return PayloadError(
        f"unit {unit!r} emitted a tuple without a key (None), but what follows is grouped by key; "
        "emit a key, or put key_by(...) before it"
    )


def refused_key(unit: str, key: Any) -> PayloadError | None:
    """Of what cannot be the key of any tuple; None where it can."""
    try:
        check_key(key)
    except PayloadError as error:
        return PayloadError(
            f"unit {unit!r} emitted a tuple with the key {brief(key)} of type {type_name(type(key))}: {error}"
        )
    return None


def refused_keys(unit: str, keys: Iterable[Any], why: str = "") -> PayloadError:
    """Of the first one of these that cannot be the key of a tuple that is grouped by key; `why`, where that is none of them."""
    for key in keys:
        found = no_key(unit) if key is None else refused_key(unit, key)
        if found is not None:
            return found
    return PayloadError(f"unit {unit!r} emitted a tuple whose key cannot be a key here: {why}")
