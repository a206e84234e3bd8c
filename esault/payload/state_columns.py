"""The attributes of many objects as columns, for state that is packed many keys at a time.

One by one, 1.7 to 2.4 us go into the state of an object with two attributes, and in columns 0.4. A column goes into bytes as rows of tuples
do (`packed_rows`), where nothing is remembered: what stands in two places is written twice. That must not be where it could be changed,
so objects that may share something that changes, among their own attributes, are left to be packed one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from gc import get_referents
from itertools import chain
from operator import is_
from typing import Any

from esault.payload.attributes import IN_A_ROW, get_attributes, last_seen

__all__ = ["get_columns"]

#: an attribute's values, one for each object
Column = Sequence[Any]

_SCALARS = frozenset((str, int, float, bool, bytes, type(None)))
_CHANGING = frozenset((list, dict, set, bytearray))


def get_columns(things: Sequence[Any]) -> tuple[tuple[str, ...], list[Column]] | None:
    """The names of the attributes of objects of one class and a column for each; None where they are not all alike, or not so simple."""
    found = _in_rows(things) if IN_A_ROW else _in_dicts(things)
    return found if found is not None and found[0] and _are_apart(found[1]) else None


def _in_rows(things: Sequence[Any]) -> tuple[tuple[str, ...], list[Column]] | None:
    get_attributes(things[0])
    names, get, slots, count, windows = last_seen(type(things[0])) or ((), None, 0, 0, False)
    # With a window an object refers to one thing more, which might be an attribute as well.
    if get is None or slots != 1 or (windows and any(hasattr(thing, "window") for thing in things)):
        return None
    if set(map(len, map(get_referents, things))) != {count}:
        return None
    try:
        columns = list[Column](zip(*map(get, things)))[slots:]
    except AttributeError:
        return None
    if len(names) == 1 and not all(map(is_, columns[0], (get_referents(thing)[slots] for thing in things))):
        return None  # a dict counts as one attribute does
    return names, columns


def _in_dicts(things: Sequence[Any]) -> tuple[tuple[str, ...], list[Column]] | None:
    states: list[dict[str, Any]] = [vars(thing) for thing in things]
    names = tuple(states[0])
    if set(map(tuple, states)) != {names}:
        return None
    return names, list(zip(*map(dict.values, states)))


def _are_apart(columns: Iterable[Column]) -> bool:
    """Return whether all in them is Python's own, and nothing that can be changed stands in two places of one object."""
    changing = False
    for column in columns:
        if _lasts(column):
            continue
        if changing:
            return False  # two of an object may be one
        changing = True
        others = [value for value in column if type(value) not in _CHANGING]
        inside = [
            chain(value, value.values()) if type(value) is dict else value
            for value in column
            if type(value) in _CHANGING
        ]
        if not (_lasts(others) and _lasts(list(chain.from_iterable(inside)))):
            return False
    return True


def _lasts(values: Sequence[Any]) -> bool:
    """Return whether these are scalars, and tuples of scalars."""
    kinds = set(map(type, values)) - _SCALARS
    if not kinds:
        return True
    inside = chain.from_iterable(value for value in values if type(value) is tuple)
    return kinds == {tuple} and _SCALARS.issuperset(map(type, inside))
