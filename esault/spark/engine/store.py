"""The state that Spark keeps of a task, as a task asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

__all__ = ["Head", "Store"]

#: (token, bytes of the first pieces, bytes of later ones, later pieces, names given, ended, words of time)
Head = tuple[str, int, int, int, int, bool, bytes]


class Store(Protocol):
    """The state that Spark keeps of a task."""

    def head(self) -> Head | None:
        """None: nothing yet."""
        ...

    def set_head(self, head: Head) -> None:
        """In place of the one before."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """In the order in which they came."""
        ...

    def put(self, pieces: list[bytes]) -> None:
        """In place of all before."""
        ...

    def append(self, pieces: list[bytes]) -> None:
        """Behind them."""
        ...
