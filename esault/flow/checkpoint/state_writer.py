"""Writes the state of one sub-unit for checkpoints: what has changed since the last one, or all of it, while tuples flow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from typing import Protocol

from esault.errors import CheckpointError
from esault.flow.checkpoint.snapshot import FullSnapshot, Snapshot, Source, StateFile, StateStore
from esault.messages.checkpoint import Piece
from esault.payload.schema import Schema
from esault.routing.ring import Name

__all__ = ["SNAPSHOT_TURN", "StateWriter"]

#: seconds that a turn spends on writing state
SNAPSHOT_TURN = 0.0003
#: pieces that a checkpoint may consist of behind its base
MOST_PIECES = 100


class Saved(Source, Protocol):
    """The state of an operator, as far as it is written."""

    def saved_in_memory(self) -> list[Name]:
        """Names of all that has state in memory."""
        ...

    def saved_on_disk(self) -> Iterator[Name]:
        """Names of all that has state on a disk, read when they are asked for."""
        ...

    @property
    def saved_count(self) -> int:
        """Return about how many have state."""
        ...

    def schema(self) -> Schema:
        """Return the description of the classes in its state."""
        ...


class StateWriter:
    """Knows by name which keys may have changed, and has each written as it was at the cut before it changes."""

    def __init__(
        self,
        source: Saved,
        clock: Callable[[], float],
        seen_changes: bool,
        finished: Callable[[int, Piece | Future[Piece]], None],
        failed: Callable[[int, CheckpointError], None],
    ) -> None:
        """`seen_changes`: the keys of a batch are all that it changes; else all state is written each time.

        `finished` is given the number of a checkpoint and what was written for it, which is durable or, as a future, will be, and may raise CheckpointError as well; `failed` the number of one that cannot be.
        """
        self._source = source
        self._clock = clock
        self._seen_changes = seen_changes
        self._finished = finished
        self._failed = failed
        #: what is being written
        self.snapshot: Snapshot | FullSnapshot | None = None
        self._file: StateFile | None = None
        self._held: Callable[[], bool] = lambda: False
        #: names of keys that were processed since the last snapshot; None: all must be written
        self.dirty: set[Name] | None = None
        #: keys in the last base, and keys and pieces that were written since
        self._base_keys = self._later_keys = self._later_pieces = 0

    def begin(self, number: int, incarnation: int, state_store: StateStore, sure: bool) -> None:
        """Begin with checkpoint `number`; `sure`: what was written last is in one that is complete. Raises CheckpointError."""
        if self.snapshot is not None:  # of a checkpoint that was given up, which is not known here yet
            self.snapshot.drop()
            self.snapshot = self.dirty = None
        if not sure:
            self.dirty = None
        source, dirty = self._source, self.dirty
        if dirty is not None:
            self._later_keys += len(dirty)
            self._later_pieces += 1
            if self._later_keys > self._base_keys or self._later_pieces > MOST_PIECES:
                dirty = None
        if dirty is None:
            self._base_keys, self._later_keys, self._later_pieces = source.saved_count, 0, 0
        self.dirty = set() if self._seen_changes else None
        try:
            file = self._file = state_store.create(number, incarnation, dirty is None)
        except CheckpointError:
            self.dirty = None
            raise
        if dirty is None:
            there = source.saved_in_memory(), source.saved_on_disk()
            self.snapshot = FullSnapshot(number, *there, source, file, self._clock)
        else:
            self.snapshot = Snapshot(number, dirty, source, file, self._clock)

    def hand_over(self, snapshot: Snapshot, held: Callable[[], bool]) -> None:
        """Write this one, whose states another replica takes: there is no file, and its end is not reported.

        `held`: the other cannot take more for now.
        """
        self.snapshot, self._file, self._held = snapshot, None, held

    def advance(self, seconds: float = SNAPSHOT_TURN) -> None:
        """Write for a moment."""
        assert self.snapshot is not None
        if self._file is None and self._held():
            return
        try:
            if not self.snapshot.advance(seconds):
                self._finish()
        except CheckpointError as error:
            self._fail(error)

    def process(self, names: Collection[Name]) -> None:
        """The keys of these names are processed next."""
        if self.snapshot is not None:
            self.before(names)
        if self.dirty is not None:
            self.touched(names)

    def before(self, names: Iterable[Name]) -> None:
        """Write what has these names first: it is about to change while state is written."""
        assert self.snapshot is not None
        if not self._seen_changes:
            self.all()
            return
        try:
            self.snapshot.before(names)
        except CheckpointError as error:
            self._fail(error)

    def touched(self, names: Iterable[Name]) -> None:
        """Note that what has these names may have changed since the last snapshot."""
        assert self.dirty is not None
        self.dirty.update(names)
        if len(self.dirty) * 2 > self._base_keys:
            self.dirty = None  # then all of it takes little longer, and no count is needed

    def all(self) -> None:
        """Mark all keys as changed: what comes now may change any key, and it is not seen which."""
        self.dirty = None
        if self.snapshot is not None:
            try:
                self.snapshot.all()
                self._finish()
            except CheckpointError as error:
                self._fail(error)

    def abandon(self, number: int) -> None:
        """Checkpoints up to this one are given up."""
        if self.snapshot is not None and self.snapshot.number <= number:
            self.snapshot.drop()
            self.snapshot = None
        self.dirty = None  # what was written for it is in no checkpoint

    def _finish(self) -> None:
        assert self.snapshot is not None
        if self._file is not None:
            self._finished(self.snapshot.number, self._file.finish(self._source.schema()))
        self.snapshot = None

    def _fail(self, error: CheckpointError) -> None:
        """The run goes on, and writes all with the next checkpoint."""
        assert self.snapshot is not None
        self._failed(self.snapshot.number, error)
        self.snapshot = self.dirty = None
