"""Layer two of the routing: the input table of a sub-unit, key -> element (Zhan et al. 2017, two-layer routing).

An element is the user's object for one key, made on the key's first tuple and put away when it is idle.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sized
from itertools import islice
from typing import Any

from esault.errors import EsaultError, FrameError, PayloadError, StateError
from esault.flow.operators.element_resources import RESOURCES, find_resources, without_resources
from esault.flow.operators.packed_states import InMemory, PackedStates
from esault.flow.operators.user_error import say_hook
from esault.payload.codec import Codec, explain
from esault.routing.ring import Canonical, Name, canonical, encode, key_of
from esault.topology.bolt import Bolt

__all__ = ["Elements", "check_own_names", "keeps_state", "pack_state", "put_state"]


#: so many elements are looked at for each that is put away, at most
LOOKED_AT = 4


def pack_state(unit: str, element: Any, codec: Codec) -> bytes:
    """The element's state, as it moves and is saved, without resources. Raises StateError naming the attribute."""
    try:
        state = element.__getstate__()
    except Exception as error:
        say_hook(error, "__getstate__")
        raise
    if RESOURCES:
        state = without_resources(element, state)
    try:
        return codec.pack_value(state, element)
    except PayloadError as error:
        if find_resources(element, state):
            return pack_state(unit, element, codec)
        if isinstance(state, dict):
            for name, value in state.items():
                reason = explain(value, element)
                if reason is not None:
                    raise StateError(
                        f"unit {unit!r}: attribute {name!r} of {type(element).__name__} cannot be saved or moved: {reason}. "
                        "What is no state, such as a model that only predicts, is returned by open_shared(self, context): self.context.shared has it"
                    ) from None
        raise StateError(
            f"unit {unit!r}: the state of {type(element).__name__} (its __getstate__()) cannot be saved or moved: {error}"
        ) from None


def check_own_names(unit: str, element: Any, key: Any) -> None:
    """Refuse an object outside windows that has set what is the engine's, and would not move. Raises EsaultError."""
    name = "window" if hasattr(element, "window") else "key" if element.key != key else None
    if name is not None:
        raise EsaultError(
            f"unit {unit!r}: {type(element).__name__} sets self.{name}, which is the engine's; use another name"
        )


def keeps_state(element: Any) -> bool:
    """Return whether there is state to save. One that cannot say it keeps some: it is refused where it is saved, not counted."""
    try:
        return bool(element.__getstate__())
    except Exception:
        return True


def put_state(unit: str, element: Any, state: bytes, codec: Codec) -> None:
    """Put a packed state into an element fresh from the factory. Raises StateError, or what its `__setstate__` raises."""
    try:
        found = codec.unpack(state, element)
    except FrameError as error:
        raise StateError(f"unit {unit!r}: the state of {type(element).__name__} cannot be restored: {error}") from None
    if type(element).__setstate__ is Bolt.__setstate__ and type(found) is not dict:
        if found is None:
            return  # it keeps nothing
        raise StateError(
            f"unit {unit!r}: {type(element).__name__}.__getstate__ returns a {type(found).__name__}, and nothing puts that back: return a "
            "dict of attributes, or define __setstate__(self, state)"
        )
    element.__setstate__(found)


