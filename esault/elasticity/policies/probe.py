"""The policy `probe`: how many sub-units a unit needs, from its own probes and rates; what the eSault paper leaves weak, done better.

The paper splits one interval in the middle whenever enough probes were late, and merges when the rate has fallen far below a
peak. Here the number of sub-units follows from what was measured: tuples a second that come (and would come, if sources were
not held back), times the seconds that one takes without waiting, over the share of its time that a sub-unit should be busy.
So a jump by eight is one change; ranges are cut where the observed load says, so that six sub-units share like six;
the peak that keeps a unit from shrinking decays; and between growing and shrinking lies a band in which nothing happens.
Probes say when waiting has become long although the numbers look well.

It looks at each unit alone. `auto` does what it does and looks at senders, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from esault.elasticity.action import Action, NoChange, Rescale
from esault.elasticity.estimators.cores import affordable
from esault.elasticity.estimators.late_probes import LateProbes
from esault.elasticity.estimators.rate_estimate import RateEstimate
from esault.elasticity.estimators.service_estimate import ServiceEstimate
from esault.elasticity.estimators.skew import Skew
from esault.elasticity.estimators.unanswered import Unanswered
from esault.elasticity.limits import above_zero, shares
from esault.elasticity.view import HELD_BACK, Sample, View

__all__ = ["Probe"]

#: seconds over which rates are taken at most, and tuples' time that they are: slow tuples tell of themselves when they are over
LONGEST, SPAN = 16.0, 3.0
#: tuples' time that a probe may take
PROBED = 3.0
#: a closed-loop source gives no measure of how much more would come: growth by this factor a change
BLIND_GROWTH = 2.0
#: most that a source's lag may multiply what is seen
MOST_DEMAND = 32.0
#: a rate above so many times the last one may still be on its way up
RISING = 1.3
#: share of its time from which a sub-unit is full
FULL = 0.95


@dataclass
class Probe:
    """Parameters in seconds and shares."""

    #: share of its time that a sub-unit should be busy
    target: float = 0.65
    #: above this share the unit grows
    high: float = 0.85
    #: a probe that takes longer shows that tuples wait too long
    max_latency: float = 0.1
    #: above this share it grows if many probes are late besides
    likely: float = 0.72
    #: rates are taken over so long
    window: float = 0.5
    #: share of probes in `calm` seconds that may be late while there is room; beyond, the unit grows
    late_share: float = 0.2
    calm: float = 2.0
    #: steady rates are averaged over so long at most
    memory: float = 10.0
    #: time in which a backlog should be gone
    catch_up: float = 3.0
    #: half-life of the peak that shrinking waits for
    half_life: float = 5.0
    #: fewer sub-units must have been enough for so long
    patience: float = 5.0
    #: after a change nothing is judged for so long
    settle: float = 0.5
    #: between two probes; None: as the run is set
    probe_period: float | None = None

    def __post_init__(self) -> None:
        shares("probe", target=self.target, high=self.high)
        above_zero("probe", window=self.window, catch_up=self.catch_up, half_life=self.half_life)
        self._rate = RateEstimate(self.memory)
        self._next_at = 0.0
        self._probes = LateProbes(self.max_latency, self.calm)
        self._skew = Skew(self.high, self.calm)
        self._cost = ServiceEstimate()
        self._unanswered = Unanswered()
        #: seconds over which the next samples are to be taken, and since when these were too few to tell
        self.span = self.window
        self._untold_since: float | None = None
        self._peak = 0.0
        self._peak_at = 0.0
        self._under_since: float | None = None
        self._full_since: float | None = None
        #: the newest rate, and whether it was waited for to be steady
        self._newest = 0.0
        self._waited = False

    # measuring -------------------------------------------------------------------------------------

    def decide(self, view: View) -> Sequence[Action]:
        """One look; mostly nothing."""
        unit, now = view.unit, view.now
        samples = unit.samples
        self._probes.observe(samples, now)
        self._unanswered.observe(samples, now)
        if now < self._next_at:
            return ()
        settled = unit.changed_at is None or now >= unit.changed_at + max(self.settle, self.span)
        told = bool(samples) and self._told(samples)
        if unit.changing or not settled or not told:
            self._under_since = None
            self._skew.forget()
            if unit.changing or not settled:
                self._probes.forget()
                self._untold_since = None
                return ()
            return self._unmeasured(view)
        self._untold_since = None
        self._next_at = now + self.span - 1e-6
        factor, blind = self._held_back(view)
        newest = sum(s.arrivals for s in samples) * factor
        # A jump that falls into a window is seen in part: what is sized by it would be too small.
        rising = newest > RISING * max(self._newest, 1.0) and not self._waited
        self._newest, self._waited = newest, rising
        self._rate.add(newest, self.span)
        if not any(s.busy > FULL for s in samples):
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        decayed = self._peak * 0.5 ** ((now - self._peak_at) / self.half_life) if self._peak else 0.0
        self._peak, self._peak_at = max(self._rate.mean, decayed), now
        service = self._measured_service(samples)
        if service is None:
            return self._unmeasured(view)
        action = None if rising else self._grow(view, service, blind)
        action = action or self._skew.share_anew(unit, now, self._rate.mean, service) or self._shrink(view, service)
        advice = self._skew.heavy_key(unit, service, now)
        return [a for a in (action, advice) if a is not None]

    def _told(self, samples: Sequence[Sample]) -> bool:
        """Return whether all have told of most of a window; where they are slow, of half of a longer one.

        One that is slow answers all probes that have come meanwhile when a tuple is over, within milliseconds.
        """
        least = 0.8 * self.window if self.span <= self.window else 0.5 * self.span
        return all(s.window >= least for s in samples)

    def _measured_service(self, samples: Sequence[Sample]) -> float | None:
        """Seconds a tuple, over the sub-units, without waiting."""
        processed = sum(s.processed * s.window for s in samples)
        busy = sum(s.busy * s.window for s in samples)
        self._cost.add(processed, 0.0, busy, self.span, len(samples))
        service = self._cost.service
        if service is not None:
            self.span = min(LONGEST, max(self.window, SPAN * service))
            self._probes.max_latency = max(self.max_latency, PROBED * service)
        return service

    def _unmeasured(self, view: View) -> Sequence[Action]:
        """Judge a unit that has told too little: look back further, and grow it if it is full and late all the same."""
        unit, now, n = view.unit, view.now, view.unit.width
        if self._cost.service is not None:
            return ()
        if self._untold_since is None:
            self._untold_since = now
        elif now - self._untold_since >= self.span:
            self.span, self._untold_since = min(LONGEST, 2 * self.span), now
        spouts = [s for name in unit.spouts if name in view.units for s in view.units[name].samples]
        comes = any(s.emitted > 0 or (s.lag or 0) > 0 for s in spouts) or any(s.backlog > 0 for s in unit.samples)
        # Keys move when the tuple in hand is over: then more is known as well.
        stuck = self._unanswered.seconds(now) if comes and not unit.plan.keyed else 0.0
        unknown = f"it is unknown what a tuple takes: {self._cost.missing}"
        wanted = affordable(
            view, unit, min(math.ceil(n * BLIND_GROWTH), unit.plan.max_parallelism or n + view.free_slots)
        )
        if stuck >= self.calm and wanted > n:
            return [Rescale(f"{unknown}; it has been at its first tuples for {stuck:.1f} s", wanted, unit=unit.name)]
        return [NoChange(unknown, "unmeasured", unit=unit.name)]

    @staticmethod
    def _held_back(view: View) -> tuple[float, bool]:
        """Return the ratio of what would come to what is read, by the sources; and whether that cannot be known."""
        factor, blind = 1.0, False
        for name in view.unit.spouts:
            spout = view.units.get(name)
            if spout is None:
                continue
            read = sum(s.emitted for s in spout.samples)
            known = [s for s in spout.samples if s.lag is not None]
            if known and read > 0:
                # What is due and not read counts as it grows; what has piled up is catch_up's business.
                factor = max(factor, min(MOST_DEMAND, 1.0 + max(0.0, sum(s.lag_growth for s in known)) / read))
            elif not known and any(s.backpressured > HELD_BACK for s in spout.samples):
                blind = True
        return factor, blind

    def _waiting(self, view: View, arrivals: float) -> float:
        """Tuples that should not be waiting: in inboxes beyond what is normal, and due at the sources."""
        backlog = max(0.0, sum(s.backlog for s in view.unit.samples) - arrivals * self.max_latency)
        for name in view.unit.spouts:
            spout = view.units.get(name)
            if spout is not None:
                read = sum(s.emitted for s in spout.samples)
                lag = sum(s.lag or 0 for s in spout.samples) - read * self.max_latency
                if lag > 0 and read > 0:
                    backlog += lag * arrivals / read
        return backlog

    # judging ---------------------------------------------------------------------------------------

    def _needed(self, rate: float, service: float) -> int:
        return max(1, math.ceil(rate * service / self.target - 1e-6))

    def _grow(self, view: View, service: float, blind: bool) -> Action | None:
        unit, n = view.unit, view.unit.width
        slow = self._probes.share > self.late_share
        full = self._full_since is not None and view.now - self._full_since >= self.calm
        rate = 0.0
        for seconds in (self.window, self.calm / 2, self.calm, 2 * self.calm, self.memory):
            mean, error = self._rate.recent(seconds)
            # Without late probes it must be sure that the rate is too high; with them it is enough that it is likely.
            sure = mean if slow else mean - 2 * error
            if sure * service / n > (self.likely if slow else self.high):
                rate = max(rate, mean - error)
        # So few tuples come where each takes long that none of these rates is sure.
        likely = slow and service > self.window and self._rate.mean * service / n > self.likely
        if not rate and (likely or (blind and full)):
            rate = self._rate.mean
        if not rate:
            return None
        most = unit.plan.max_parallelism or n + view.free_slots
        waiting = self._waiting(view, rate)
        wanted = self._needed(rate + waiting / self.catch_up, service)
        if slow and (rate * service / n > self.high or full):
            wanted = max(wanted, n + 1)
        if blind and full:
            wanted = max(wanted, math.ceil(n * BLIND_GROWTH))
        wanted = affordable(view, unit, wanted)
        if wanted <= n or n >= most:
            return None
        late = f", {self._probes.share:.0%} of the probes took over {1000 * self.max_latency:.0f} ms" if slow else ""
        piled = f", {waiting:,.0f} wait" if waiting >= 1 else ""
        return Rescale(
            f"{rate:,.0f} tuples/s of {1000 * service:.3g} ms each keep {rate * service:.1f} sub-units busy{piled}{late}; "
            f"at {self.target:.0%} that takes {wanted}",
            min(wanted, most),
        )

    def _shrink(self, view: View, service: float) -> Action | None:
        unit, now, n = view.unit, view.now, view.unit.width
        most = max(self._rate.mean + 2 * self._rate.error, self._peak)
        wanted = max(self._needed(most, service), unit.plan.min_parallelism)
        rate = self._rate.mean
        if wanted >= n or self._probes.share > 0.1 or self._waiting(view, rate) > rate * self.max_latency:
            self._under_since = None
            return None
        if self._under_since is None:
            self._under_since = now
        under = now - self._under_since
        # While the peak still decays towards fewer, one change later is better than two.
        lowest = self._needed(rate + 2 * self._rate.error, service)
        if under < self.patience or (wanted > max(lowest, unit.plan.min_parallelism) and under < 3 * self.patience):
            return None
        return Rescale(
            f"{most:,.0f} tuples/s at most of late, {1000 * service:.3g} ms each, keep {most * service:.1f} sub-units busy; "
            f"at {self.target:.0%} {wanted} {'is' if wanted == 1 else 'are'} enough",
            wanted,
        )
