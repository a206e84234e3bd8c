"""The policy `esault`: what the eSault paper says, and nothing better.

Zhan, Liu, Kang, Cao, Xie: An Elastic Scalable Stream Processing Framework Based on Actor Model, Journal of Computer
Research and Development 54(5), 2017, section on the latency monitor. Each sub-unit is probed every `probe_period`; late
probes mean overload and a split at the middle of its interval, a rate far below its peak without a late probe means underload
and a merge with a neighbour. The paper gives no values; the defaults are those of the public code. Where the paper
can be read in several ways the reading is named at the parameter or the line.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from esault.elasticity.action import Action, Merge, Split
from esault.elasticity.view import ProbeSample, Sample, View

__all__ = ["HIGH", "LOW", "NORMAL", "OVERLOAD", "UNDERLOAD", "ESault", "Health"]

NORMAL, LOW, UNDERLOAD, HIGH, OVERLOAD = "NORMAL", "LOW", "UNDERLOAD", "HIGH", "OVERLOAD"

#: whom a sub-unit may be merged with, the best first (3.5); never one with late probes
_PARTNERS = {UNDERLOAD: 0, LOW: 1, NORMAL: 2}


class Health:
    """The two judgements on one sub-unit, from its probes in order."""

    def __init__(
        self,
        overload_time: int = 20,
        overload_factor: float = 0.8,
        underload_time: int = 100,
        underload_factor: float = 0.8,
        low_watermark: float = 0.1,
        strict: bool = False,
    ) -> None:
        """Times in probes. `strict`: a share must exceed its factor (the paper's prose), not only reach it (the code)."""
        self._overload = overload_factor * overload_time
        self._underload = underload_factor * underload_time
        self._low_watermark = low_watermark
        self._strict = strict
        #: the highest rate since it was last reset, tuples a second
        self.peak = 0.0
        # The denominators are the full windows, also while they fill (as in the code).
        self._late: deque[bool] = deque(maxlen=overload_time)
        self._light: deque[bool] = deque(maxlen=underload_time)

    def _reaches(self, count: int, limit: float) -> bool:
        return count > 0 and (count > limit if self._strict else count >= limit)

    def sample(self, late: bool, rate: float = 0.0) -> str:
        """Take a probe that was late, or came back in time with a rate; what that makes of the sub-unit."""
        light = False
        if late:
            self.peak = 0.0  # rule (ii): a phase of high load has begun
        elif rate > self.peak:
            self.peak = rate  # rule (i), reading (a)
        else:
            light = rate < self._low_watermark * self.peak
        self._late.append(late)
        self._light.append(light)
        all_late, all_light = sum(self._late), sum(self._light)
        if self._reaches(all_late, self._overload):
            return OVERLOAD
        if all_late:
            return HIGH  # which is no underload, whatever the rate
        if self._reaches(all_light, self._underload):
            return UNDERLOAD
        return LOW if all_light else NORMAL

    def forget(self) -> None:
        """A decision was made: both windows begin anew; the peak stays."""
        self._late.clear()
        self._light.clear()


@dataclass
class _Watched:
    health: Health
    status: str = NORMAL
    #: probes that were sent and are not decided, by number
    open: dict[int, ProbeSample] = field(default_factory=dict)


@dataclass
class ESault:
    """Parameters by the paper's names, in seconds and probes."""

    #: a probe that takes longer is late (MAX_LATENCY)
    max_latency: float = 0.1
    #: between two probes (PROBE_PERIOD); None: as the run is set
    probe_period: float | None = 0.1
    overload_time: int = 20
    overload_factor: float = 0.8
    underload_time: int = 100
    underload_factor: float = 0.8
    low_watermark: float = 0.1
    strict: bool = False
    #: a new sub-unit is not judged for so long (public code)
    start_adaptive: float = 5.0
    #: after a decision no sub-unit is judged for so long (public code)
    update_adaptive: float = 2.0
    #: reading (b) of rule (i): a rate above so many times the peak resets the peaks of the whole unit; 0: reading (a) alone
    peak_reset: float = 0.0
    #: of the choice between two equal partners
    seed: int = 0

    def __post_init__(self) -> None:
        self._watched: dict[int, _Watched] = {}
        self._resume_at = 0.0
        self._random = random.Random(self.seed)

    def _new_health(self) -> Health:
        return Health(
            self.overload_time,
            self.overload_factor,
            self.underload_time,
            self.underload_factor,
            self.low_watermark,
            self.strict,
        )

    def decide(self, view: View) -> Sequence[Action]:
        """One tick of the monitor, then the unit's reaction to what it reports."""
        samples = view.unit.samples
        for gone in self._watched.keys() - {s.sub_unit for s in samples}:
            del self._watched[gone]
        paused = view.unit.changing or view.now < self._resume_at
        for sample in samples:
            watched = self._watched.setdefault(sample.sub_unit, _Watched(self._new_health()))
            watched.open.update((p.number, p) for p in sample.probes)
            if paused or sample.age < self.start_adaptive:
                watched.open.clear()  # as if they had not been sent; they are ignored when they come
            else:
                self._judge(watched, view.now)
        if not any(w.status in (OVERLOAD, UNDERLOAD) for w in self._watched.values()):
            return ()
        actions = self._react(samples, view)
        for watched in self._watched.values():
            if watched.status in (OVERLOAD, UNDERLOAD):
                watched.health.forget()
                watched.status = NORMAL
            watched.open.clear()
        self._resume_at = view.now + self.update_adaptive
        return actions

    def _judge(self, watched: _Watched, now: float) -> None:
        """Feed the probes that are decided, in order: back, or overdue (a late return is ignored)."""
        for number in sorted(watched.open):
            probe = watched.open[number]
            if probe.sent < self._resume_at:
                del watched.open[number]
                continue
            if probe.back is not None and probe.rate is not None:
                late, rate = probe.back - probe.sent > self.max_latency, probe.rate
            elif probe.back is None and now - probe.sent >= self.max_latency:
                late, rate = True, 0.0
            elif probe.back is not None:
                late, rate = probe.back - probe.sent > self.max_latency, 0.0
            else:
                return  # those behind it must wait
            del watched.open[number]
            if self.peak_reset and not late and rate > self.peak_reset * watched.health.peak > 0:
                for each in self._watched.values():
                    each.health.peak = 0.0
                    each.health.forget()
            watched.status = watched.health.sample(late, rate)
            if watched.status in (OVERLOAD, UNDERLOAD):
                return

    def _react(self, samples: Sequence[Sample], view: View) -> list[Action]:
        """Visit every sub-unit once, leave alone who was touched; all that is due is done in one change of the table."""
        plan = view.unit.plan
        ring = [s.sub_unit for s in samples]
        most = plan.max_parallelism or len(ring) + view.free_slots
        width = len(ring)
        touched: set[int] = set()
        actions: list[Action] = []
        status: Callable[[int], str] = lambda sub_unit: self._watched[sub_unit].status
        for sub_unit in list(ring):
            if sub_unit in touched:
                continue
            if status(sub_unit) == OVERLOAD:
                touched.add(sub_unit)
                if width < most:
                    width += 1
                    reason = f"{self.overload_factor:.0%} of its probes took over {1000 * self.max_latency:.0f} ms"
                    actions.append(Split(f"sub-unit {sub_unit} is overloaded: {reason}", sub_unit))
            elif status(sub_unit) == UNDERLOAD:
                touched.add(sub_unit)
                at = ring.index(sub_unit)
                near = [*ring[max(0, at - 1) : at], *ring[at + 1 : at + 2]]
                near = [n for n in near if n not in touched and status(n) in _PARTNERS]
                if near and width > plan.min_parallelism:
                    width -= 1
                    best = min(_PARTNERS[status(n)] for n in near)
                    into = self._random.choice([n for n in near if _PARTNERS[status(n)] == best])
                    touched.add(into)
                    ring.remove(sub_unit)
                    peak = self._watched[sub_unit].health.peak
                    reason = f"its rate is below {self.low_watermark:.0%} of its peak of {peak:,.0f}/s"
                    actions.append(Merge(f"sub-unit {sub_unit} is underloaded: {reason}", sub_unit, into))
        return actions
