"""The state of each key of an operator: what is saved and moved of the objects of bolts and of windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from esault.errors import StateError
from esault.flow.operators.elements import Elements
from esault.flow.operators.user_error import UserError
from esault.routing.ring import Name, canonical

__all__ = ["KeyedState"]


class KeyedState:
    """Moves what `elements` holds under each key."""

    def __init__(self, elements: Elements, ticks: bool) -> None:
        self.elements = elements
        self._ticks = ticks
        #: elements that came with their state and have had no tuple since: those that tick are made before
        self._arrived: set[Name] = set()

    def reload(self, keys: Sequence[Any]) -> None:
        """Put the state of these keys through bytes. Raises UserError."""
        for name in {canonical(key) for key in keys}:
            try:
                self.elements.put_away(name)
            except StateError as error:
                raise UserError(str(error)) from error
            if self._ticks:
                self._arrived.add(name)

    def install(self, key: Any, state: bytes) -> None:
        """Take a key over, with its state."""
        self.elements.put_state(key, state)
        if self._ticks:
            self._arrived.add(canonical(key))

    def wake_arrived(self) -> Iterator[None]:
        """Make those that were at work where they came from, one by one."""
        while self._arrived:
            self.elements.wake(self._arrived.pop())
            yield
