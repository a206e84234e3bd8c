"""Control messages of the splits of a source, by who says them to whom. See `esault.control.units.split_assignment`."""

from __future__ import annotations

from esault.value_class import value_class

__all__ = [
    "AssignSplits",
    "AssignedSplit",
    "DiscoverSplits",
    "ExpectSplits",
    "NoMoreSplits",
    "RevokeSplits",
    "SplitPlace",
    "SplitsEnded",
    "SplitsFound",
    "SplitsRevoked",
]


@value_class(frozen=True)
class SplitPlace:
    """The place in a split up to which it has been read."""

    #: its position and the number of rows before it, packed by the codec; empty where it has ended
    position: bytes
    #: the split has been read to its end
    ended: bool = False
    #: of one that has ended: how far event time had come in it and those that ended before, by clock, where it goes on in silence
    times: tuple[float, ...] = ()


@value_class(frozen=True)
class AssignedSplit:
    """A split that a sub-unit is to read, and from where on."""

    id: str
    #: packed as in SplitPlace; None: from where it begins
    position: bytes | None = None
    #: rows of it that a sub-unit that died had read: where the run ends, what of them was not durable must be read again
    until: int = 0
    #: how far event time had come where it was read before, by clock; empty: it was not
    times: tuple[float, ...] = ()
    #: it was not there when the source was first read
    added: bool = False
    #: spouts that are read after this one do not wait for it: it had caught up where it was read before, or was found later
    caught_up: bool = False


# unit -> sub-unit ------------------------------------------------------------------------------


@value_class(frozen=True)
class DiscoverSplits:
    """Call `splits()` at once, and again every `discovery_interval` seconds; say SplitsFound when there are others than before."""

    #: no split is known, neither of this run nor of one that it goes on with
    first: bool = False


@value_class(frozen=True)
class AssignSplits:
    """Read these splits, besides those that you have; none: you have all that you get for now."""

    splits: tuple[AssignedSplit, ...]
    #: number of the hand-over that they come with; 0: none
    handover: int = 0
    #: how far event time had come in splits that ended before the run, by clock
    past: tuple[float, ...] = ()


@value_class(frozen=True)
class ExpectSplits:
    """Splits will come with this hand-over: let no receiver believe that time has come far until AssignSplits says that they are here."""

    handover: int


@value_class(frozen=True)
class RevokeSplits:
    """Read these splits no more; when all that was read of them is processed, say SplitsRevoked."""

    ids: tuple[str, ...]
    #: the sub-unit that goes on with them, and the number of the hand-over
    to: int
    handover: int


@value_class(frozen=True)
class NoMoreSplits:
    """All splits have ended, and there will be no others: the source has ended."""


# sub-unit -> unit ------------------------------------------------------------------------------


@value_class(frozen=True)
class SplitsFound:
    """Answer to DiscoverSplits: all splits that there are now; `last`: there will be no others."""

    incarnation: int
    ids: tuple[str, ...]
    last: bool


@value_class(frozen=True)
class SplitsRevoked:
    """Answer to RevokeSplits: where each goes on, but for those that have ended meanwhile."""

    incarnation: int
    splits: tuple[AssignedSplit, ...]
    handover: int


@value_class(frozen=True)
class SplitsEnded:
    """These splits have been read to their ends, and all of them is processed."""

    incarnation: int
    ids: tuple[str, ...]
