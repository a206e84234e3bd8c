"""Layer two of the routing: the input table of a sub-unit, key -> element (Zhan et al. 2017, two-layer routing).

An element is the user's object for one key, made on the key's first tuple and put away when it is idle.

It is one module of over 300 lines: all that makes, finds and takes out elements goes by the same three tables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import chain, islice
from typing import Any

from esault.errors import EsaultError
from esault.flow.operators.element_state import pack_state, put_state, state_columns
from esault.flow.operators.packed_states import InMemory, PackedStates
from esault.flow.operators.user_error import say_hook
from esault.payload.codec import Codec
from esault.routing.ring import Canonical, Name, canonical, encode, key_of

__all__ = ["Elements"]


#: so many elements are looked at for each that is put away, at most
LOOKED_AT = 4


def _popped(names: list[Name]) -> Iterator[Name]:
    """Take them out one by one: millions that are freed at once take as long as their look-up, and all else waits."""
    while names:
        yield names.pop()


class Elements(dict[Any, Any]):
    """The input table. Looking up a key makes its element if there is none.

    Keys that Python takes for equal but are not (1 and True) stand under `Canonical`, reached by the slow way.
    """

    __slots__ = (
        "_arrived",
        "_away",
        "_close",
        "_codec",
        "_emitted",
        "_look_alikes",
        "_made_names",
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
        ticks: bool = False,
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
        #: those that came with their state and have had no tuple since, which are made before a tick; None: there are no ticks
        self._arrived: set[Name] | None = set() if ticks else None
        #: elements made or restored so far
        self.made = 0
        #: their names, while a change in subscales keeps them
        self._made_names: list[Name] | None = None
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

    def make_all(self, make: Callable[[], Any]) -> None:
        """Make all elements by this alone, which calls no user code."""
        self._make = make
        self.make_plainly(make, ())

    def __missing__(self, key: Any) -> Any:
        # 0 and 1 are False and True to Python, and so are slower.
        if self._plain is not None and (type(key) is str or (type(key) is int and not 0 <= key <= 1)):
            if self._away:
                state = self._away.pop(key, None)
                if state is not None:
                    return self._restored(key, state)
            emitted = len(self._emitted)
            try:
                element = self._plain()
            except BaseException as error:
                say_hook(error, "__init__")
                raise
            if len(self._emitted) == emitted:
                element.key = key
                self.made += 1
                if self._made_names is not None:
                    self._made_names.append(key)
                self[key] = element
                return element
            # It emitted, which is refused below.
        name = canonical(key)
        if name is not key:
            element = self._look_alikes.get(name)
            if element is not None:
                return element
        return self._insert(name, key, self._away.pop(name, None))

    def _restored(self, key: Any, state: bytes) -> Any:
        """Make the element of a key that stands under itself, with its state, as `__missing__` makes one without."""
        assert self._plain is not None
        emitted = len(self._emitted)
        try:
            try:
                element = self._plain()
            except BaseException as error:
                say_hook(error, "__init__")
                raise
            if len(self._emitted) == emitted:
                element.key = key
                put_state(self._unit, element, state, self._codec)
        except BaseException:
            self._put_back(key, state)
            raise
        if len(self._emitted) != emitted:
            return self._insert(key, key, state)  # where this is refused
        self.made += 1
        if self._made_names is not None:
            self._made_names.append(key)
        self[key] = element
        return element

    def _insert(self, name: Name, key: Any, state: bytes | None) -> Any:
        try:
            return self._made(name, key, state)
        except BaseException:
            if state is not None:
                self._put_back(name, state)
            raise

    def _put_back(self, name: Name, state: bytes) -> None:
        """Keep the state of an element that could not be made, such as where `open` did not connect: it is tried again."""
        with contextlib.suppress(OSError):  # then it is in memory
            self._away[name] = state

    def _made(self, name: Name, key: Any, state: bytes | None) -> Any:
        element = self._make()
        if not self.made and hasattr(element, "key"):
            raise EsaultError(
                f"unit {self._unit!r}: {type(element).__name__} sets self.key, which is the engine's; use another name"
            )
        element.key = key
        if state is not None:
            put_state(self._unit, element, state, self._codec)
        self.made += 1
        if self._made_names is not None:
            self._made_names.append(name)
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

    def names(self) -> list[Name]:
        """Names of all, present or put away, at this moment: a change begins with them, while millions of keys wait."""
        names = list(self)
        for more in (self._look_alikes, self._away):
            if more:
                names += more
        return names

    def scan(self) -> Iterator[Name]:
        """Names of all that are here at this moment; those whose states are on a disk are read when they are asked for.

        States may leave meanwhile: their names may be among them.
        """
        return chain(_popped(self.in_memory()), self.on_disk())

    def note_made(self, names: list[Name] | None) -> bool:
        """Add the names of elements that are made or restored to these from now on, or to none."""
        self._made_names = names
        return True

    def in_memory(self) -> list[Name]:
        """Names of all that are in memory at this moment, as objects or packed."""
        names = list(self)
        names += self._look_alikes
        names += self._away.in_memory()
        return names

    def on_disk(self) -> Iterator[Name]:
        """Names of all others, read when they are asked for; some may have left meanwhile."""
        return self._away.on_disk()

    def all_names(self) -> list[Name]:
        """Names of all, by key if `ordered`."""
        names = self.names()
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

    def wake_all(self, wake: Callable[[Name], Any] | None = None) -> None:
        """Restore all that were put away, to finish them; `wake`: by this."""
        wake = wake or self.wake
        for name in list(self._away):
            wake(name)

    def take_state(self, name: Name) -> bytes | None:
        """Remove an element and give its packed state, closing it; None if there is none."""
        state = self._away.take(name)
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

    def columns_of(self, names: Sequence[Name]) -> tuple[tuple[str, ...], list[Sequence[Any]]] | None:
        """The states of elements, which stay, in columns; None where one is not here, or they are not alike."""
        elements = list(map(self.get, names))
        alike = len(set(map(type, elements))) == 1 and elements[0] is not None
        return state_columns(elements) if alike else None

    def put_state(self, key: Any, state: bytes) -> None:
        """Take over a key with its packed state; the element is made when its first tuple comes."""
        name = canonical(key)
        self._away[name] = state
        if self._arrived is not None:
            self._arrived.add(name)

    def reload(self, keys: Iterable[Any]) -> set[Name]:
        """Put the state of these keys through bytes; their names. Raises StateError."""
        names = {canonical(key) for key in keys}
        for name in names:
            self.put_away(name)
        if self._arrived is not None:
            self._arrived |= names
        return names

    def wake_arrived(self, wake: Callable[[Name], Any] | None = None) -> Iterator[None]:
        """Make those that were at work where they came from, one by one; `wake`: by this."""
        wake = wake or self.wake
        while self._arrived:
            wake(self._arrived.pop())
            yield

    def take_out(self, name: Name, element: Any) -> bool:
        """Remove an object that is at work, without a word to it; whether it was here."""
        if self.present(name) is not element:
            return False
        self._take(name)
        self._away.gone(name)
        return True

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
