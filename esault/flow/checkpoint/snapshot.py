"""The state of the moment of the cut, written bit by bit while tuples are processed again (PROTOCOL section 6, step 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Protocol

from esault.messages.checkpoint import Piece
from esault.routing.ring import canonical

__all__ = ["Snapshot", "StateFile", "Vault"]

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

    def finish(self) -> Piece:
        """Make it durable. Raises OSError."""
        ...


class Vault(Protocol):
    """Where state is kept; the runtime gives it, so that nothing here does I/O."""

    def create(self, number: int, incarnation: int, base: bool) -> StateFile:
        """A file for a sub-unit's part of a checkpoint."""
        ...

    def read(self, piece: Piece) -> Iterable[tuple[Any, bytes | None]]:
        """What was written. Raises CheckpointError."""
        ...


class Source(Protocol):
    """Where the state of keys lives: the operator."""

    def key_of(self, name: Any) -> Any:
        """The key as it travels."""
        ...

    def peek(self, name: Any) -> bytes | None:
        """The packed state of an element, which stays; None if there is none."""
        ...


class Snapshot:
    """Names that are still to be written. An element is written before it is next touched, so all are of one moment."""

    def __init__(
        self, number: int, names: Iterable[Any], source: Source, taker: Taker, clock: Callable[[], float]
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

    def before(self, keys: Iterable[Any]) -> None:
        """These keys are about to be processed."""
        pending = self._pending
        if not pending:
            return
        for key in dict.fromkeys(keys) if isinstance(keys, (tuple, list)) else keys:
            name = key if type(key) is str else canonical(key)
            if name in pending:
                self._write(name)

    def _write(self, name: Any) -> None:
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
        """Whether all is written."""
        return not self._pending

    def drop(self) -> None:
        """Give it up."""
        self._pending.clear()
        self._taker.drop()
