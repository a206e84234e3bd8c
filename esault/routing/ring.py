"""The ring: the named, stable hash that gives every key its place in [0, INT_MAX].

The paper rehashes a key into [0, INT_MAX] and does not say how (Sault, section on the output routing table). Here a
key is first written as bytes that say its type, so that `1`, `True`, `"1"` and `b"1"` are four keys; then CRC-32, which
runs in C; then the finalizer of MurmurHash3 (fmix32), without which the places of keys that differ in few
bits would lie on a lattice. The built-in `hash` is salted anew in every process and must never route.
"""

from __future__ import annotations

import enum
from typing import Any
from zlib import crc32

from esault.errors import PayloadError
from esault.payload.remedy import remedy, type_name

__all__ = [
    "INT_MAX",
    "MAX_KEY_DEPTH",
    "NAME",
    "RING",
    "Canonical",
    "Key",
    "Name",
    "canonical",
    "check_key",
    "encode",
    "is_ambiguous",
    "key_of",
    "position",
]

#: str, bytes, int, bool, None, or a tuple of these; `check_key` tells, for no type checker sees that True is no int
Key = Any
#: what stands for a key in dicts and sets, where Python would take it for another: the key, or a `Canonical` of it
Name = Any

#: number of places
RING = 2**31
#: the last place
INT_MAX = RING - 1
#: name and version of the hash: part of every snapshot, for state is stored by place
NAME = "crc32-fmix32/1"
#: tuples in a key nest at most this deep
MAX_KEY_DEPTH = 32

_SEED_STR = crc32(b"s")


def position(key: Key) -> int:
    """The key's place on the ring, 0 <= place <= INT_MAX; the same in every process, host and run of this hash's NAME.

    Raises PayloadError for what cannot be a key; the caller knows the unit and adds it.
    """
    if type(key) is str:
        try:
            # crc32 goes on from a seed: this is crc32(b"s" + the text), without joining the two.
            h = crc32(key.encode(), _SEED_STR)
        except UnicodeEncodeError:
            raise _surrogates(key, "") from None
    else:
        h = crc32(encode(key))
    h ^= h >> 16
    h = h * 0x85EBCA6B & 0xFFFFFFFF
    h ^= h >> 13
    h = h * 0xC2B2AE35 & 0xFFFFFFFF
    return (h ^ h >> 16) & INT_MAX


def encode(key: Key) -> bytes:
    """The key as bytes that no other key has: a prefix for the type, the value; parts of a tuple carry their length."""
    return _encode(key, "", 0)


def _encode(key: Key, where: str, depth: int) -> bytes:
    if type(key) is str:
        try:
            return b"s" + key.encode()
        except UnicodeEncodeError:
            raise _surrogates(key, where) from None
    if type(key) is int:
        return b"i" + key.to_bytes(key.bit_length() // 8 + 1, "little", signed=True)
    if type(key) is bytes:
        return b"b" + key
    if type(key) is tuple:
        if depth == MAX_KEY_DEPTH:
            raise PayloadError(f"a key nests tuples more than {MAX_KEY_DEPTH} deep; use a flat tuple or a str")
        parts = [b"("]
        for i, item in enumerate(key):
            part = _encode(item, f"{where}[{i}]", depth + 1)
            parts += (len(part).to_bytes(8, "little"), part)
        return b"".join(parts)
    if key is None:
        return b"n"
    if type(key) is bool:
        return b"t" if key else b"f"
    raise _refusal(key, where)


def check_key(key: Key) -> None:
    """Raise PayloadError, naming the type and the remedy, unless this can be a key."""
    if type(key) is not str or not key.isascii():
        _encode(key, "", 0)


def _refusal(key: Any, where: str) -> PayloadError:
    kind = type(key)
    name = f"key{where}"
    if isinstance(key, enum.Enum):
        fix = f"use {name}.value"
    elif isinstance(key, tuple):
        fix = f"use tuple({name})"
    elif isinstance(key, (str, bytes, int)) and hasattr(key, "item"):
        fix = f"use {name}.item()"
    elif isinstance(key, (str, bytes, int)):
        base = next(b for b in (str, bytes, int) if isinstance(key, b))
        fix = f"use {base.__name__}({name})"
    elif isinstance(key, (list, set, frozenset)):
        fix = f"use tuple({name})" if isinstance(key, list) else f"use tuple(sorted({name}))"
    elif isinstance(key, (bytearray, memoryview)):
        fix = f"use bytes({name})"
    elif kind is float:
        fix = f"use str({name}), or an int such as round({name} * 100)"
    elif hasattr(key, "isoformat"):
        fix = f"use {name}.isoformat()"
    elif kind.__qualname__ == "Decimal":
        fix = f"use str({name})"
    elif isinstance(key, dict):
        fix = f"use tuple(sorted({name}.items()))"
    else:
        fix = remedy(key, name, "use a tuple, a str or an int made from it")
    inside = f" at {name}" if where else ""
    return PayloadError(
        f"{type_name(kind)}{inside} cannot be a key: a key is str, bytes, int, bool, None, or a tuple of these, of "
        f"exactly these types and no subclass; {fix}"
    )


def _surrogates(key: str, where: str) -> PayloadError:
    return PayloadError(
        f"key{where} {key!r} holds a lone surrogate, which has no UTF-8; use bytes: "
        f'key{where}.encode("utf-8", "surrogateescape")'
    )


def is_ambiguous(key: Key) -> bool:
    """Return whether Python takes the key for another one: 0 == False, 1 == True, and tuples that hold one of them."""
    if type(key) is str:
        return False
    if type(key) is tuple:
        return any(map(is_ambiguous, key))
    return type(key) is bool or (type(key) is int and 0 <= key <= 1)


class Canonical:
    """An ambiguous key as a dict can hold it: equal only to the same key of the same types."""

    __slots__ = ("_form", "_hash", "key")

    def __init__(self, key: Key) -> None:
        #: the key itself
        self.key = key
        self._form = encode(key)
        self._hash = hash(self._form)

    def __eq__(self, other: object) -> bool:
        return type(other) is Canonical and self._form == other._form

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Canonical({self.key!r})"


def canonical(key: Key) -> Name:
    """The name of a key, which keeps `1` and `True`, `(1,)` and `(True,)` apart: itself, or a `Canonical` of it.

    A dict that is indexed by keys as they come, such as a route cache, must hold no ambiguous key under itself: looking
    up `1` would find `True`.
    """
    if type(key) is str or not is_ambiguous(key):
        return key
    return Canonical(key)


def key_of(name: Name) -> Key:
    """The key of this name."""
    return name.key if type(name) is Canonical else name