class Elements(dict[Any, Any]):
    """The input table. Looking up a key makes its element if there is none.

    Keys that Python takes for equal but are not (1 and True) stand under `Canonical`, reached by the slow way.
    """

    __slots__ = (
        "_away",
        "_close",
        "_codec",
        "_emitted",
        "_look_alikes",
        "_make",
        "_plain",
        "_ready",
        "_unit",
        "made",
        "ordered",
    )

    def __init__(
        self,
        unit: str,
        make: Callable[[], Any],
        ready: Callable[[Any, Any], None],
        close: Callable[[Any], None],
        codec: Codec,
    ) -> None:
        super().__init__()
        self._unit = unit
        self._make = make
        #: called with (element, key) after it was made or restored, to open it
        self._ready = ready
        #: called with an element that leaves
        self._close = close
        self._codec = codec
        self._look_alikes: dict[Canonical, Any] = {}
        #: states of elements that were put away, packed
        self._away: PackedStates = InMemory()
        #: elements made or restored so far
        self.made = 0
        #: makes an element that needs nothing else; None where some do
        self._plain: Callable[[], Any] | None = None
        self._emitted: Sized = ()
        #: `live` goes by key
        self.ordered = False

    def make_plainly(self, make: Callable[[], Any], emitted: Sized) -> None:
        """Make elements of new keys by this alone, and not `ready` them; nothing may be added to `emitted` by it.

        So a new key costs little more than the user's object.
        """
        self._plain, self._emitted = make, emitted

    def __missing__(self, key: Any) -> Any:
        # 0 and 1 are False and True to Python, and so are slower.
        if self._plain is not None and (type(key) is str or (type(key) is int and not 0 <= key <= 1)):
            if self._away:
                state = self._away.pop(key, None)
                if state is not None:
                    return self._insert(key, key, state)
            emitted = len(self._emitted)
            try:
                element = self._plain()
            except BaseException as error:
                say_hook(error, "__init__")
                raise
            if len(self._emitted) == emitted:
                element.key = key
                self.made += 1
                self[key] = element
                return element
            # It emitted, which is refused below.
        name = canonical(key)
        if name is not key:
            element = self._look_alikes.get(name)
            if element is not None:
                return element
        return self._insert(name, key, self._away.pop(name, None))

    def _insert(self, name: Name, key: Any, state: bytes | None) -> Any:
        element = self._make()
        if not self.made and hasattr(element, "key"):
            raise EsaultError(
                f"unit {self._unit!r}: {type(element).__name__} sets self.key, which is the engine's; use another name"
            )
        element.key = key
        if state is not None:
            put_state(self._unit, element, state, self._codec)
        self.made += 1
        self._ready(element, key)
        if type(name) is Canonical:
            self._look_alikes[name] = element
        else:
            self[name] = element
        return element

    # what there is -----------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Elements, present or put away."""
        return self.here + self.away

    @property
    def here(self) -> int:
        """Elements that are present."""
        return len(self) + len(self._look_alikes)

    @property
    def away(self) -> int:
        """Elements that were put away."""
        return len(self._away)

    def live(self) -> Iterator[tuple[Name, Any]]:
        """(name, element) of all that are present."""
        if self.ordered:
            yield from sorted([*self.items(), *self._look_alikes.items()], key=lambda item: encode(key_of(item[0])))
            return
        yield from list(self.items())
        yield from list(self._look_alikes.items())

    def present(self, name: Name) -> Any:
        """The element of this name; None if there is none, or it was put away."""
        return self._look_alikes.get(name) if type(name) is Canonical else self.get(name)

    def holds(self, name: Name, element: Any) -> bool:
        """Return whether this element is still here."""
        return self.present(name) is element

    def names(self) -> Iterator[Name]:
        """Names of all, present or put away."""
        yield from list(self)
        yield from list(self._look_alikes)
        yield from list(self._away)

    def all_names(self) -> list[Name]:
        """Names of all, by key if `ordered`."""
        names = list(self.names())
        return sorted(names, key=lambda name: encode(key_of(name))) if self.ordered else names

    # leaving and coming ------------------------------------------------------------------------

    def put_away(self, name: Name) -> None:
        """Close an idle element and keep its state, packed."""
        element = self._take(name)
        if element is not None:
            state = pack_state(self._unit, element, self._codec)
            self._close(element)
            self._away[name] = state

    def put_states_in(self, states: PackedStates) -> None:
        """Keep the states of elements that are put away there from now on, those that have been, too."""
        before, self._away = self._away, states
        for name in before:
            state = before.get(name)
            assert state is not None
            with contextlib.suppress(OSError):  # then it is in memory, as before
                states[name] = state

    def spill(self, most: int, used: set[Name]) -> None:
        """Put away so many of those that are here longest. Raises StateError, and OSError where states cannot be written.

        A name in `used` is passed over once, and taken from there: a second chance, by which keys that come often stay.
        """
        table: dict[Name, Any] = self if len(self) >= len(self._look_alikes) else self._look_alikes
        goes: list[Name] = []
        stays: list[Name] = []
        for name in islice(table, LOOKED_AT * most):
            (stays if name in used else goes).append(name)
            if len(goes) == most:
                break
        used.difference_update(stays)
        goes += stays[: most - len(goes)]
        for name in goes:
            self.put_away(name)
        for name in stays:
            if name in table:
                table[name] = table.pop(name)

    def wake_all(self) -> None:
        """Restore all that were put away, to finish them."""
        for name in list(self._away):
            self._insert(name, key_of(name), self._away.pop(name, None))

    def take_state(self, name: Name) -> bytes | None:
        """Remove an element and give its packed state, closing it; None if there is none."""
        state = self._away.pop(name, None)
        self._away.discard(name)
        if state is not None:
            return state
        element = self._take(name)
        if element is None:
            return None
        state = pack_state(self._unit, element, self._codec)
        self._close(element)
        return state

    def peek_state(self, name: Name) -> bytes | None:
        """The packed state of an element, which stays; None if there is none."""
        state = self._away.get(name)
        if state is not None:
            return state
        element = self._look_alikes.get(name) if type(name) is Canonical else self.get(name)
        return None if element is None else pack_state(self._unit, element, self._codec)

    def put_state(self, key: Any, state: bytes) -> None:
        """Take over a key with its packed state; the element is made when its first tuple comes."""
        self._away[canonical(key)] = state

    def forget(self, name: Name) -> None:
        """Remove an element without a word to it."""
        self._take(name)
        self._away.discard(name)

    def forget_all(self) -> None:
        """Remove all elements without a word to them."""
        self.clear()
        self._look_alikes.clear()
        self._away.clear()

    def wake(self, name: Name) -> Any:
        """The element of this name, restored if it was put away; None if there is none."""
        if name in self._away:
            return self._insert(name, key_of(name), self._away.pop(name, None))
        return self.present(name)

    def _take(self, name: Name) -> Any:
        return self._look_alikes.pop(name, None) if type(name) is Canonical else self.pop(name, None)
