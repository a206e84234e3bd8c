"""Serializers: from keys and values to the bytes that a broker takes. None is no bytes at all: no key, a tombstone.

"json"     as JSON lines are written (`esault.sinks.json_row`)
"text"     text as UTF-8, whole numbers as their digits
"bytes"    bytes as they are
a function, or an object with `serialize`, such as one of `esault.formats`: from a value to bytes
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esault.errors import SinkError, TopologyError
from esault.payload.remedy import type_name
from esault.sinks.json_row import encode_value

__all__ = ["Serializer", "serializer"]

#: from a value to its bytes
Serializer = Callable[[Any], "bytes | None"]


def serializer(who: str, option: str, wanted: Any) -> Serializer:
    """Return the function that `wanted` names. Raises TopologyError."""
    if isinstance(wanted, str) and wanted in _NAMED:
        return _NAMED[wanted]
    function = getattr(wanted, "serialize", wanted)
    if not callable(function):
        raise TopologyError(
            f'{who}: {option}={wanted!r}: write "json", "text", "bytes", or a function from a value to bytes'
        )

    def checked(value: Any) -> bytes | None:
        data = function(value)
        if data is not None and type(data) is not bytes:
            raise SinkError(f"{option} returned {type_name(type(data))}, and bytes are needed; correct it")
        return data

    return checked


def _text(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, int):
        return b"%d" % value
    raise SinkError(f'{value!r} is neither text nor a whole number: take the serializer "json", or a function')


def _bytes(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise SinkError(f'{value!r} is no bytes: take the serializer "text" or "json", or a function')


_NAMED: dict[str, Serializer] = {"json": encode_value, "text": _text, "bytes": _bytes}
