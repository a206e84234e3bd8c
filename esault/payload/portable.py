"""What can travel between processes: finds, inside a value, the first thing that cannot, and says why.

Slow beside the packer, which does not say where it stopped: this is asked once packing has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from reprlib import Repr
from typing import Any, NamedTuple

import msgpack

from esault.payload.remedy import remedy, type_name

__all__ = ["ARROW", "MAX_DEPTH", "MAX_SET_DEPTH", "NUMPY", "OWN_CODES", "RECORDS", "explain", "find_unportable"]

#: containers nest at most this deep: msgpack's unpacker has a stack of this size
MAX_DEPTH = 1024
#: sets nest in sets at most this deep: each level packs and unpacks on its own, deeper into the C stack
MAX_SET_DEPTH = 8
#: the extension codes of the codec; those of arrays stand for whole columns
OWN_CODES = range(80, 89)
NUMPY, ARROW, RECORDS = 86, 87, 88

_DEEP = f"is nested more than {MAX_DEPTH} deep, or contains itself, and cannot travel; flatten it"
_DEEP_SETS = f"is nested in more than {MAX_SET_DEPTH} other sets and cannot travel; flatten it"
_SURROGATE = 'holds a lone surrogate and cannot travel; use bytes: {name}.encode("utf-8", "surrogateescape")'
_OWN_CODE = "has an extension code that eSault uses itself, 80 to 88, and cannot travel; use another code"
_NANOSECONDS = "has nanoseconds, which a datetime cannot hold; use {name}.value or {name}.floor('us')"
_NO_TIME = "is no time and cannot travel; use None"
_VIEW = "is not contiguous and cannot travel; use {name}.tobytes()"
_TYPE = "cannot travel; {remedy}"

_KEY, _ELEMENT = " (key)", " (element)"

_short = Repr()
_short.maxstring = _short.maxother = _short.maxlong = 40


class _Culprit(NamedTuple):
    where: str
    thing: Any
    reason: str


def find_unportable(value: Any) -> tuple[str, type] | None:
    """Where inside `value` the first thing is that cannot travel, and its type; None when all of it can.

    The place is written as in Python, `[2]['a']`, and is empty for `value` itself; the keys of a dict and the elements
    of a set, which have no place, are marked ` (key)` and ` (element)`. What is nested too deeply or contains itself
    is found at the place where that shows.
    """
    culprit = _find(value)
    return None if culprit is None else (culprit.where, type(culprit.thing))


def explain(value: Any) -> str | None:
    """For an error message: what cannot travel inside `value`, where, and what to use instead; None if all can."""
    culprit = _find(value)
    if culprit is None:
        return None
    where, thing, reason = culprit
    name = "it" if _KEY in where or _ELEMENT in where else f"value{where}"
    inside = f" at value{where}" if where else ""
    # Not `format`: what a user's own exception says may hold braces.
    reason = reason.replace("{name}", name).replace("{remedy}", remedy(thing, name) if reason is _TYPE else "")
    return f"{type_name(type(thing))}{inside} {reason}"


def _find(value: Any) -> _Culprit | None:
    # By hand and not by recursion: what msgpack packs may be nested deeper than Python's own stack.
    walks: list[Iterator[tuple[str, Any]]] = [iter([("", value)])]
    places: list[str] = [""]
    levels: list[tuple[int, int]] = [(1, 0)]

    def where(place: str) -> str:
        way = "".join(places[1:]) + place
        return way if len(way) <= 100 else f"{way[:60]}...{way[-30:]}"

    while walks:
        for place, thing in walks[-1]:
            depth, sets = levels[-1]
            reason = _DEEP if depth > MAX_DEPTH else _judge(thing, sets)
            if reason is not None:
                return _Culprit(where(place), thing, reason)
            try:
                parts = _parts(thing)
            except Exception as error:  # a container of the user's own
                return _Culprit(where(place), thing, f"fails when it is read: {_brief(error)}")
            if parts is not None:
                walks.append(iter(parts))
                places.append(place)
                # A set is packed on its own, as an array: its elements are on the second level of that.
                levels.append((2, sets + 1) if isinstance(thing, (set, frozenset)) else (depth + 1, sets))
                break
        else:
            walks.pop(), places.pop(), levels.pop()
    return None


def _judge(thing: Any, sets: int) -> str | None:
    """Why this, apart from its parts, cannot travel; None if it can. In the order of the packer's own questions."""
    if thing is None or isinstance(
        thing, (int, float, bytes, bytearray, list, tuple, dict, msgpack.Timestamp, Decimal)
    ):
        if isinstance(thing, msgpack.ExtType) and thing.code in OWN_CODES:
            return _OWN_CODE
        return None
    if isinstance(thing, str):
        try:
            thing.encode()
        except UnicodeEncodeError:
            return _SURROGATE
        return None
    if isinstance(thing, memoryview):
        return None if thing.c_contiguous else _VIEW
    if isinstance(thing, datetime):
        if thing != thing:  # pandas.NaT
            return _NO_TIME
        return _NANOSECONDS if getattr(thing, "nanosecond", 0) else None
    if isinstance(thing, date):
        return None
    if isinstance(thing, (set, frozenset)):
        return _DEEP_SETS if sets == MAX_SET_DEPTH else None
    return _TYPE


def _parts(thing: Any) -> list[tuple[str, Any]] | None:
    """What is in a container, each with its place; None for what is no container."""
    if isinstance(thing, msgpack.ExtType):
        return None
    if isinstance(thing, (list, tuple)):
        return [(f"[{i}]", part) for i, part in enumerate(thing)]
    if isinstance(thing, dict):
        return [part for key, item in thing.items() for part in ((_KEY, key), (f"[{_brief(key)}]", item))]
    if isinstance(thing, (set, frozenset)):
        return [(_ELEMENT, part) for part in thing]
    return None


def _brief(thing: Any) -> str:
    try:
        return _short.repr(thing)
    except ValueError:  # an int of more digits than Python writes down
        return f"<{type(thing).__name__}>"
