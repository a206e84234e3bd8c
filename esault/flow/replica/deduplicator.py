"""A memory of the rows that came already: each replica sends the same row, known by its id; the first one counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from esault.flow.channel.frame import Root

__all__ = ["Deduplicator"]


class Deduplicator:
    """A memory of ids by the root that they descend from, until that is done: then all that is to come of it was taken.

    A root that is replayed is the same root: its rows have the ids they had. What replicas put out at their end descends
    from no root of a spout's; these ids are kept, one for each row.
    """

    def __init__(self) -> None:
        #: (owner, number) of a root -> ids of its rows that were taken
        self._taken: dict[tuple[int, int], set[str]] = {}
        #: owner -> all its roots before this number are done
        self._low: dict[int, int] = {}
        #: ids of what replicas put out in their own name
        self._ends: set[str] = set()

    def admit(self, root: Root, ids: Sequence[str], own: bool = False) -> Sequence[int]:
        """Return the places of the rows that come for the first time, and take their ids; `own`: a replica's, at its end."""
        if own:
            taken = self._ends
        else:
            name = root[:2]
            if name[1] < self._low.get(name[0], 0):
                return ()
            found = self._taken.get(name)
            taken = self._taken[name] = set() if found is None else found
        count = len(taken)
        if taken.isdisjoint(ids):
            taken.update(ids)
            if len(taken) == count + len(ids):
                return range(len(ids))
            taken.difference_update(ids)
        first = []
        for i, id in enumerate(ids):
            if id not in taken:
                taken.add(id)
                first.append(i)
        return first

    def done(self, owner: int, low: int) -> None:
        """Forget the roots of this owner before this number, which are done: nothing of them is awaited any more."""
        before = self._low.get(owner, 0)
        if low <= before:
            return
        self._low[owner] = low
        taken = self._taken
        if low - before <= len(taken):
            for number in range(before, low):
                taken.pop((owner, number), None)
        else:
            for name in [name for name in taken if name[0] == owner and name[1] < low]:
                del taken[name]

    def living(self, owners: Collection[int]) -> None:
        """Forget all owners of roots but these: what others had open is replayed, if at all, under other names."""
        for name in [name for name in self._taken if name[0] not in owners]:
            del self._taken[name]
        for owner in [owner for owner in self._low if owner not in owners]:
            del self._low[owner]

    def __len__(self) -> int:
        """Return the number of ids that are remembered."""
        return sum(map(len, self._taken.values())) + len(self._ends)
