"""Sub-units that are fewer than all units want, divided: each goes where it takes most off the tuples' waits.

As DRS does (Fu et al., DRS: Dynamic Resource Scheduling for Real-Time Analytics over Fast Streams, ICDCS 2015): every
unit has its least, and each further sub-unit goes to the unit whose waits it shortens most, which is optimal since
waits are convex in the number. DRS begins with enough for the work of all; where there is not even that, the unit with
the most work for each sub-unit comes first, as it holds up all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from esault.value_class import value_class

__all__ = ["Share", "divided", "wanted_in_all"]

#: share of its time above which a unit counts as full: what waits there grows, or is about to
FULL = 0.95
#: of what it is now, what the work of the fullest unit or all waits must fall to before one unit gives to another
WORTH_IT_FULL, WORTH_IT = 0.9, 0.8


@value_class(frozen=True)
class Share:
    """Sub-units that one unit has and could use."""

    width: int
    #: sub-units that it would have if there were enough, and the least that it may have
    wanted: int
    least: int
    #: tuples a second that come, and seconds that one takes
    rate: float
    service: float
    #: tuples that come at a time, and seconds that one may wait
    burst: float = 1.0
    latency: float = 0.1
    #: slots that one sub-unit takes: one for each active replica
    copies: int = 1

    @property
    def most(self) -> int:
        """Return the most that are of use."""
        return max(self.least, self.wanted)

    def work(self, n: int) -> float:
        """Share of their time that so many are busy; above 1 where they cannot keep up."""
        return self.rate * self.service / n

    def waits(self, n: int) -> float:
        """Return the waits of a second's tuples, in units of what each may wait; infinite where so many are full."""
        busy = self.work(n)
        if busy >= FULL:
            return math.inf
        return self.rate * self.service * max(1.0, self.burst / n) * busy / (2.0 * (1.0 - busy)) / self.latency


def wanted_in_all(shares: Mapping[str, Share]) -> int:
    """Return the slots that all would take if there were enough."""
    return sum(share.most * share.copies for share in shares.values())


def divided(slots: int, shares: Mapping[str, Share]) -> dict[str, int]:
    """Return how many sub-units each unit is to have of so many slots, from its least to what it wants.

    What a unit has and wants is taken from it only if that is clearly worth it: rates are estimates, and changes cost.
    """
    best = _filled(slots, shares, {name: share.least for name, share in shares.items()})
    kept = {name: max(share.least, min(share.width, share.most)) for name, share in shares.items()}
    if sum(n * shares[name].copies for name, n in kept.items()) > slots:
        return best
    stay = _filled(slots, shares, kept)
    (full, waits), (full_best, waits_best) = _cost(shares, stay), _cost(shares, best)
    if full >= FULL:
        return best if full_best < WORTH_IT_FULL * full else stay
    return best if waits_best < WORTH_IT * waits else stay


def _filled(slots: int, shares: Mapping[str, Share], begin: Mapping[str, int]) -> dict[str, int]:
    """Give what is left of the slots, one sub-unit after the other."""
    found = dict(begin)
    left = slots - sum(n * shares[name].copies for name, n in found.items())
    while True:
        able = [name for name, share in shares.items() if found[name] < share.most and share.copies <= left]
        if not able:
            return found
        name = max(able, key=lambda each: _gain(shares[each], found[each]))
        found[name] += 1
        left -= shares[name].copies


def _gain(share: Share, n: int) -> tuple[float, float]:
    """Return what one more is worth: how full the unit is if it is full, then the waits that a slot takes away."""
    if share.work(n) >= FULL:
        return share.work(n), 0.0
    return 0.0, (share.waits(n) - share.waits(n + 1)) / share.copies


def _cost(shares: Mapping[str, Share], widths: Mapping[str, int]) -> tuple[float, float]:
    """Return how full the fullest is, and the waits of all."""
    fullest = max((share.work(widths[name]) for name, share in shares.items()), default=0.0)
    return fullest, sum(share.waits(widths[name]) for name, share in shares.items())
