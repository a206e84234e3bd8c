"""The attributes that were left out of state that other code wrote, and those that are new: said once, for all sub-units of a unit."""

from __future__ import annotations

from collections import Counter

from esault.messages.checkpoint import StateEvolved

__all__ = ["EvolutionTold"]

_DROPPED, _ADDED = "dropped", "added"


class EvolutionTold:
    """Adds up what sub-units say of their keys."""

    def __init__(self) -> None:
        #: (what, unit, class, attribute, whether of keys) -> how many, of what is still to be said
        self._counts: Counter[tuple[str, str, str, str, bool]] = Counter()
        #: what has been said: the same state is read again where all go back
        self._told: set[tuple[str, str, str, str, bool]] = set()

    def note(self, unit: str, message: StateEvolved) -> None:
        """Take what a sub-unit of a unit says."""
        for what, found in ((_DROPPED, message.dropped), (_ADDED, message.added)):
            for cls, name, count, keys in found:
                self._counts[what, unit, cls.rpartition(":")[2], name, keys] += count

    def lines(self) -> list[str]:
        """Return what has not been said yet, a line each."""
        lines = []
        for each, count in sorted(self._counts.items()):
            if each not in self._told:
                self._told.add(each)
                lines.append(_line(*each, count))
        self._counts.clear()
        return lines


def _line(what: str, unit: str, cls: str, name: str, keys: bool, count: int) -> str:
    of = f"{count:,} {'key' if keys else 'object'}{'s' if count > 1 else ''}"
    if what == _DROPPED:
        return (
            f"unit {unit!r}: attribute {name!r} of {cls} is in the state of {of} and no attribute of it any more: it was left out. If it was "
            "renamed, take the old one over in __setstate__(self, state)"
        )
    return f"unit {unit!r}: attribute {name!r} of {cls} is new: the state of {of} has none, and takes its default"
