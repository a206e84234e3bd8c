"""The policy `dhalion`: symptoms, a diagnosis, one action; and what did not help is not done again.

Floratou, Agrawal, Graham, Rao, Ramasamy: Dhalion: Self-Regulating Stream Processing in Heron, PVLDB 10(12), 2017, its
policy for dynamic resource provisioning; details where the paper's words are few from Heron's code
(apache/incubator-heron, heron/healthmgr). Defaults named "Heron" are from there, the others are our readings.

Symptoms: back-pressure (spouts may not read; share of the window), inboxes that fill, inboxes and processing rates that
differ among the sub-units of a unit. Diagnoses for the unit that causes the back-pressure:

    rates and inboxes differ       data skew             its ranges are shared anew (Rescale to the same width)
    inboxes differ, rates do not   slow sub-unit         the same, which takes load from it, and said once
    rates differ, inboxes do not   none (Heron)          nothing
    neither                        under-provisioned     width * (1 + back-pressure / (1 - back-pressure))

so that 20 % of back-pressure means a quarter more. Without back-pressure a unit with almost empty inboxes is
over-provisioned and loses the share `scale_down_factor`. One unit at a time; then nothing for `wait` seconds, after
which the action is judged: it helped if back-pressure is less, another unit causes it or the unit does more a second
(shrinking: if there is none). An action on a unit that was in vain in more than `blacklist_ratio` of all times is on
the blacklist.

Our readings: a spout of Heron's emits what comes, and is stopped for the share of the time that is too much. Ours may
read when something was acknowledged, so that in an overload of any size it is held back nearly all the time. Where a
source knows what is due, the share of it that it could not read is the back-pressure that sizes a growth; that it is
held back is the symptom. Where Dhalion restarts a slow instance elsewhere, here it gets less to do; once sharing anew is on the
blacklist, the unit counts as under-provisioned. In Heron the instance whose buffer is full names itself; here the cause
is the first unit from the sinks upward whose inboxes are filled while those of its receivers are not. A unit whose
inboxes are bounded and drop has no way to press back: the share of its arrivals that it dropped is taken as its
back-pressure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from esault.elasticity.action import Action, Advise, Rescale
from esault.elasticity.limits import above_zero, limits
from esault.elasticity.view import RunView, UnitView, UnitWindow
from esault.errors import UsageError
from esault.value_class import value_class

__all__ = ["Dhalion"]

#: what is lost in floating point is not worth a sub-unit
_DUST = 1e-9
#: back-pressure at which the growth would have no end (Heron)
_MOST_PRESSURE = 0.999
UP, DOWN, SHARE = "scale up", "scale down", "share anew"


@value_class(frozen=True)
class _Done:
    """The last action, until it is judged."""

    action: str
    unit: str
    at: float
    pressure: float
    #: tuples a second that the unit did
    rate: float


@dataclass
class Dhalion:
    """Parameters in seconds, shares and tuples."""

    #: seconds between two looks, and length of the windows (Heron)
    interval: float = 60.0
    #: after an action nothing is judged for so long (Heron: 180 s)
    wait: float = 180.0
    #: back-pressure below this share is noise (Heron: 20 ms a second)
    noise: float = 0.02
    #: an inbox with more tuples than this is filled: mean of a unit's sub-units (Heron: 1000)
    large_queue: float = 1000.0
    #: an inbox with no more than this is almost empty: mean of a unit's sub-units
    small_queue: float = 1.0
    #: inboxes of sub-units differ from so many times the smallest on (Heron)
    queue_skew: float = 20.0
    #: rates of sub-units differ from so many times the smallest on (Heron)
    rate_skew: float = 1.5
    #: most growth in one action, in widths (Heron)
    most_growth: float = 4.0
    #: share of its width that an over-provisioned unit loses, at least one sub-unit
    scale_down_factor: float = 0.2
    #: an action on a unit is not repeated once it was in vain more often than this
    blacklist_ratio: float = 0.5
    #: of the engine: length of the aligned windows
    period: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        above_zero("dhalion", interval=self.interval, most_growth=self.most_growth)
        for name in ("scale_down_factor", "blacklist_ratio"):
            if getattr(self, name) > 1:
                raise UsageError(f"policy 'dhalion': {name}={getattr(self, name):g} is a share, at most 1")
        self.period = self.interval
        self._done: _Done | None = None
        #: (action, unit) -> (times, of them in vain)
        self._tried: dict[tuple[str, str], tuple[int, int]] = {}
        self._said: set[str] = set()

    def decide(self, view: RunView) -> Sequence[Action]:
        """Symptoms, diagnosis, resolution: at most one unit."""
        units = view.units.values()
        if any(u.changing or u.window is None or u.window.seconds <= 0 for u in units):
            return ()
        pressure = self._pressure(view)
        cause = self._cause(view) if pressure > self.noise else None
        if self._done is not None:
            if view.now < self._done.at + self.wait - _DUST:
                return ()
            self._judge(view, pressure, cause)
        if cause is not None:
            return self._widen(view, cause, max(self._missed(view), _dropped(cause)))
        return self._narrow(view) if pressure <= self.noise else ()

    def _pressure(self, view: RunView) -> float:
        """Share of the window in which some spout might not read, or of its arrivals that some unit dropped."""
        backpressured = max((u.window.backpressured for u in view.units.values() if u.window), default=0.0)
        return max(backpressured, *(_dropped(u) for u in view.units.values()))

    def _missed(self, view: RunView) -> float:
        """Share of what came that was too much: of what was due and not read, where that is known, else of the time."""
        spouts = [u.window for name, u in view.units.items() if not view.senders.get(name) and u.window]
        return max((_unread(window) for window in spouts), default=0.0)

    def _judge(self, view: RunView, pressure: float, cause: UnitView | None) -> None:
        """Judge the effect of the last action."""
        assert self._done is not None
        done, self._done = self._done, None
        times, vain = self._tried.get((done.action, done.unit), (0, 0))
        helped = pressure <= self.noise
        if done.action != DOWN:
            # The next narrow unit, or a load that rises, may press back as much although the action brought what it could.
            missed = max(self._missed(view), _dropped(view.units[done.unit]))
            helped |= missed < done.pressure - _DUST or cause is None or cause.name != done.unit
            helped |= _rate(view.units[done.unit]) > done.rate * (1.0 + self.noise)
        self._tried[done.action, done.unit] = (times + 1, vain + (not helped))

    def _blacklisted(self, action: str, unit: str) -> bool:
        times, vain = self._tried.get((action, unit), (0, 0))
        return times > 0 and vain / times > self.blacklist_ratio

    def _full(self, unit: UnitView) -> bool:
        assert unit.window is not None
        return _dropped(unit) > 0 or unit.window.waiting / max(1, unit.width) > self.large_queue

    def _cause(self, view: RunView) -> UnitView | None:
        """The bolt that holds the others up; where no inbox is filled, the one that does so most."""
        bolts = [view.units[name] for name in view.units if view.senders.get(name)]
        for unit in reversed(bolts):
            receivers = [u for u in bolts if unit.name in view.senders[u.name]]
            if self._full(unit) and not any(map(self._full, receivers)):
                return unit
        waiting = max(bolts, key=_queue, default=None)
        return waiting if waiting is not None and _queue(waiting) > self.small_queue else None

    def _widen(self, view: RunView, unit: UnitView, pressure: float) -> Sequence[Action]:
        if unit.name not in view.managed:
            return self._say(unit.name, f"{unit.name} holds the others up, and may not be scaled", unit.name)
        backlogs = [sample.backlog for sample in unit.samples]
        uneven = _differ(backlogs, self.queue_skew) and max(backlogs) > self.small_queue
        skewed = _differ([sample.processed for sample in unit.samples], self.rate_skew)
        if uneven and not self._blacklisted(SHARE, unit.name):
            said: Sequence[Action] = ()
            what = "its sub-units differ in load and inboxes"
            if not skewed:
                slow = max(unit.samples, key=lambda sample: sample.backlog)
                what = f"sub-unit {slow.sub_unit} is slow: {slow.backlog:,} tuples wait there"
                advice = f"{what}, and it does as many as the others of {unit.name}; look at its host, {slow.host}"
                said = self._say(unit.name, advice, f"{unit.name} {slow.sub_unit}")
            reason = f"{pressure:.0%} back-pressure, {what}: shared anew"
            return (*said, self._act(view, SHARE, pressure, Rescale(reason, unit.width, unit=unit.name)))
        if self._blacklisted(UP, unit.name) or (skewed and not uneven):
            return ()
        share = min(pressure, _MOST_PRESSURE)
        growth = min(share / (1.0 - share), self.most_growth)
        n = min(math.ceil(unit.width * (1.0 + growth) - _DUST), limits(unit, view.free_slots)[1])
        n = min(n, unit.width + view.free_slots)
        if n <= unit.width:
            return ()
        reason = (
            f"{share:.0%} back-pressure, {_queue(unit):,.0f} tuples wait per sub-unit: {n} rather than {unit.width}"
        )
        return (self._act(view, UP, pressure, Rescale(reason, n, unit=unit.name)),)

    def _narrow(self, view: RunView) -> Sequence[Action]:
        """The emptiest of the units that are too wide, and may be narrower."""
        found = [
            unit
            for unit in (view.units[name] for name in view.managed)
            if _queue(unit) <= self.small_queue
            and unit.width > unit.plan.min_parallelism
            and not self._blacklisted(DOWN, unit.name)
        ]
        if not found:
            return ()
        unit = min(found, key=_busy)
        n = min(unit.width - 1, math.ceil(unit.width * (1.0 - self.scale_down_factor) - _DUST))
        n = max(n, unit.plan.min_parallelism)
        reason = f"no back-pressure, {_queue(unit):,.1f} tuples wait per sub-unit: {n} rather than {unit.width}"
        return (self._act(view, DOWN, 0.0, Rescale(reason, n, unit=unit.name)),)

    def _act(self, view: RunView, action: str, pressure: float, rescale: Rescale) -> Rescale:
        self._done = _Done(action, rescale.unit, view.now, pressure, _rate(view.units[rescale.unit]))
        return rescale

    def _say(self, unit: str, reason: str, once: str) -> Sequence[Action]:
        if once in self._said:
            return ()
        self._said.add(once)
        return (Advise(reason, unit=unit),)


def _queue(unit: UnitView) -> float:
    """Tuples that wait for one sub-unit."""
    return unit.window.waiting / max(1, unit.width) if unit.window is not None else 0.0


def _rate(unit: UnitView) -> float:
    return unit.window.processed / unit.window.seconds if unit.window is not None else 0.0


def _busy(unit: UnitView) -> float:
    return unit.window.busy / max(1, unit.width) if unit.window is not None else 0.0


def _dropped(unit: UnitView) -> float:
    """Share of its arrivals that the unit dropped."""
    window = unit.window
    if window is None or window.dropped <= 0:
        return 0.0
    return min(1.0, window.dropped / max(window.arrivals, window.dropped))


def _unread(window: UnitWindow) -> float:
    """Share of what a source had due in the window that it could not read; of the time, where it cannot tell."""
    if window.lag is None or window.lag_before is None:
        return window.backpressured
    grown = max(0.0, window.lag - window.lag_before)
    return grown / (window.arrivals + grown) if grown > 0 else 0.0


def _differ(figures: Sequence[float], ratio: float) -> bool:
    return len(figures) > 1 and max(figures) > ratio * min(figures)
