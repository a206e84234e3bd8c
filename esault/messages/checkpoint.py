"""Control messages of checkpoints (docs/explanation/checkpoints.md). Checkpoints are numbered from 1 over all lives of a topology."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from esault.messages.splits import SplitPlace
from esault.value_class import value_class

__all__ = [
    "Abandon",
    "Checkpoint",
    "Completed",
    "CompletedCheckpoint",
    "CompletedUnit",
    "Handle",
    "NotSnapped",
    "Piece",
    "Restore",
    "Snapped",
    "StateEvolved",
]


@value_class(frozen=True)
class Checkpoint:
    """Driver to those that no channel leads to any more: cut here; then say Snapped."""

    number: int
    #: the run ends with it: spouts read no more behind the cut
    last: bool = False


@value_class(frozen=True)
class Piece:
    """A file of state that a sub-unit has written: durable, and part of nothing yet."""

    name: str
    #: whether it holds all keys of its sub-unit, or those that changed since its last one
    base: bool
    keys: int
    size: int
    checksum: int


@value_class(frozen=True)
class Restore:
    """Begin with the state of a checkpoint."""

    number: int
    #: of a bolt: what each sub-unit of its unit wrote, the base first
    chains: tuple[tuple[Piece, ...], ...] = ()
    #: of a bolt: the ranges whose keys it takes, first and last place
    ranges: tuple[tuple[int, int], ...] = ()
    #: its elements had been finished
    finished: bool = False
    #: of a bolt: rows that waited in inboxes of its unit
    in_flight: tuple[Piece, ...] = ()
    #: of a bolt that keeps its watermark: the ranges of those that wrote the chains; empty: an earlier version did not say
    written: tuple[tuple[tuple[int, int], ...], ...] = ()
    #: of a bolt: how its windows were cut, see `topology.kept_windows`; empty: an earlier version did not say
    windows: tuple[Any, ...] = ()


@value_class(frozen=True)
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
    #: rows that waited in its inbox at the cut
    in_flight: Piece | None = None
    #: of a spout that reads splits: where the cut goes through each that it has
    splits: dict[str, SplitPlace] = field(default_factory=dict)


@value_class(frozen=True)
class NotSnapped:
    """A sub-unit cannot do its part of checkpoint `number`, such as when the disk is full; the run goes on."""

    incarnation: int
    number: int
    text: str


@value_class(frozen=True)
class StateEvolved:
    """The state that a sub-unit begins with was written by other code: what of it was left out, and what is new.

    Of each: (module:class, or the class of the unit's objects; attribute; objects or keys; whether these are keys).
    """

    incarnation: int
    dropped: tuple[tuple[str, str, int, bool], ...] = ()
    added: tuple[tuple[str, str, int, bool], ...] = ()


@value_class(frozen=True)
class Completed:
    """Driver to all: checkpoint `number` is complete; sinks commit what they prepared for it."""

    number: int


@value_class(frozen=True)
class Abandon:
    """Driver to all: checkpoint `number` will not be completed; what was put aside for it goes on."""

    number: int


# what a complete checkpoint consists of --------------------------------------------------------


@value_class(frozen=True)
class Handle:
    """The handle that a sink in a sub-unit of `unit` prepared for checkpoint `number`."""

    unit: str
    sink: str
    number: int
    handle: Any


@value_class(frozen=True)
class CompletedUnit:
    """One unit's share in a checkpoint. Its sub-units are numbered from 0 here, by part."""

    #: "spout" or "bolt"
    kind: str
    #: what one object of it is for: "key", "unit", "sub-unit" ... (UnitPlan.objects)
    objects: str
    parallelism: int
    #: of a bolt: what each sub-unit wrote, the base first
    chains: tuple[tuple[Piece, ...], ...] = ()
    #: of a bolt: its table, as (first ring position, sub-unit)
    table: tuple[tuple[int, int], ...] = ()
    #: of a spout: part -> position, packed by the codec
    positions: dict[int, bytes] = field(default_factory=dict)
    #: of a spout: part -> the first sub-unit that read it
    sources: dict[int, int] = field(default_factory=dict)
    #: its elements had been finished
    finished: bool = False
    #: of a bolt: rows that waited in inboxes, a piece for each sub-unit that had some
    in_flight: tuple[Piece, ...] = ()
    #: of a bolt that keeps its watermark: the ranges of keys, first and last place, of each sub-unit that wrote a chain
    ranges: tuple[tuple[tuple[int, int], ...], ...] = ()
    #: of a spout that reads splits: where each goes on
    splits: dict[str, SplitPlace] = field(default_factory=dict)
    #: of a bolt: how its windows are cut, see `topology.kept_windows`; empty: an earlier version did not say
    windows: tuple[Any, ...] = ()

    @property
    def holds_rows(self) -> bool:
        """Return whether state, or rows that wait, stand under its name."""
        return any(self.chains) or bool(self.in_flight)

    @property
    def pieces(self) -> list[Piece]:
        """All files that belong to it."""
        return [piece for chain in self.chains for piece in chain] + list(self.in_flight)


@value_class(frozen=True)
class CompletedCheckpoint:
    """A complete checkpoint: all that a run goes back to, or a later one goes on from."""

    number: int
    run: str
    units: dict[str, CompletedUnit]
    #: what sinks commit with it; to commit twice does no harm
    handles: tuple[Handle, ...] = ()
    #: a sub-unit that is born later has at least this number, over all lives
    next_incarnation: int = 1
    #: when it was begun and complete, seconds since the epoch
    begun_at: float = 0.0
    completed_at: float = 0.0
    #: name of the topology
    topology: str = ""
    #: rows may stand twice in sinks: a newer checkpoint, with which they had committed, was damaged
    repeats: bool = False

    @property
    def over(self) -> bool:
        """Return whether all units had come to their end: there is nothing left to do but to tell sinks so."""
        return bool(self.units) and all(unit.finished for unit in self.units.values())

    @property
    def apart(self) -> set[str]:
        """Names of the bolts that are not chained when a run goes on from here: they had several processes, state, or rows that waited."""
        bolts = [(name, unit) for name, unit in self.units.items() if unit.kind == "bolt"]
        return {name for name, unit in bolts if unit.holds_rows or unit.parallelism > 1}

    @property
    def total_size(self) -> int:
        """Bytes of all that belongs to it."""
        return sum(p.size for unit in self.units.values() for p in unit.pieces)

    @property
    def size(self) -> int:
        """Bytes that it added to the state directory."""
        units = self.units.values()
        return sum(
            p.size for unit in units for p in [*(p for chain in unit.chains for p in chain[-1:]), *unit.in_flight]
        )
