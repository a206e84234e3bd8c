"""The slots of one node, divided among the runs that share them: by priority, and without taking what a run cannot do without.

A run with a priority holds as many slots as it uses, and says how many it wants and how few it can come down to. Where slots are
short, one of lower priority is *preempted*: it is told to hold fewer, merges sub-units, and says so when they have gone; only then
another run gets its slots. Runs of the same priority take nothing from each other. A run without a priority keeps what it was given.

Time is passed in, and nothing is sent here: `step` returns what is to be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from esault.cluster.slot_messages import SlotDemand, SlotGrant, SlotShare

__all__ = ["PREEMPT_AFTER", "SlotClaim", "SlotPool", "allocate"]

#: seconds for which slots must be short before a run of lower priority is preempted: a load that swings is no reason
PREEMPT_AFTER = 1.0
#: more slots than any node has
_ALL = 1 << 30


@dataclass
class SlotClaim:
    """The slots that one run holds of a node, wants, and can come down to."""

    run: str
    name: str
    #: None: it neither takes from others nor gives
    priority: int | None
    #: what it was told to hold
    granted: int
    #: what it holds; more than `granted` while it shrinks
    held: int
    wanted: int
    least: int = 0
    #: it has no process here yet, and waits until it is granted what it wants
    starting: bool = False
    #: it has said what it can come down to
    told_least: bool = False
    #: number of the last grant; and it has been heard of
    number: int = 0
    heard: bool = True
    #: since when it wants more than it has, seconds
    short_since: float | None = None
    told: SlotGrant | None = None

    @property
    def occupied(self) -> int:
        """Return the slots that no other run may have now."""
        return max(self.granted, self.held)


def allocate(slots: int, claims: Iterable[SlotClaim]) -> dict[str, int]:
    """Return what each run should hold: the least of each, then what is wanted, the highest priority first."""
    shared = [claim for claim in claims if claim.priority is not None]
    found = {claim.run: claim.held for claim in claims if claim.priority is None}
    found |= {claim.run: min(claim.least, claim.held) for claim in shared}
    left = max(0, slots - sum(found.values()))
    for priority in sorted({claim.priority or 0 for claim in shared}, reverse=True):
        equals = [claim for claim in shared if claim.priority == priority]
        for claim in equals:  # what they have, they keep
            more = max(0, min(left, min(claim.occupied, claim.wanted) - found[claim.run]))
            found[claim.run] += more
            left -= more
        while left and (short := [claim for claim in equals if found[claim.run] < claim.wanted]):
            found[min(short, key=lambda claim: found[claim.run]).run] += 1
            left -= 1
    return found


class SlotPool:
    """See the module. `step` after each change, and now and then."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.claims: dict[str, SlotClaim] = {}

    @property
    def free(self) -> int:
        """Slots that no run has."""
        return max(0, self.slots - sum(claim.occupied for claim in self.claims.values()))

    def obtainable(self, priority: int | None) -> int:
        """Return how many slots a run of this priority could come to hold here that holds none yet."""
        if priority is None:
            return self.free
        new = SlotClaim("", "", priority, 0, 0, _ALL)
        return max(self.free, allocate(self.slots, [*self.claims.values(), new])[""])

    def admit(self, run: str, name: str, slots: int, priority: int | None) -> bool:
        """Let a run hold so many slots; whether it has them now, or it waits for those of others. `ValueError`: it cannot be."""
        if slots < (0 if priority is not None else 1) or slots > self.obtainable(priority):
            raise ValueError(f"{slots} slots of {self.obtainable(priority)}")
        granted = min(slots, self.free)
        self.claims[run] = SlotClaim(run, name, priority, granted, 0, slots, starting=True)
        return self.begun(run)

    def begun(self, run: str) -> bool:
        """Return whether a run that waits has all that it asked for; it holds it from then on."""
        claim = self.claims[run]
        if claim.granted < claim.wanted:
            return False
        claim.held = claim.least = claim.granted
        claim.starting, claim.heard = False, True
        return True

    def leave(self, run: str) -> None:
        """Forget a run that has gone."""
        self.claims.pop(run, None)

    def demand(self, run: str, word: SlotDemand) -> None:
        """Take what a run says of itself."""
        claim = self.claims[run]
        claim.held, claim.wanted, claim.least = max(0, word.held), max(0, word.wanted), max(0, word.least)
        claim.told_least = True
        claim.heard = claim.heard or word.number >= claim.number

    def step(self, now: float) -> dict[str, SlotGrant]:
        """Divide the slots anew; what is to be told to which runs."""
        ideal = allocate(self.slots, self.claims.values())
        for claim in self.claims.values():
            short = claim.priority is not None and ideal[claim.run] > claim.occupied
            claim.short_since = (claim.short_since if claim.short_since is not None else now) if short else None
        for claim in sorted(self.claims.values(), key=lambda each: -(each.priority or 0)):
            if claim.priority is not None and (claim.heard or claim.starting):
                self._grant(claim, ideal[claim.run], now)
        told = {}
        for claim in self.claims.values():
            grant = SlotGrant(claim.number, claim.granted, self._more(claim), self.shares())
            if claim.priority is not None and not claim.starting and grant != claim.told:
                claim.told = told[claim.run] = grant
        return told

    def _grant(self, claim: SlotClaim, ideal: int, now: float) -> None:
        before, occupied = claim.granted, claim.occupied
        if ideal >= occupied:
            claim.granted = min(ideal, occupied + self.free)
        elif ideal >= max(claim.wanted, claim.least) or ideal > claim.granted or self._preempts(now):
            claim.granted = ideal
        if claim.granted != before:
            claim.number += 1
            claim.heard = False

    def _preempts(self, now: float) -> bool:
        """Return whether a run has been short for long enough: while one is, only those of lower priority have more than they should."""
        return any(
            claim.short_since is not None and now >= claim.short_since + PREEMPT_AFTER for claim in self.claims.values()
        )

    def _more(self, claim: SlotClaim) -> int:
        """Return how many more slots it could come to hold."""
        if claim.priority is None:
            return 0
        others = [each for each in self.claims.values() if each is not claim]
        most = allocate(self.slots, [*others, replace(claim, wanted=_ALL)])[claim.run]
        return max(0, most - claim.occupied)

    def shares(self) -> tuple[SlotShare, ...]:
        """Return who holds what."""
        return tuple(
            SlotShare(claim.run, claim.name, claim.priority, claim.occupied, claim.least, not claim.told_least)
            for claim in self.claims.values()
        )
