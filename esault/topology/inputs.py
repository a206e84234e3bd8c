"""The inputs of a bolt: the groupings they come by, and what one object of the bolt stands for."""

from __future__ import annotations

from collections.abc import Sequence

from esault.errors import TopologyError
from esault.topology.function import call_of
from esault.topology.grouping import BUILT_IN, Grouping, Promises, SplitKey

__all__ = ["check_grouping", "common_objects"]

_CHOICE = f"one of {', '.join(map(call_of, BUILT_IN.values()))}, or an object of your own Grouping class"
_WORDS = {
    "key": "one object per key",
    "partial_key": "two objects per key",
    "unit": "one object for the whole unit",
    "sub-unit": "one object per sub-unit",
}


def check_grouping(unit: str, source: str, grouping: object) -> Grouping:
    """`grouping`, if it can bring the tuples of the stream `source` to `unit`."""
    where = f"unit {unit!r}, input {source!r}"
    if grouping is None:
        raise TopologyError(f"{where}: no grouping is given; write grouping=shuffle() or another: {_CHOICE}")
    if callable(grouping):
        for kind, maker in BUILT_IN.items():
            if grouping in (kind, maker):
                raise TopologyError(f"{where}: the grouping lacks its brackets; write {call_of(maker)}")
        if isinstance(grouping, type) and issubclass(grouping, Grouping):
            raise TopologyError(f"{where}: the grouping is a class; write {grouping.__name__}(...), an object of it")
    if not isinstance(grouping, Grouping):
        raise TopologyError(f"{where}: {grouping!r} ({type(grouping).__name__}) is no grouping; it is {_CHOICE}")
    own = type(grouping)
    if own in BUILT_IN or own is SplitKey:
        return grouping
    if isinstance(grouping, tuple(BUILT_IN)):
        raise TopologyError(f"{where}: {own.__name__} derives from a built-in grouping; derive it from Grouping")
    if own.choose is Grouping.choose:
        raise TopologyError(f"{where}: {own.__name__} does not define choose(self, key, value, sub_units)")
    if grouping.objects != "sub-unit":
        raise TopologyError(
            f"{where}: {own.__name__} says objects={grouping.objects!r}; a grouping of your own has one object per "
            "sub-unit: leave `objects` out. State that moves with its key needs by_key() or partial_key()"
        )
    if grouping.promises != Promises():
        raise TopologyError(f"{where}: {own.__name__} says `promises`, as the engine's own groupings do; leave it out")
    return grouping


def common_objects(unit: str, inputs: Sequence[tuple[str, Grouping]]) -> str:
    """Return what one object of `unit` stands for, on which its inputs, (stream, grouping), must agree."""
    first = inputs[0][1].objects
    if all(grouping.objects == first for _, grouping in inputs):
        return first
    said = "; ".join(f"{source!r} by {grouping!r}: {_WORDS[grouping.objects]}" for source, grouping in inputs)
    raise TopologyError(
        f"unit {unit!r}: its inputs do not agree in what one object stands for ({said}). Give them the same "
        "grouping; only shuffle(), broadcast() and groupings of your own go together, and broadcast() with by_key() where the bolt has "
        "process_broadcast"
    )
