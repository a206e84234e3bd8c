"""Control messages of active replicas: one replica of a unit is brought up to date by another."""

from __future__ import annotations

from collections.abc import Mapping

from esault.messages.change import Ranges
from esault.value_class import value_class

__all__ = ["Copy", "CopyOver", "CopyReady"]

# unit -> sub-unit ------------------------------------------------------------------------


@value_class(frozen=True)
class Copy:
    """To a sub-unit of a living replica: when the mark of this number has come from all senders, send the state of these ranges."""

    number: int
    #: (first place, last place, who gets it)
    moves: Ranges
    #: who gets it -> its express endpoint
    news: Mapping[int, str]


@value_class(frozen=True)
class CopyOver:
    """To a sub-unit of a living replica: this one is given up."""

    number: int


# sub-unit -> unit ------------------------------------------------------------------------


@value_class(frozen=True)
class CopyReady:
    """Answer to Copy."""

    incarnation: int
    number: int
