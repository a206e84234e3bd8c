"""Deserializers: from the bytes of a message to a key or a value; the counterpart of `esault.sinks.serializers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esault.errors import TopologyError
from esault.payload.json_decoder import decode

__all__ = ["deserializer", "told_bad"]

_NAMED: dict[str, Callable[[bytes], Any]] = {"text": bytes.decode, "json": decode, "bytes": bytes}


def deserializer(who: str, option: str, wanted: Any, besides: str = "") -> Callable[[bytes], Any]:
    """Return the function that `wanted` names: "text", "json", "bytes", a function, or an object with `deserialize`.

    Raises TopologyError, which also names what the caller takes `besides`, such as "a format of esault.formats, ".
    """
    function = _NAMED.get(wanted) if isinstance(wanted, str) else getattr(wanted, "deserialize", wanted)
    if function is None or not callable(function):
        raise TopologyError(
            f'{who}: {option}={wanted!r}: write "json", "text", "bytes", {besides}or a function from bytes'
        )
    return function


def told_bad(place: str, wrong: Exception, what: str = "left out") -> str:
    """Return what is said of the first message that a deserializer refused: where it is, why, and `what` becomes of it."""
    return f"{place}: {type(wrong).__name__}: {wrong} (the message is {what}; further ones are only counted)"
