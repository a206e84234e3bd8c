"""A savepoint made of another checkpoint, with the state of its keys as a function of the user's says."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from esault.errors import FrameError, PayloadError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Piece
from esault.payload.class_names import named
from esault.payload.codec import Codec
from esault.payload.schema import describe_all
from esault.payload.timed_state import with_timers, without_timers
from esault.routing.ring import Name, canonical
from esault.state.checkpoint_diff import is_same
from esault.state.checkpoint_view import CheckpointView
from esault.state.piece_file import read_piece, read_schema
from esault.state.place import Place, link
from esault.state.savepoints import Savepoints, copy_spool
from esault.state.state_store import piece_writer

__all__ = ["Rewritten", "rewrite_checkpoint"]

#: rewrite(unit, key, state) -> the state that it has from now on; None: the key goes
Rewrite = Callable[[str, Any, Any], Any]


@dataclass
class Rewritten:
    """A count of what became of the keys of one bolt."""

    unit: str
    changed: int = 0
    removed: int = 0
    same: int = 0


def rewrite_checkpoint(
    view: CheckpointView, function: Rewrite, savepoints: Savepoints, name: str
) -> tuple[Place, list[Rewritten]]:
    """Write a savepoint, durable in one step, and return its folder and what became of the keys of each bolt.

    What stands under no key, such as watermarks and rows in flight, and the positions of sources stay as they are.
    Raises UsageError for what the function does, CheckpointError.
    """
    found: list[Rewritten] = []

    def fill(folder: Place) -> CompletedCheckpoint:
        kept = view.checkpoint
        units = {}
        for each, unit in kept.units.items():
            if unit.kind != "bolt":
                units[each] = unit
                continue
            counts = Rewritten(each)
            writer = _Rewriter(view, folder, function, each, unit, counts)
            chains = tuple((writer.chain(number, chain),) if chain else () for number, chain in enumerate(unit.chains))
            for piece in unit.in_flight:
                link(view.path / piece.name, folder / piece.name)
            units[each] = replace(unit, chains=chains)
            if any(unit.chains):
                found.append(counts)
        if isinstance(folder, Path):
            copy_spool(view.path, folder)
        return replace(kept, units=units)

    return savepoints.build(name, fill), found


class _Rewriter:
    """One unit of a checkpoint."""

    def __init__(
        self, view: CheckpointView, folder: Place, function: Rewrite, name: str, unit: CompletedUnit, counts: Rewritten
    ) -> None:
        self._view = view
        self._folder = folder
        self._function = function
        self._name = name
        self._unit = unit
        self._counts = counts
        self._codec = Codec()

    def chain(self, number: int, chain: tuple[Piece, ...]) -> Piece:
        """Write what one sub-unit has, in one piece."""
        states: dict[Name, tuple[Any, bytes | None]] = {}
        for piece in chain:
            read = read_piece(self._view.path / piece.name)
            states.update((canonical(key), (key, state)) for key, state in read)
        path = self._folder / chain[-1].name
        writer = piece_writer(path, True, self._codec)
        try:
            for key, state in states.values():
                own = key is not None or self._unit.objects != "key"
                now = self._rewritten(key, state) if state is not None and own else state
                if now is not None:
                    writer.add(key, now)
            then = read_schema(self._view.path / chain[-1].name)
            made = writer.finish({**(then or {}), **describe_all(named())})
            return made.result() if isinstance(made, Future) else made
        except BaseException:
            writer.drop()
            raise

    def _rewritten(self, key: Any, packed: bytes) -> bytes | None:
        name, counts = self._name, self._counts
        state, timers = without_timers(packed, self._codec)
        opened = self._view.opened(name, key, state)
        try:
            made = self._function(name, key, opened)
        except Exception as error:
            raise UsageError(f"rewrite({name!r}, {key!r}, ...): {type(error).__name__}: {error}") from error
        if made is None:
            counts.removed += 1
            return None
        try:
            written = _closed(self._codec, self._codec.unpack(state), made)
        except (PayloadError, FrameError, ValueError) as error:
            raise UsageError(f"rewrite({name!r}, {key!r}, ...) returned what cannot be kept: {error}") from None
        # Opened once more, since the function may have changed what it was given.
        if is_same(self._view.opened(name, key, state), made):
            counts.same += 1
            return packed
        counts.changed += 1
        return with_timers(written, timers, self._codec)


def _closed(codec: Codec, before: Any, after: Any) -> bytes:
    """The state packed as it was: what was packed in it, such as the objects of windows, is packed again."""
    return codec.pack_value(_packed(codec, before, after))


def _packed(codec: Codec, before: Any, after: Any) -> Any:
    if type(before) is tuple and _holds_packed(codec, before):
        if type(after) is not tuple or len(after) != len(before):
            raise ValueError(f"a tuple of {len(before)} is wanted in its place, as it was given")
        return tuple(_packed(codec, a, b) for a, b in zip(before, after))
    if type(before) is bytes and _is_packed(codec, before):
        return codec.pack_value(after)
    return after


def _holds_packed(codec: Codec, state: Any) -> bool:
    return (
        _is_packed(codec, state)
        if type(state) is bytes
        else type(state) is tuple and any(_holds_packed(codec, part) for part in state)
    )


def _is_packed(codec: Codec, data: bytes) -> bool:
    try:
        codec.unpack(data)
    except FrameError:
        return False
    return True
