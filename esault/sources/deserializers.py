"""Deserializers: from the bytes of a message to a key or a value; the counterpart of `esault.sinks.serializers`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from esault.errors import TopologyError

__all__ = ["deserializer"]

_DECODER = json.JSONDecoder()


def _json(data: bytes) -> Any:
    """As json.loads, which takes four times the time: it guesses the encoding, and looks for space around the value."""
    text = data.decode()
    try:
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        end = -1
    return value if end == len(text) else _DECODER.decode(text)


_NAMED: dict[str, Callable[[bytes], Any]] = {"text": bytes.decode, "json": _json, "bytes": bytes}


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
