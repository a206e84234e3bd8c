"""Texts that stand in many rows of a batch as one object: they travel once, and are one object where they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["shared_texts"]


def shared_texts(columns: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> list[str]:
    """Return keys, and names of fields of dicts among values, that are worth it; `columns` are keys and values of batches."""
    found: list[str] = []
    for keys, values in columns:
        # By what they are, and not by what they say. Where they are of lines of files, two that stand side by side are one.
        if len(keys) > 1:
            if keys[0] is keys[1] and type(keys[0]) is str:
                found += _keys(keys)
            if type(values[0]) is dict:
                found += _names(values)
    return found


def _keys(keys: Sequence[Any]) -> list[str]:
    distinct = set(keys)
    return [key for key in distinct if type(key) is str] if 2 * len(distinct) <= len(keys) else []


def _names(values: Sequence[Any]) -> list[str]:
    if type(values[-1]) is not dict:
        return []
    others = set(map(id, values[-1]))
    return [name for name in values[0] if type(name) is str and id(name) in others]
