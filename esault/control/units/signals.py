"""Signals: what the components of one unit say to each other, at once and within one call."""

from __future__ import annotations

from esault.control.units.sub_unit_record import SubUnitRecord
from esault.value_class import value_class

__all__ = [
    "Begun",
    "ChangeEnded",
    "Died",
    "Finishing",
    "Introduced",
    "Look",
    "MayEnd",
    "MayFinish",
    "MayTakeOver",
    "NewOwnerStarted",
    "OwnersChanged",
    "Replaced",
    "SenderConfirmed",
    "SendersChanged",
    "SubUnitGone",
    "WentBack",
]


@value_class(frozen=True)
class MayTakeOver:
    """A sub-unit that was made for a change, or in place of a dead one, may be known to all by now."""

    record: SubUnitRecord


@value_class(frozen=True)
class Introduced:
    """A replacement is known to the units on both sides: it may take the dead sub-unit's place."""

    record: SubUnitRecord


@value_class(frozen=True)
class Begun:
    """A sub-unit has been started."""

    record: SubUnitRecord


@value_class(frozen=True)
class OwnersChanged:
    """A table with other owners has been published."""


@value_class(frozen=True)
class NewOwnerStarted:
    """A sub-unit that was made for a change may have been started."""


@value_class(frozen=True)
class SenderConfirmed:
    """One more of our sub-units knows a sender, or cannot be waited for any more."""


@value_class(frozen=True)
class SendersChanged:
    """A sender has come or gone."""


@value_class(frozen=True)
class Look:
    """Something that a change may wait for has happened: look whether it can go on."""


@value_class(frozen=True)
class Died:
    """A sub-unit is dead; nothing has been done about it yet."""

    record: SubUnitRecord


@value_class(frozen=True)
class Replaced:
    """A sub-unit is dead; where another one is needed in its place, that is being made."""

    record: SubUnitRecord


@value_class(frozen=True)
class SubUnitGone:
    """A sub-unit is gone for good: no answer will come from it."""

    incarnation: int


@value_class(frozen=True)
class WentBack:
    """All go back to a checkpoint: this life of the unit is over."""


@value_class(frozen=True)
class ChangeEnded:
    """A change has been carried out."""


@value_class(frozen=True)
class MayEnd:
    """The last of what the end of the unit waits for may have happened."""


@value_class(frozen=True)
class MayFinish:
    """The last sub-unit that had to finish may be gone."""


@value_class(frozen=True)
class Finishing:
    """All inputs have ended: the unit finishes."""
