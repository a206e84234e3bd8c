"""The unit as `auto` knows it: what a tuple costs and brings, what comes of what is sent, how its probes fare, since when it is full."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from esault.elasticity.estimators.budget_division import Share
from esault.elasticity.estimators.cores import need
from esault.elasticity.estimators.counted_rate import CountedRate
from esault.elasticity.estimators.few_keys import FewKeys
from esault.elasticity.estimators.growth_gain import GrowthGain
from esault.elasticity.estimators.idle_times import IdleTimes
from esault.elasticity.estimators.late_probes import LateProbes
from esault.elasticity.estimators.service_estimate import FEWEST, ServiceEstimate
from esault.elasticity.estimators.skew import Skew
from esault.elasticity.estimators.unanswered import Unanswered
from esault.elasticity.view import UnitView, UnitWindow

__all__ = ["AutoUnit"]

#: of the newest measurement in the share of what senders emit
LEARNING = 0.1
#: times that the first measurement of it must be more or less than one for one, to be taken as it is; and share of an inbox that may be taken
APART, FILLED = 2.0, 0.5
#: share of its time from which a unit is full; of processing alone, where tuples wait at every look
FULL, AT_WORK = 0.95, 0.7
#: seconds within which a sub-unit that is idle has answered a probe
ANSWERED = 1.0
#: tuples' time that one may wait in any case, and that a probe may take
WAITS, PROBED = 2.0, 3.0


@dataclass
class AutoUnit:
    """Takes the windows of one unit, one after the other."""

    idle: IdleTimes
    late: LateProbes
    skew: Skew
    #: seconds until a new sub-unit serves
    ready: float
    #: seconds that a quick tuple may wait
    quick: float
    #: seconds of a sub-unit that the time is worth for which the last change held keys
    hold: float = 0.0
    #: when the change was asked for that this was learnt from
    learnt_at: float = 0.0
    cost: ServiceEstimate = field(default_factory=ServiceEstimate)
    unanswered: Unanswered = field(default_factory=Unanswered)
    gain: GrowthGain = field(default_factory=GrowthGain)
    few_keys: FewKeys = field(default_factory=FewKeys)
    #: how many keys its tuples have, as of the last look; None where these are many, or it is unknown
    keys: int | None = None
    #: why it does not grow although it is full, as of the last look
    gains_nothing: str = ""
    #: tuples a second that it emits by itself: at ticks, by timers, or as windows close
    own: CountedRate = field(default_factory=CountedRate)
    #: tuples that wait, for which it has more sub-units than their rate takes; 0: it has none for that
    works_off: float = 0.0
    #: tuples a second that it processed in the newest window
    done: float = 0.0
    #: the newest window of its sources has a jump, of which it may hold a part only
    rising: bool = False
    #: tuples that come for one that its senders emit
    share: float = 1.0
    full_since: float | None = None
    #: its processes had always something to do, or its user code had, and tuples wait
    hungry: bool = False
    #: what it has and wants, as of the last look that judged it
    desire: Share | None = None
    #: sub-units that would do for all that comes to the run, also where a unit before it lets less through
    enough: int = 1
    #: tuples that came for it and were not processed, until it is known what one takes
    open: float = 0.0
    #: it has not been measured
    _guessed: bool = True
    #: tuples and seconds of the windows that are not used for the share yet
    _sent: float = 0.0
    _came: float = 0.0
    _length: float = 0.0

    @property
    def most_useful(self) -> int:
        """Sub-units beyond which none has anything to do: a key is in one of them."""
        return sys.maxsize if self.keys is None else self.keys

    @property
    def latency(self) -> float:
        """Seconds that a tuple may wait: where one takes long, as long as a few take."""
        return max(self.quick, WAITS * (self.cost.service or 0.0))

    def measure(self, unit: UnitView, window: UnitWindow, sent: float, useful: float, overhead: float) -> None:
        """Add a window. `sent`: tuples that senders emitted in it; `useful`: share of its time; `overhead`: over time of processing."""
        cost, width, emitted = self.cost, max(1, window.width), window.emitted
        if window.processed > 0:
            emitted = max(0.0, emitted - self.own.mean * window.seconds)
        elif window.seconds > 0:  # what comes out is of no tuple that it has got
            self.own.add(emitted / window.seconds, window.seconds)
            emitted = 0.0
        cost.add(window.processed, emitted, window.busy, window.seconds, width, overhead, window.opened)
        self.late.max_latency = max(self.quick, PROBED * (cost.service or 0.0))
        self.unanswered.observe(unit.samples, window.end)
        self.done = window.processed / window.seconds if window.seconds > 0 else 0.0
        self._sent, self._came = self._sent + sent, self._came + window.arrivals
        self._length += window.seconds
        # Slow ones tell of what has come when a tuple is over: arrivals of one window are those of several.
        told = self._came > 0 if cost.service is None else self._length >= cost.span
        if self._sent >= FEWEST and told:
            self._learn_share(self._came / self._sent, any(sample.occupancy > FILLED for sample in unit.samples))
            self._sent = self._came = self._length = 0.0
        self.open = max(0.0, self.open + self.share * sent - window.processed) if cost.service is None else 0.0
        # The engine's own work is not in `busy`: one before which tuples wait at every look is full from less on.
        waits = min(window.waiting_before, window.waiting) >= width
        needs = [need(sample) for sample in unit.samples]
        known = [each for each in needs if each is not None]
        # Of a process that was never idle the system says so, whatever it did besides calling user code. One that waits for a service
        # is idle to the system, and its user code takes all of the time.
        never_idle = len(known) == len(needs) > 0 and sum(known) >= FULL * len(known)
        self.hungry = waits and (never_idle or cost.busy > FULL)
        full = useful > FULL or self.hungry or (waits and cost.busy > AT_WORK)
        self.full_since = (self.full_since or window.end) if full else None
        self.gain.add(full and not unit.changing, window.processed, window.seconds, width)

    def _learn_share(self, share: float, filled: bool) -> None:
        """Take a measurement; `filled`: tuples wait to be read.

        Where a function step leaves most out, or makes many of one, the first is worth more than the guess that none does.
        """
        first, self._guessed = self._guessed and not filled, self._guessed and filled
        apart = share * APART < self.share or share > APART * self.share
        self.share += (1.0 if first and apart else LEARNING) * (share - self.share)

    def emits(self, rate: float) -> float:
        """Return the tuples a second that it emits where so many come."""
        return rate * self.cost.selectivity + self.own.mean

    def untried(self, unit: UnitView, now: float) -> bool:
        """Return whether nothing comes: its sub-units are idle, and answer."""
        window = unit.window
        nothing = window is not None and not (window.arrivals or window.waiting or window.busy)
        return nothing and self.unanswered.longest(now) < ANSWERED

    def stuck(self, unit: UnitView, now: float) -> float:
        """Seconds for which all of its sub-units have been at tuples that are not over, while others wait; 0 if they are not.

        Only as long as it is unknown what a tuple takes: after that, figures say more.
        """
        if self.cost.service is not None or self.open <= unit.width:
            return 0.0
        return self.unanswered.seconds(now)
