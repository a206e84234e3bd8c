"""Questions about many keys at once, by loops that run in C: asked of each alone they would cost more than the key's processing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from operator import countOf
from typing import Any

from esault.routing.ring import MAX_KEY_DEPTH, Canonical, Key, Name, is_ambiguous

__all__ = ["are_keys", "have_bools", "names_of"]

#: types of what may be a key by itself
_SINGLE = frozenset({str, bytes, int, bool, tuple})
#: ... and of what may be in a tuple that is one
_INSIDE = _SINGLE | {type(None)}
#: ... without looking further
_FLAT = _INSIDE - {tuple}


def are_keys(keys: Sequence[Any]) -> bool:
    """Return whether a tuple may have any of these as its key, as far as their types tell; what a str holds is not looked at.

    By types and not by what has been seen: Python takes 2.0, and any subclass of str, for equal to a key.
    """
    kind = type(keys[0])
    if countOf(map(type, keys), kind) == len(keys):  # half the time that a set of types takes
        if kind is not tuple:
            return kind in _SINGLE
        if _FLAT.issuperset(map(type, chain.from_iterable(keys))):
            return True
    allowed = _SINGLE
    for depth, found in enumerate(_levels(keys)):
        if not found <= (_FLAT if depth == MAX_KEY_DEPTH else allowed):
            return False
        allowed = _INSIDE
    return True


def have_bools(keys: Sequence[Key]) -> bool:
    """Return whether any of these is a bool, or a tuple that holds one."""
    if countOf(map(type, keys), str) == len(keys):
        return False
    return any(bool in found for found in _levels(keys))


def names_of(keys: Collection[Key]) -> list[Name]:
    """The names of these keys, each once, in the order in which they came."""
    found = dict.fromkeys(keys)  # of keys that Python takes for one there is one
    if not _may_be_ambiguous(found.keys()):
        return list(found)
    ambiguous = {key for key in found if is_ambiguous(key)}
    return list(dict.fromkeys([Canonical(key) if key in ambiguous else key for key in keys]))


def _may_be_ambiguous(keys: Collection[Key]) -> bool:
    """Return whether one of these, which differ, is 0 or 1, or a tuple that holds one."""
    while keys and 0 not in keys and 1 not in keys:
        if countOf(map(type, keys), str) == len(keys):
            return False
        keys = {part for key in keys if type(key) is tuple for part in key}
    return bool(keys)


def _levels(keys: Sequence[Key]) -> Iterator[set[type]]:
    """The types of keys, then of what is in those that are tuples, and so on."""
    while keys:
        found = set(map(type, keys))
        yield found
        keys = [part for key in keys if type(key) is tuple for part in key]
