"""Operators with state for each key: what those of bolts and of windows have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from esault.errors import StateError
from esault.flow.operators.derived_class import maker
from esault.flow.operators.elements import Elements
from esault.flow.operators.operator import STOPPING, Operator, by_stream, defines
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError
from esault.routing.ring import Name, canonical
from esault.topology.bolt import Bolt
from esault.topology.function import is_async

__all__ = ["KeyedOperator"]


class KeyedOperator(Operator):
    """Makes the user's objects, and moves what `elements` holds under each key."""

    elements: Elements

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        emitter, factory = self.emitter, self.plan.factory
        assert factory is not None
        members = {"emit": emitter.function(), "context": self.context, **self._members()}
        self._make, cls = maker(factory, members, Bolt)
        #: of the objects, where it is known: each has the hooks of the first one
        self._cls: type[Any] | None = cls
        self._by_stream: bool | None = None if cls is None else by_stream(cls)
        self._tried_state = False
        #: elements that came with their state and have had no tuple since: those that tick are made before
        self._arrived: set[Name] = set()

        def trusted() -> None:
            members["emit"] = emitter.function()
            if cls is not None:
                cls.emit = members["emit"]

        emitter.on_trusted = trusted

    def share_early(self) -> None:
        cls = self._cls
        if self._shared or cls is None or not defines(cls, "open_shared") or is_async(cls.open_shared):
            return
        try:
            self._share(self._silent(self._make, "__init__"))
        except STOPPING:
            raise
        except BaseException:
            return

    def reload(self, keys: Sequence[Any]) -> None:
        for name in {canonical(key) for key in keys}:
            try:
                self.elements.put_away(name)
            except StateError as error:
                raise UserError(str(error)) from error
            if self.plan.tick_every:
                self._arrived.add(name)

    def order_by_key(self) -> None:
        self.elements.ordered = True

    def names(self) -> list[Name]:
        return self.elements.names()

    def scan(self) -> Iterator[Name]:
        return self.elements.scan()

    def remove_state(self, name: Name) -> bytes | None:
        return self.elements.take_state(name)

    def install_state(self, key: Any, state: bytes) -> None:
        self.elements.put_state(key, state)
        if self.plan.tick_every:
            self._arrived.add(canonical(key))

    def saved_names(self) -> list[Name]:
        return [*self.beside_keys(), *self.names()]

    def saved_in_memory(self) -> list[Name]:
        return [*self.beside_keys(), *self.elements.in_memory()]

    def saved_on_disk(self) -> Iterator[Name]:
        return self.elements.on_disk()

    @property
    def saved_count(self) -> int:
        return self.elements.count

    def beside_keys(self) -> list[Name]:
        """Return [None] where there is state that belongs to no key, which `peek` gives for it."""
        return []

    def peek(self, name: Name) -> bytes | None:
        return self.elements.peek_state(name)

    def _wake_arrived(self) -> Iterator[None]:
        """Make those that were at work where they came from, one by one."""
        while self._arrived:
            self.elements.wake(self._arrived.pop())
            yield
