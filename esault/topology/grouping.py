"""Groupings: which sub-unit a tuple goes to, and what one object of a bolt stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from esault.errors import TopologyError
from esault.value_class import value_class

__all__ = ["BUILT_IN", "Grouping", "Promises", "SplitKey", "broadcast", "by_key", "partial_key", "shuffle", "single"]


@value_class(frozen=True)
class Promises:
    """Promises of a grouping: where its tuples go. The engine asks for these, never for the grouping's class."""

    #: the key's place on the ring decides, so that a key's state moves with it; saying so makes no state move
    keyed: bool = False
    #: all tuples of a key go to one sub-unit
    whole_keys: bool = False
    #: any sub-unit will do: which one gets a tuple changes no result
    anywhere: bool = False
    #: a tuple may go to several sub-units
    to_several: bool = True
    #: each tuple goes to all sub-units
    to_all: bool = False
    #: a bolt with active replicas can take its tuples this way
    for_replicas: bool = False
    #: a key is (key, part) on the wire, and each part has a state of its own
    in_parts: bool = False


class Grouping:
    """Base of all groupings, and of one's own: subclass it and define `choose`.

    A grouping of one's own has one object per sub-unit; no state moves when parallelism changes.
    """

    #: what one object stands for: "key", "partial_key" (two for a key), "sub-unit" or "unit"
    objects: ClassVar[str] = "sub-unit"
    #: of the engine's groupings; one's own leaves it as it is
    promises: ClassVar[Promises] = Promises()

    def choose(self, key: Any, value: Any, sub_units: int, /) -> int | Sequence[int]:
        """The number, 0 <= i < sub_units, of the sub-unit that gets the tuple; or several of them."""
        raise NotImplementedError(f"{type(self).__name__} must define choose(key, value, sub_units)")

    def __repr__(self) -> str:
        """As a user writes it: "by_key()"; one's own "Mine()"."""
        make = BUILT_IN.get(type(self))
        given = ", ".join(map(repr, vars(self).values())) if make else ""
        return f"{make.__name__ if make else type(self).__name__.strip('_')}({given})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))


class ByKey(Grouping):
    """All tuples of a key go to one sub-unit, the owner of the key's place on the ring."""

    objects = "key"
    promises = Promises(keyed=True, whole_keys=True, to_several=False, for_replicas=True)


class Shuffle(Grouping):
    """Batches go to the sub-units in turn, those with the least waiting first."""

    promises = Promises(anywhere=True, to_several=False, for_replicas=True)


class Broadcast(Grouping):
    """Every sub-unit gets every tuple."""

    promises = Promises(to_all=True)


class Single(Grouping):
    """One sub-unit with one object gets every tuple."""

    objects = "unit"
    promises = Promises(to_several=False)


class PartialKey(Grouping):
    """Tuples of a key go to two elements in turn: (key, 0) and (key, 1); for skewed keys."""

    objects = "partial_key"
    promises = Promises(keyed=True, to_several=False, in_parts=True)


class SplitKey(Grouping):
    """By key, where the tuples of a hot key go to several parts of it, (key, "0"), (key, "1") and so on: keys with state of their own.

    It is that of `split_hot_keys=True` alone, where a bolt behind combines the parts.
    """

    objects = "key"
    promises = Promises(keyed=True, whole_keys=True, to_several=False, in_parts=True)

    def __repr__(self) -> str:
        return "by_key(), hot keys split"


def by_key(field: None = None) -> Grouping:
    """One object per key; its state moves when parallelism changes.

    No field is named: the key of a tuple is what was emitted as such, or what `key_by(...)` before the bolt says.
    """
    _check_no_field(field)
    return ByKey()


def _check_no_field(field: object) -> None:
    if field is not None:
        of = f"value[{field!r}]" if isinstance(field, str) else "..."
        raise TopologyError(
            f"by_key(): the key is the tuple's, and no field is named here; say it before the bolt: .key_by(lambda value: {of})"
        )


def shuffle() -> Grouping:
    """One object per sub-unit; a batch goes to the sub-unit with the fewest waiting."""
    return Shuffle()


def broadcast() -> Grouping:
    """Each sub-unit gets a copy of every tuple.

    One object per sub-unit; or, beside an input by_key(), what `process_broadcast` makes broadcast state of.
    """
    return Broadcast()


def single() -> Grouping:
    """One object, one sub-unit."""
    return Single()


def partial_key() -> Grouping:
    """Two objects per key, (key, 0) and (key, 1), that share its tuples."""
    return PartialKey()


#: the engine's own groupings and the functions that make them, whose parameters the grouping has as attributes
BUILT_IN: Mapping[type[Grouping], Callable[..., Grouping]] = {
    ByKey: by_key,
    Shuffle: shuffle,
    Broadcast: broadcast,
    Single: single,
    PartialKey: partial_key,
}
