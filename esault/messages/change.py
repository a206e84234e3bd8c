"""Control messages of a live change (docs/explanation/rescaling.md), by who says them to whom. `version` is that of the table as it will be."""

from __future__ import annotations

from collections.abc import Mapping

from esault.value_class import value_class

__all__ = [
    "GIVES",
    "TAKES",
    "Cancel",
    "EndRead",
    "HandOverRanges",
    "HandOverTo",
    "HoldRanges",
    "Leave",
    "Leaving",
    "Left",
    "LostOldOwner",
    "Ranges",
    "RangesHandedOver",
    "RangesHeld",
    "StateInstalled",
]

#: of a sub-unit in a change of a unit with broadcast state: newcomers get a copy from it; it is a newcomer
GIVES, TAKES = "gives", "takes"

# unit -> sub-unit ------------------------------------------------------------------------

#: ((first place, last place, incarnation), ...)
Ranges = tuple[tuple[int, int, int], ...]


@value_class(frozen=True)
class HoldRanges:
    """To a new owner: hold rows of these ranges from now on; they come from the incarnations named.

    In units with broadcast state also to old owners, so that they know of the change before any sender does.
    """

    version: int
    moves: Ranges
    #: old owner -> its express endpoint
    olds: Mapping[int, str]
    #: all rows move: the unit has one object, or the new owner was made for this and gets from this one alone
    everything: bool = False
    #: GIVES, TAKES, or nothing where no broadcast state goes
    broadcast: str = ""

    @property
    def holds(self) -> bool:
        """Return whether it is for a new owner; one whose old owners are dead gets nothing, and has to know that."""
        return bool(self.moves) or self.broadcast != GIVES


@value_class(frozen=True)
class HandOverRanges:
    """To an old owner: carry rows of these ranges from now on, give them and their state to the incarnations named."""

    version: int
    moves: Ranges
    #: new owner -> its express endpoint
    news: Mapping[int, str]
    #: senders that may still send by an older table
    senders: tuple[int, ...]
    everything: bool = False
    #: what will be moved from it by the subscales to come
    later: Ranges = ()


@value_class(frozen=True)
class HandOverTo:
    """To an old owner: a new owner died; this one takes its place in the change."""

    version: int
    dead: int
    new: int
    express: str


@value_class(frozen=True)
class LostOldOwner:
    """To a new owner: this old owner died; what has not come from it will not."""

    version: int
    old: int


@value_class(frozen=True)
class Leave:
    """A change has taken your ranges: no new senders will come; say Ended when those you know have ended or are gone."""


@value_class(frozen=True)
class Cancel:
    """To a new owner: the change was dropped."""

    version: int


# sub-unit -> unit ------------------------------------------------------------------------


@value_class(frozen=True)
class RangesHeld:
    """Answer to HoldRanges."""

    incarnation: int
    version: int


@value_class(frozen=True)
class StateInstalled:
    """A new owner has all that was to come."""

    incarnation: int
    version: int
    moved_keys: int = 0
    moved_bytes: int = 0
    #: seconds that a row of a moved key was held at most
    held: float = 0.0


@value_class(frozen=True)
class RangesHandedOver:
    """An old owner has given everything and it was confirmed."""

    incarnation: int
    version: int
    #: to whom: the successor of a new owner that died may not be among them
    news: tuple[int, ...] = ()
    moved_keys: int = 0
    moved_bytes: int = 0


@value_class(frozen=True)
class EndRead:
    """A receiver has read END from this sender."""

    incarnation: int
    sender: int


# unit <-> unit ---------------------------------------------------------------------------------


@value_class(frozen=True)
class Leaving:
    """Unit to the units it sends to: this sender has sent END; say Left when all have read it."""

    incarnation: int


@value_class(frozen=True)
class Left:
    """Answer to Leaving."""

    target: str
    incarnation: int
