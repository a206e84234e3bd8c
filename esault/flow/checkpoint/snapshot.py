"""The state of the moment of the cut, written bit by bit while tuples are processed again (docs/explanation/checkpoints.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import filterfalse, islice
from typing import Any, Protocol

from esault.messages.checkpoint import Piece
from esault.payload.schema import Schema
from esault.routing.ring import Name

__all__ = ["FullSnapshot", "Snapshot", "StateFile", "StateStore"]

#: keys written between two looks at the clock
SLICE = 32


class Taker(Protocol):
    """Takes the states of a snapshot."""

    def add(self, key: Any, state: bytes | None) -> None:
        """The packed state of a key; None: there is none any more."""
        ...

    def drop(self) -> None:
        """Give it up."""
        ...


class StateFile(Taker, Protocol):
    """A file that is being written."""

    def finish(self, schema: Schema) -> Piece | Future[Piece]:
        """Make it durable, with what the classes in it look like; a future is done when it is. Raises CheckpointError, as does that."""
        ...


class StateStore(Protocol):
    """The place for state; the runtime gives it, so that nothing here does I/O."""

    def create(self, number: int, incarnation: int, base: bool, in_flight: bool = False) -> StateFile:
        """A file for a sub-unit's part of a checkpoint; `in_flight`: for rows in flight. Raises CheckpointError."""
        ...

    def read(self, piece: Piece) -> Iterable[tuple[Any, bytes | None]]:
        """Return what was written. Raises CheckpointError."""
        ...

    def schema(self, piece: Piece) -> Schema | None:
        """Return the description of the classes in it; None: a version that did not say wrote it. Raises CheckpointError."""
        ...


class Source(Protocol):
    """The place where the state of keys lives: `OperatorState`."""

    def key_of(self, name: Name) -> Any:
        """The key as it travels."""
        ...

    def peek(self, name: Name) -> bytes | None:
        """The packed state of an element, which stays; None if there is none."""
        ...


class FullSnapshot:
    """All that has state. An element is written before it is next touched, so all are of one moment.

    What was on a disk is found while it is written, so that names of keys by the million are neither listed at once nor held. Such
    an element that is touched after it was written is written once more, as it was.
    """

    def __init__(
        self,
        number: int,
        in_memory: list[Name],
        on_disk: Iterator[Name],
        source: Source,
        taker: Taker,
        clock: Callable[[], float],
    ) -> None:
        self.number = number
        self._in_memory = iter(in_memory)
        self._on_disk = on_disk
        #: names that were in memory and are written, and those that were touched
        self._written: set[Name] = set()
        self._source = source
        self._taker = taker
        self._clock = clock
        self.done = False

    def before(self, names: Iterable[Name]) -> None:
        """The keys of these names are about to be processed."""
        if not self.done:
            self._write_new(names)

    def _write_new(self, names: Iterable[Name]) -> None:
        """Write those that were not written, and keep them in mind."""
        new = dict.fromkeys(filterfalse(self._written.__contains__, names))
        if new:
            self._written.update(new)
            self._write(new)

    def _write(self, names: Iterable[Name]) -> None:
        peek, key_of, add = self._source.peek, self._source.key_of, self._taker.add
        for name in names:
            state = peek(name)
            if state is not None:  # else it is new, or has left
                add(key_of(name), state)

    def _write_some(self) -> None:
        """Write some of those that are left."""
        if names := list(islice(self._in_memory, SLICE)):
            self._write_new(names)
        elif names := list(islice(self._on_disk, SLICE)):
            self._write(filterfalse(self._written.__contains__, names))
        self.done = not names

    def advance(self, seconds: float) -> bool:
        """Write for so long; whether more is left. Raises StateError where a state on a disk cannot be read."""
        until = self._clock() + seconds
        while not self.done:
            self._write_some()
            if self._clock() >= until:
                break
        return not self.done

    def all(self) -> None:
        """Write what is left at once: everything may be touched now."""
        while not self.done:
            self._write_some()

    def drop(self) -> None:
        """Give it up."""
        self.done = True
        self._taker.drop()


class Snapshot:
    """Names that are still to be written. An element is written before it is next touched, so all are of one moment."""

    def __init__(
        self, number: int, names: Iterable[Name], source: Source, taker: Taker, clock: Callable[[], float]
    ) -> None:
        self.number = number
        #: in the order in which they are written, unless they are touched before; never from its front again: that a dict of
        #: names forgets what was taken from there takes ever longer
        names = list(names)
        self._order = iter(names)
        self._pending = set(names)
        self._source = source
        self._taker = taker
        self._clock = clock

    def before(self, names: Iterable[Name]) -> None:
        """The keys of these names are about to be processed."""
        pending = self._pending
        for name in names if pending else ():
            if name in pending:
                self._write(name)

    def _write(self, name: Name) -> None:
        self._pending.discard(name)
        self._taker.add(self._source.key_of(name), self._source.peek(name))

    def advance(self, seconds: float) -> bool:
        """Write for so long; whether more is left."""
        until = self._clock() + seconds
        pending = self._pending
        while pending:
            for name in islice(self._order, SLICE):
                if name in pending:
                    self._write(name)
            if self._clock() >= until:
                break
        return bool(pending)

    def all(self) -> None:
        """Write what is left at once: everything may be touched now."""
        for name in self._order:
            if name in self._pending:
                self._write(name)

    @property
    def done(self) -> bool:
        """Return whether all is written."""
        return not self._pending

    def drop(self) -> None:
        """Give it up."""
        self._pending.clear()
        self._taker.drop()
