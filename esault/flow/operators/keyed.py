"""The `BatchBolt.keyed` where keys come that Python takes for others: a dict in which True and 1 are two keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from esault.routing.ring import Canonical, Key, Name, key_of

__all__ = ["Keyed"]


#: its methods come before those of dict, which know nothing of names
_METHODS: Any = MutableMapping


class Keyed(_METHODS, dict[Key, Any]):  # type: ignore[misc]
    """A dict by key. Keys that hold a bool stand under a name; of all others no two are equal, and they stand as they are."""

    __slots__ = ()

    def __init__(self, items: Mapping[Key, Any]) -> None:
        super().__init__()
        self.update(items)

    def __getitem__(self, key: Key) -> Any:
        return dict.__getitem__(self, _name(key))

    def __setitem__(self, key: Key, value: Any) -> None:
        dict.__setitem__(self, _name(key), value)

    def __delitem__(self, key: Key) -> None:
        dict.__delitem__(self, _name(key))

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, _name(key))

    def __iter__(self) -> Iterator[Key]:
        return map(key_of, dict.__iter__(self))

    def __len__(self) -> int:
        return dict.__len__(self)

    def __reversed__(self) -> Iterator[Key]:
        return map(key_of, dict.__reversed__(self))

    def __repr__(self) -> str:
        return f"{{{', '.join([f'{key!r}: {value!r}' for key, value in self.items()])}}}"

    def copy(self) -> Keyed:
        """Another one with the same items."""
        return Keyed(self)


def _name(key: Any) -> Name:
    return Canonical(key) if _has_bool(key) else key


def _has_bool(key: Any) -> bool:
    return type(key) is bool or (type(key) is tuple and any(map(_has_bool, key)))
