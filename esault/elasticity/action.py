"""Actions that a policy can ask for. Each action gives its reason in words."""

from __future__ import annotations

from dataclasses import field

from esault.value_class import value_class

__all__ = ["Action", "Advise", "Merge", "Migrate", "NoChange", "Rescale", "Split", "Throttle"]


@value_class(frozen=True)
class Action:
    """Base: `reason` is for people."""

    reason: str
    #: which unit; a policy of one unit need not say
    unit: str = field(default="", kw_only=True)


@value_class(frozen=True)
class Split(Action):
    """A new sub-unit takes the upper part of this one's largest interval, from place `at` on (the middle by default)."""

    sub_unit: int
    at: int | None = None


@value_class(frozen=True)
class Merge(Action):
    """This sub-unit's interval joins that of a neighbour on the ring, and it leaves."""

    sub_unit: int
    #: which neighbour; it must be one
    into: int


@value_class(frozen=True)
class Rescale(Action):
    """So many sub-units in one change, each with the same share of the observed load."""

    n: int


@value_class(frozen=True)
class Throttle(Action):
    """The unit processes (a spout: reads) at most `rate` tuples a second, all sub-units together, for so many seconds."""

    rate: float
    seconds: float


@value_class(frozen=True)
class Migrate(Action):
    """This sub-unit goes on on that host."""

    sub_unit: int
    host: str


@value_class(frozen=True)
class Advise(Action):
    """Nothing the engine can do; something the user can. Said once."""


@value_class(frozen=True)
class NoChange(Action):
    """Nothing is to be done, and why: returned at each look, logged once when `cause` is another than before."""

    #: the reason without its figures, such as "slots"
    cause: str
