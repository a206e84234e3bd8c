"""Pieces: the states of some keys in one row of Spark's store.

A piece is either

    [(key, state, last used)]                                         a state is packed by itself; None: the key is gone
    ("columns", names, keys, (column, ...), last used or None)        of objects that are alike: a column for each attribute

A key that stands in several pieces has the state of the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from esault.payload.codec import Codec
from esault.payload.packed_rows import Rows
from esault.routing.many_keys import names_of
from esault.routing.ring import Name, canonical

__all__ = ["Restored", "pack_columns", "rows_of"]

_COLUMNS = "columns"


def pack_columns(
    codec: Codec,
    keys: Sequence[Any],
    attributes: tuple[str, ...],
    columns: Sequence[Sequence[Any]],
    used: Sequence[float] | None,
) -> bytes:
    """A piece of objects that are alike. Raises PayloadError."""
    times = None if used is None else Rows(used)
    return codec.pack((_COLUMNS, attributes, Rows(keys), tuple(map(Rows, columns)), times))


def rows_of(codec: Codec, piece: bytes) -> Iterator[tuple[Any, bytes | None, float]]:
    """(key, state, last used) of all keys of a piece."""
    found = codec.unpack(piece)
    if not _in_columns(found):
        yield from found
        return
    _, attributes, keys, columns, used = found
    for key, values, time in zip(keys, zip(*columns), used or repeat(0.0)):
        yield key, codec.pack_value(dict(zip(attributes, values))), time


def _in_columns(found: Any) -> bool:
    return bool(found) and found[0] == _COLUMNS


class Restored:
    """States of a task as pieces have them, a place for packed states: those in columns become bytes when their key comes."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        #: bytes, or (names of attributes, value, ...)
        self._states: dict[Name, Any] = {}

    def add(self, piece: bytes, used: dict[Name, float] | None) -> int:
        """Take a piece behind those before; how many rows it has. `used` is told when each key was used last."""
        found = self._codec.unpack(piece)
        if not _in_columns(found):
            for key, state, time in found:
                name = canonical(key)
                if state is None:
                    self.discard(name)
                else:
                    self[name] = state
                if used is not None:
                    used[name] = time
            return len(found)
        _, attributes, keys, columns, times = found
        names = names_of(keys)
        self._states.update(zip(names, zip(repeat(attributes), *columns)))
        if used is not None:
            used.update(zip(names, times or repeat(0.0)))  # `expire_after` may be newer than the piece
        return len(keys)

    def _packed(self, found: Any) -> bytes | None:
        if type(found) is tuple:
            return self._codec.pack_value(dict(zip(found[0], found[1:])))
        state: bytes | None = found
        return state

    # as `PackedStates` asks for it -----------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[Name]:
        return iter(self._states)

    def __contains__(self, name: Name) -> bool:
        return name in self._states

    def __setitem__(self, name: Name, state: bytes) -> None:
        self._states[name] = state

    def get(self, name: Name, default: None = None, /) -> bytes | None:
        """The state, packed."""
        return self._packed(self._states.get(name))

    def pop(self, name: Name, default: None = None, /) -> bytes | None:
        """The same, which is no longer here."""
        return self._packed(self._states.pop(name, None))

    def take(self, name: Name, /) -> bytes | None:
        """The same, which does not come back."""
        return self.pop(name, None)

    def discard(self, name: Name, /) -> None:
        """Forget a name."""
        self._states.pop(name, None)

    def gone(self, name: Name, /) -> None:
        """Do nothing: what was popped is not here."""

    def in_memory(self) -> list[Name]:
        """Names of all."""
        return list(self._states)

    def on_disk(self) -> Iterator[Name]:
        """No name."""
        return iter(())

    def clear(self) -> None:
        """Forget all."""
        self._states.clear()
