"""Messages about the slots of a node that several runs share. See `slot_pool`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SlotDemand", "SlotGrant", "SlotShare"]


@dataclass(frozen=True)
class SlotShare:
    """The slots of a node that one run holds."""

    run: str
    #: of its topology
    name: str
    #: None: it shares them with no other
    priority: int | None
    slots: int
    #: those that it cannot do without
    least: int
    #: it is starting, and has not said yet what it can do without
    starting: bool = False


@dataclass(frozen=True)
class SlotDemand:
    """Driver to node, of a run with a priority: what it holds there, would hold if it could, and cannot do without."""

    #: of the last grant that it knows
    number: int
    held: int
    wanted: int
    least: int


@dataclass(frozen=True)
class SlotGrant:
    """Node to driver, of a run with a priority: hold no more than so many slots here."""

    number: int
    slots: int
    #: how many more it would get if it wanted them
    obtainable: int
    shares: tuple[SlotShare, ...]
