"""A checkpoint as it lies in a state directory, read without a run: which units, how large, and the state of each key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from esault.errors import FrameError, UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit
from esault.payload.codec import Codec
from esault.payload.opened_state import opened
from esault.routing.ring import Name, canonical
from esault.state import manifest
from esault.state.piece_file import read_piece
from esault.state.place import Place
from esault.state.state_dir import StateDir
from esault.topology.kept_windows import kind_of
from esault.topology.shown_windows import shown_windows

__all__ = ["CheckpointView"]


class CheckpointView:
    """One checkpoint. A run that goes on may remove it meanwhile: it keeps two."""

    def __init__(self, path: Place, number: int | None = None) -> None:
        """The newest that is whole, or the one of this number. Raises UsageError where there is none, CheckpointError for damage."""
        self.path = path
        self._codec = Codec()
        held = StateDir(path, locked=False)
        numbers = sorted(int(each.stem.rpartition("-")[2]) for each in held.manifests())
        if not numbers:
            hint = "; runs of --engine spark keep theirs in Spark's own form" if held.of_spark else ""
            raise UsageError(f"{path} has no checkpoint of eSault{hint}")
        if number is not None and number not in numbers:
            raise UsageError(f"{path} has no checkpoint {number}; it has: {', '.join(map(str, numbers))}")
        #: those that are there
        self.numbers = numbers
        if number is None:
            found, self.amiss = held.newest()
            assert found is not None
            self.checkpoint: CompletedCheckpoint = found
        else:
            self.amiss = []
            self.checkpoint = manifest.read(path / f"checkpoint-{number:08d}.json")

    def unit(self, name: str) -> CompletedUnit:
        """Return a bolt's part. Raises UsageError, naming the bolts."""
        bolts = [each for each, unit in self.checkpoint.units.items() if unit.kind == "bolt"]
        if name not in bolts:
            raise UsageError(f"checkpoint {self.checkpoint.number} has no bolt {name!r}; it has: {', '.join(bolts)}")
        return self.checkpoint.units[name]

    def packed(self, name: str) -> Iterator[tuple[Any, bytes]]:
        """Yield (key, packed state) of a bolt. What stands under no key, such as a watermark, is left out. Raises UsageError, CheckpointError."""
        unit = self.unit(name)
        for chain in unit.chains:
            states: dict[Name, tuple[Any, bytes | None]] = {}
            for piece in chain:
                states.update((canonical(key), (key, state)) for key, state in read_piece(self.path / piece.name))
            for key, state in states.values():
                if state is not None and (key is not None or unit.objects != "key"):
                    yield key, state

    def opened(self, name: str, key: Any, packed: bytes) -> Any:
        """Return a state: the attributes of a key's object as a dict, or what its __getstate__ gave; its timers are left out.

        Raises UsageError for a class that cannot be found here.
        """
        try:
            return opened(packed, self._codec)
        except FrameError as error:
            raise UsageError(
                f"{name}, key {key!r}: {error}. State that holds objects of your classes needs their file: --topology words.py"
            ) from None

    def shown(self, name: str, key: Any, packed: bytes) -> Any:
        """Return a state as people look at it: the same, and of windows each that is open with its bounds. Raises UsageError."""
        state, kind = self.opened(name, key, packed), kind_of(self.unit(name).windows)
        return state if kind is None else shown_windows(kind, state)

    def states(self, name: str) -> Iterator[tuple[Any, Any]]:
        """Yield (key, state) of a bolt, as `packed` and `shown` say. Raises UsageError, CheckpointError."""
        for key, packed in self.packed(name):
            yield key, self.shown(name, key, packed)

    def count(self, name: str) -> int:
        """Return how many keys a bolt has. Raises as `states` does for damage."""
        found = 0
        unit = self.unit(name)
        for chain in unit.chains:
            states: dict[Name, bool] = {}
            for piece in chain:
                states.update((canonical(key), state is not None) for key, state in read_piece(self.path / piece.name))
            if unit.objects == "key":
                states.pop(canonical(None), None)  # how far time had come, of bolts with timers or windows
            found += sum(states.values())
        return found
