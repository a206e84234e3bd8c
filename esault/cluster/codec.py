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
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import msgpack

from esault.errors import FrameError, PayloadError
from esault.payload.codec import Codec

__all__ = ["MAX_DEPTH", "MAX_MESSAGE", "pack", "unpack"]

#: bytes of one message at most; code that is shipped is the largest that there is
MAX_MESSAGE = 64 << 20
#: extension types within one another at most: each takes 40 KB of the processor's stack when it is read, and 300 took all of it
MAX_DEPTH = 32

_MESSAGE, _TUPLE, _SET, _FROZENSET, _INT, _PATH, _VALUE = range(1, 8)
#: messages by which two versions find out that they differ: of a later one's only the fields that are known here are read
_OPEN_ENDED = frozenset(("Hello", "Welcome", "Member", "Refusal"))
_ROOMS = (
    "esault.messages.change",
    "esault.messages.checkpoint",
    "esault.messages.control",
    "esault.messages.probe",
    "esault.messages.replicas",
    "esault.messages.settings",
    "esault.messages.splits",
    "esault.messages.status",
    "esault.messages.user_metrics",
    "esault.cluster.messages",
    "esault.cluster.slot_messages",
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
    return _pack(message, 0)


def _pack(message: Any, depth: int) -> bytes:
    if depth > MAX_DEPTH:
        raise FrameError(f"a control message of more than {MAX_DEPTH} messages, tuples and sets within one another")
    try:
        data: bytes = msgpack.packb(message, default=partial(_extend, depth + 1), strict_types=True)
    except FrameError:
        raise  # of a message within the message
    except (TypeError, ValueError, OverflowError) as error:
        raise FrameError(f"a control message cannot travel: {error}: {message!r:.200}") from None
    if len(data) > MAX_MESSAGE:
        raise FrameError(f"a control message of {len(data):,} bytes; {MAX_MESSAGE:,} is the most that may be sent")
    return data


def _extend(depth: int, thing: Any) -> Any:
    cls = type(thing)
    if _known().get(cls.__name__) is cls:
        return msgpack.ExtType(_MESSAGE, _pack([cls.__name__, *_fields(thing)], depth))
    if isinstance(thing, tuple):
        return msgpack.ExtType(_TUPLE, _pack(list(thing), depth))
    if isinstance(thing, (set, frozenset)):
        return msgpack.ExtType(_SET if isinstance(thing, set) else _FROZENSET, _pack(list(thing), depth))
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
        return _read(data, 0)
    except FrameError:
        raise
    except Exception as error:
        raise FrameError(f"bytes that are no control message: {type(error).__name__}: {error}") from None


def _read(data: bytes | bytearray | memoryview, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise FrameError(f"more than {MAX_DEPTH} messages, tuples and sets within one another")
    return msgpack.unpackb(data, strict_map_key=False, ext_hook=partial(_restore, depth + 1))


def _restore(depth: int, code: int, data: bytes) -> Any:
    if code == _MESSAGE:
        name, *fields = _read(data, depth)
        cls = _known().get(name)
        if cls is None:
            raise FrameError(f"there is no message {name!r:.100}")
        if name in _OPEN_ENDED:
            del fields[len(dataclasses.fields(cls)) :]
        return cls(*fields)
    if code == _TUPLE:
        return tuple(_read(data, depth))
    if code == _SET:
        return set(_read(data, depth))
    if code == _FROZENSET:
        return frozenset(_read(data, depth))
    if code == _INT:
        return int.from_bytes(data, "big", signed=True)
    if code == _PATH:
        return Path(data.decode())
    if code == _VALUE:
        return Codec().unpack(data)
    raise FrameError(f"extension type {code} is not known")
