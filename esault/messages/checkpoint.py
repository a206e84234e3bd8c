"""Control messages of checkpoints (PROTOCOL section 6). Checkpoints are numbered from 1 over all lives of a topology."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Abandon", "Checkpoint", "Completed", "Piece", "Restore", "Snapped"]


@dataclass(frozen=True)
class Checkpoint:
    """Driver to those that no channel leads to any more: cut here; then say Snapped."""

    number: int


@dataclass(frozen=True)
class Piece:
    """A file of state that a sub-unit has written: durable, and part of nothing yet."""

    name: str
    #: whether it holds all keys of its sub-unit, or those that changed since its last one
    base: bool
    keys: int
    size: int
    checksum: int


@dataclass(frozen=True)
class Restore:
    """Begin with the state of a checkpoint."""

    number: int
    #: of a bolt: what each sub-unit of its unit wrote, the base first
    chains: tuple[tuple[Piece, ...], ...] = ()
    #: of a bolt: the ranges whose keys it takes, first and last place
    ranges: tuple[tuple[int, int], ...] = ()
    #: its elements had been finished
    finished: bool = False


@dataclass(frozen=True)
class Snapped:
    """A sub-unit has done its part of checkpoint `number`."""

    incarnation: int
    number: int
    #: of a bolt with state that was written
    piece: Piece | None = None
    #: of a spout: where the cut goes through its source, and the number of rows before it, packed by the codec
    position: bytes | None = None
    #: what its sinks have prepared, by the number it was prepared for and by name
    handles: dict[int, dict[str, Any]] = field(default_factory=dict)
    #: its elements were finished before the cut
    finished: bool = False
    #: nothing will come or be emitted after the cut
    ended: bool = False


@dataclass(frozen=True)
class Completed:
    """Driver to all: checkpoint `number` is complete; sinks commit what they prepared for it."""

    number: int


@dataclass(frozen=True)
class Abandon:
    """Driver to all: checkpoint `number` will not be completed; what was put aside for it goes on."""

    number: int
