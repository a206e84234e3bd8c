"""The load of a unit over the ring, and tables that share it (the paper splits at midpoints: Zhan et al. 2017, growth).

Load is measured, not assumed: each sub-unit samples the keys that come to it, and its rate is spread over where they
fall. Ranges are given from those who have too much to those who have too little, and nothing else moves: with n
sub-units a new one takes 1/(n+1) of the load, not half of each one's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from esault.elasticity.load_share import PRIOR
from esault.elasticity.view import Sample
from esault.routing.ring import RING
from esault.routing.table import OutputTable

__all__ = ["LoadCurve", "shared"]

#: points by which a range stands as far as its keys are not sampled
UNKNOWN_POINTS = 64
#: shares that differ from the mean by less are left alone
TOLERANCE = 0.03


class LoadCurve:
    """Points on the ring with weights."""

    def __init__(self, points: Iterable[tuple[int, float]]) -> None:
        """`points` are (place, weight) in any order."""
        ordered = sorted(points)
        self._places = [place for place, _ in ordered]
        self._sums = [0.0, *accumulate(weight for _, weight in ordered)]

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> LoadCurve:
        """From samples: rates spread over sampled keys, and over the whole range as far as these are few."""
        points: list[tuple[int, float]] = []
        total = sum(sample.arrivals for sample in samples) or 1.0
        for sample in samples:
            load = sample.key_load
            rate = max(sample.arrivals if sample.load_share is None else total * sample.load_share, 1e-9)
            inside = [p for p in load.points if any(low <= p <= high for low, high in sample.ranges)]
            # Where most lie elsewhere they are from before a change.
            size = load.size if len(inside) * 2 >= len(load.points) else 0
            known = rate * size / (size + PRIOR)
            points += [(p, known / len(inside)) for p in inside if known]
            width = max(1, sum(high - low + 1 for low, high in sample.ranges))
            for low, high in sample.ranges:
                span = high - low + 1
                many = max(1, round(UNKNOWN_POINTS * span / width))
                weight = (rate - known) * span / width / many
                points += [(low + int((i + 0.5) * span / many), weight) for i in range(many)]
        return cls(points)

    @property
    def total(self) -> float:
        """All load."""
        return self._sums[-1]

    def load(self, low: int, high: int) -> float:
        """Of a range, both ends included."""
        places = self._places
        return self._sums[bisect_left(places, high + 1)] - self._sums[bisect_left(places, low)]

    def cut(self, low: int, high: int, upper: float) -> int | None:
        """The place in (low, high] from which on the range has a load as near to `upper` as can be; None if no cut helps.

        A heavy key's points lie at one place: no cut goes through them.
        """
        places, sums = self._places, self._sums
        first, after = bisect_left(places, low), bisect_left(places, high + 1)
        if after - first < 2 or upper <= 0:
            return None
        wanted = sums[after] - upper
        index = bisect_left(sums, wanted, first, after)
        best: tuple[float, int] | None = None
        for i in (index - 1, index, index + 1):
            # to either end of the run of points at one place
            for edge in (bisect_left(places, places[min(max(i, first), after - 1)]), i):
                if not first < edge < after or places[edge] == places[edge - 1]:
                    continue
                place = (places[edge - 1] + places[edge] + 1) // 2
                error = abs(sums[after] - sums[edge] - upper)
                if low < place <= high and (best is None or error < best[0]):
                    best = (error, place)
        if best is None or best[0] >= upper:
            return None  # nothing is nearer to what is wanted than giving nothing
        return best[1]


def shared(table: OutputTable, curve: LoadCurve, kept: Sequence[int], news: Sequence[int]) -> OutputTable:
    """A table in which `kept` and `news` have equal shares of the load, as far as keys can be divided.

    Owners that are in neither list give all they have. Only what is too much for one moves.
    """
    owners = [*kept, *news]
    goal = curve.total / len(owners)
    pieces: dict[int, list[tuple[int, int]]] = {o: table.ranges(o) if o in kept else [] for o in owners}
    loads = {o: sum(curve.load(*piece) for piece in pieces[o]) for o in owners}
    spare: list[tuple[int, int]] = [piece for o in table.owners() if o not in kept for piece in table.ranges(o)]
    for owner in kept:
        while loads[owner] > goal * (1 + TOLERANCE):
            piece = _shed(curve, pieces[owner], loads[owner] - goal)
            if piece is None:
                break
            spare.append(piece)
            loads[owner] -= curve.load(*piece)
    # The largest hole first; a piece that is too large for it is cut.
    spare.sort(key=lambda piece: curve.load(*piece))
    while spare:
        piece = spare.pop()
        empty = [o for o in owners if not pieces[o]]
        owner = min(empty or owners, key=lambda o: loads[o])
        room = goal - loads[owner]
        load = curve.load(*piece)
        if load > room * (1 + TOLERANCE) and len(owners) > 1:
            at = curve.cut(*piece, room)
            if at is not None and min(loads[o] for o in owners if o != owner) < goal:
                spare.append((piece[0], at - 1))
                piece = (at, piece[1])
                load = curve.load(*piece)
                spare.sort(key=lambda piece: curve.load(*piece))
        pieces[owner].append(piece)
        loads[owner] += load
    _fill_empty(pieces)
    return _joined(pieces, table.version)


def _shed(curve: LoadCurve, pieces: list[tuple[int, int]], excess: float) -> tuple[int, int] | None:
    """Take about `excess` away from an owner's pieces; None if what would go is too large for that."""
    small = [piece for piece in pieces if curve.load(*piece) <= excess]
    if small and len(pieces) > 1:
        piece = max(small, key=lambda piece: curve.load(*piece))
        if curve.load(*piece) > 0:
            pieces.remove(piece)
            return piece
    for piece in sorted(pieces, key=lambda piece: -curve.load(*piece)):
        at = curve.cut(*piece, excess)
        if at is not None and curve.load(at, piece[1]) < 2 * excess:
            pieces[pieces.index(piece)] = (piece[0], at - 1)
            return at, piece[1]
    return None


def _fill_empty(pieces: dict[int, list[tuple[int, int]]]) -> None:
    """Each owner has a range, be it without load."""
    for owner, own in pieces.items():
        if not own:
            old_owner = max(pieces.values(), key=lambda each: max((h - lo for lo, h in each), default=0))
            low, high = max(old_owner, key=lambda piece: piece[1] - piece[0])
            middle = low + (high - low) // 2 + 1
            old_owner[old_owner.index((low, high))] = (low, middle - 1)
            pieces[owner] = [(middle, high)]


def _joined(pieces: dict[int, list[tuple[int, int]]], version: int) -> OutputTable:
    """Neighbouring pieces of one owner are one interval."""
    pairs: list[tuple[int, int]] = []
    above = 0
    for low, high, owner in sorted((low, high, owner) for owner, own in pieces.items() for low, high in own):
        assert low == above, "pieces tile the ring"
        above = high + 1
        if not pairs or pairs[-1][1] != owner:
            pairs.append((low, owner))
    assert above == RING, "pieces tile the ring"
    return OutputTable(pairs, version)
