"""States of keys, packed: those of objects that were put away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from esault.payload.codec import Codec
from esault.routing.ring import Name

__all__ = ["InMemory", "PackedStates", "memory_states"]


class PackedStates(Protocol):
    """A mapping from name to packed state: a dict, or one on a disk, which raises StateError where it cannot be read.

    Where it cannot be written, `states[name] = state` raises OSError, and the state is in memory. What is popped may come back;
    `discard` and, of one that was popped, `gone` say that a name does not, and `take` pops and says so. `in_memory` and `on_disk` together are the names that are here
    now. Those on a disk are read bit by bit as they are asked for, while states come and go: those that have gone meanwhile may be
    among them.
    """

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Name]: ...
    def __contains__(self, name: Name) -> bool: ...
    def __setitem__(self, name: Name, state: bytes) -> None: ...
    def get(self, name: Name, default: None = None, /) -> bytes | None: ...
    def pop(self, name: Name, default: None, /) -> bytes | None: ...
    def discard(self, name: Name, /) -> None: ...
    def gone(self, name: Name, /) -> None: ...
    def take(self, name: Name, /) -> bytes | None: ...
    def in_memory(self) -> list[Name]: ...
    def on_disk(self) -> Iterator[Name]: ...
    def clear(self) -> None: ...


class InMemory(dict[Name, bytes]):
    """States that are put away in memory."""

    __slots__ = ()

    def discard(self, name: Name) -> None:
        """Forget a name that does not come back."""
        self.pop(name, None)

    def gone(self, name: Name, /) -> None:
        """Do nothing: what was popped is not here."""

    def take(self, name: Name, /) -> bytes | None:
        """Take a state out, which does not come back."""
        return self.pop(name, None)

    def in_memory(self) -> list[Name]:
        """Names of all, at this moment."""
        return list(self)

    def on_disk(self) -> Iterator[Name]:
        """No name."""
        return iter(())


def memory_states(codec: Codec) -> PackedStates:
    """A place for states where no disk is given."""
    return InMemory()
