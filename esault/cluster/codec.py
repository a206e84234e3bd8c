"""Control messages between hosts as MessagePack: the registered message types and plain values, nothing that runs code.

Unlike the codec of tuples this one keeps types: a tuple stays a tuple, a message the class it was. Extension types:

    1  message    MessagePack of [class name, field, ...]
    2  tuple      MessagePack of an array
    3  set        MessagePack of an array
    4  frozenset  MessagePack of an array
    5  int beyond 64 bits, two's complement, big endian
    6  path       UTF-8
    7  any other value that tuples may hold, as the codec of tuples packs it
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
from pathlib import Path, PurePath
from typing import Any

import msgpack

from esault.errors import FrameError, PayloadError
from esault.payload.codec import Codec

__all__ = ["MAX_MESSAGE", "pack", "unpack"]

#: bytes of one message at most; code that is shipped is the largest that there is
MAX_MESSAGE = 64 << 20

_MESSAGE, _TUPLE, _SET, _FROZENSET, _INT, _PATH, _VALUE = range(1, 8)
_ROOMS = (
    "esault.messages.change",
    "esault.messages.checkpoint",
    "esault.messages.control",
    "esault.messages.probe",
    "esault.messages.replicas",
    "esault.messages.settings",
    "esault.messages.status",
    "esault.cluster.messages",
)


@functools.cache
def _known() -> dict[str, type]:
    """All classes of messages by name; complete whenever a thread sees it."""
    types: dict[str, type] = {}
    for room in _ROOMS:
        for name, found in vars(importlib.import_module(room)).items():
            if inspect.isclass(found) and found.__module__ == room:
                if name in types:
                    raise RuntimeError(f"two messages are named {name}")
                types[name] = found
    return types


def _fields(message: Any) -> list[Any]:
    if isinstance(message, tuple):
        return list(message)
    return [getattr(message, field.name) for field in dataclasses.fields(message)]


def pack(message: Any) -> bytes:
    """As bytes. Raises FrameError for what is no message or holds what cannot travel."""
    try:
        data: bytes = msgpack.packb(message, default=_extend, strict_types=True)
    except FrameError:
        raise  # of a message within the message
    except (TypeError, ValueError, OverflowError) as error:
        raise FrameError(f"a control message cannot travel: {error}: {message!r:.200}") from None
    if len(data) > MAX_MESSAGE:
        raise FrameError(f"a control message of {len(data):,} bytes; {MAX_MESSAGE:,} is the most that may be sent")
    return data


def _extend(thing: Any) -> Any:
    cls = type(thing)
    if _known().get(cls.__name__) is cls:
        return msgpack.ExtType(_MESSAGE, pack([cls.__name__, *_fields(thing)]))
    if isinstance(thing, tuple):
        return msgpack.ExtType(_TUPLE, pack(list(thing)))
    if isinstance(thing, (set, frozenset)):
        return msgpack.ExtType(_SET if isinstance(thing, set) else _FROZENSET, pack(list(thing)))
    if isinstance(thing, PurePath):
        return msgpack.ExtType(_PATH, str(thing).encode())
    plains: tuple[Any, ...] = (int, float, str, bytes, list, dict)
    for plain in plains:  # subclasses, such as numpy.float64
        if isinstance(thing, plain) and cls is not plain:
            return plain(thing)
    if isinstance(thing, int):
        return msgpack.ExtType(_INT, thing.to_bytes(thing.bit_length() // 8 + 1, "big", signed=True))
    try:
        return msgpack.ExtType(_VALUE, Codec().pack_value(thing))
    except PayloadError as error:
        raise TypeError(str(error)) from error


def unpack(data: bytes | bytearray | memoryview) -> Any:
    """The message in these bytes. Raises FrameError for anything that `pack` did not make."""
    try:
        return _read(data)
    except FrameError:
        raise
    except Exception as error:
        raise FrameError(f"bytes that are no control message: {type(error).__name__}: {error}") from None


def _read(data: bytes | bytearray | memoryview) -> Any:
    return msgpack.unpackb(data, strict_map_key=False, ext_hook=_restore)


def _restore(code: int, data: bytes) -> Any:
    if code == _MESSAGE:
        name, *fields = _read(data)
        cls = _known().get(name)
        if cls is None:
            raise FrameError(f"there is no message {name!r:.100}")
        return cls(*fields)
    if code == _TUPLE:
        return tuple(_read(data))
    if code == _SET:
        return set(_read(data))
    if code == _FROZENSET:
        return frozenset(_read(data))
    if code == _INT:
        return int.from_bytes(data, "big", signed=True)
    if code == _PATH:
        return Path(data.decode())
    if code == _VALUE:
        return Codec().unpack(data)
    raise FrameError(f"extension type {code} is not known")
