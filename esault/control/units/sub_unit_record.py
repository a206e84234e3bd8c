"""One sub-unit as its unit knows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from esault.messages.control import Built, Table

__all__ = ["SubUnitRecord"]


@dataclass
class SubUnitRecord:
    """The knowledge that a unit has of one of its sub-units."""

    incarnation: int
    #: for a spout, which part it reads; for a bolt, its number among the first ones
    part: int
    #: incarnation of the dead sub-unit whose place in the table it takes
    replaces: int | None = None
    built: Built | None = None
    #: targets it is not yet registered with
    missing: set[str] = field(default_factory=set)
    #: those that came before it was sent its first ones, in order: a peer that left between two of them must be sent END
    tables: list[Table] = field(default_factory=list)
    #: it was sent its first tables
    connected: bool = False
    #: tables that it was sent and has not confirmed: target -> version
    switching: dict[str, int] = field(default_factory=dict)
    #: it is made for a change
    joining: bool = False
    #: why no process could be made for it
    unforked: str = ""
    #: the run ends its process, and makes another one in its place
    restarting: bool = False
    #: a change has taken its ranges away
    leaving: bool = False
    #: targets that have not read its END to the last
    leaving_from: set[str] = field(default_factory=set)
    started_at: float | None = None
    #: of a source in splits: how often some were assigned to it
    assigned: int = 0
    #: of a spout: what was there when it was opened is read and processed; and others that were to be read before it are
    caught_up: bool = False
    told_to_read: bool = False
    ended: bool = False
    finished: bool = False
    stopped: bool = False
    #: it leaves, and all that its sinks took is part of a complete checkpoint
    committed: bool = False
    #: it leaves, and waits for nothing but a checkpoint, which may not begin before others have gone on
    awaits_checkpoint: bool = False
    #: it leaves, and nothing holds it here any more
    told_to_stop: bool = False
