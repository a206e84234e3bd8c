"""The load that a source will offer in the next seconds, from the windows that it has offered so far.

Four things say something of it: the rate as it has been (`CountedRate`), a climb that window after window shows, the rhythm in which the load
repeats (`LoadHistory`), and how much windows differ by chance. How well that went is noted, too (`Surprises`).
"""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise

from esault.elasticity.estimators.counted_rate import CountedRate
from esault.elasticity.estimators.flow_forecast import STEP
from esault.elasticity.estimators.load_history import LoadHistory
from esault.elasticity.estimators.surprises import LEAD, Surprises
from esault.elasticity.view import UnitWindow

__all__ = ["AHEAD", "DOUBT", "FAR", "SourceForecast"]

#: seconds that are computed ahead
AHEAD = 6.0
#: seconds that a rhythm is asked ahead for, before something is stopped
FAR = 30
#: windows in a row that must have more for a climb, each by so many standard deviations and all together by so many
CLIMB, EACH, ALL = 3, 0.7, 4.5
#: standard deviations of a window by which its rises may differ, beside the least of them: a jump that falls on two is none
STEADY = 3.0
#: seconds for which a climb is foreseen
CLIMBS = 1.5
#: standard errors of a rate, by which it may be less: so much is sure with 93 %
DOUBT = 1.5


class SourceForecast:
    """Takes the windows of one source, one after the other. Rates are tuples a second."""

    def __init__(self, memory: float, period: float, rhythm: bool = True) -> None:
        """`memory`: seconds over which a steady rate is averaged at most; `period`: of a window; `rhythm`: look for one."""
        self._period = period
        self._rhythm = rhythm
        self.rate = CountedRate(memory)
        self.history = LoadHistory()
        self.surprises = Surprises()
        #: of the last windows, the newest last
        self._rates: deque[float] = deque(maxlen=CLIMB + 1)
        #: it is unknown how much more there is
        self.blind = False
        #: when the newest window ended, seconds since the epoch
        self.until = 0.0
        #: what sub-units must be there for
        self.most = 0.0
        #: what is expected in each `STEP` of the next `AHEAD` seconds
        self.steps: list[float] = []

    def add(self, window: UnitWindow) -> None:
        """The next window."""
        rate = window.offered
        self.blind, self.until = window.blind, window.end
        self._rates.append(rate)
        self.rate.add(rate, window.seconds)
        self.history.add(rate, window.seconds, self.rate.dispersion)
        self.surprises.add(window.end, window.seconds, rate, self.chance)
        self.most, self.steps = self._foretold()
        self.surprises.foretell(window.end + LEAD, self.steps[round(LEAD / STEP) - 1])

    @property
    def newest(self) -> tuple[float, float]:
        """Return what the newest window had, and the one before."""
        rates = self._rates
        return (rates[-1] if rates else 0.0), (rates[-2] if len(rates) > 1 else 0.0)

    @property
    def chance(self) -> float:
        """Standard deviation of what a window has by chance."""
        return math.sqrt(max(self.rate.dispersion, 0.0) * self.rate.mean / self._period)

    def far(self) -> list[float] | None:
        """Return what the rhythm foretells for each of the next `FAR` seconds; None where there is none."""
        if not self._rhythm or self.history.period is None:
            return None
        found = [self.history.foretold(second, second + 1.0) for second in range(FAR)]
        return None if None in found else [each for each in found if each is not None]

    def _foretold(self) -> tuple[float, list[float]]:
        mean = self.rate.mean
        steps = [mean] * int(AHEAD / STEP)
        climb = self._climb()
        if climb > 0:
            # It is not taken to go on for longer than one can act ahead.
            steps = [max(mean, self._rates[-1] + climb * min((i + 1) * STEP, CLIMBS)) for i in range(len(steps))]
            mean = self._rates[-1]
        if self._rhythm:
            for i in range(len(steps)):
                then = self.history.foretold(i * STEP, (i + 1) * STEP)
                if then is not None:
                    steps[i] = max(mean, then)
        return mean + self.rate.error, steps

    def _climb(self) -> float:
        """Tuples a second more each second, where window after window had clearly more; else 0. A jump is no climb."""
        rates = self._rates
        if len(rates) <= CLIMB:
            return 0.0
        chance = math.sqrt(max(self.rate.dispersion, 1.0) * max(rates[-1], 1.0) / self._period)
        rises = [b - a for a, b in pairwise(rates)]
        clear = min(rises) > EACH * chance and rates[-1] - rates[0] > ALL * chance
        steady = max(rises) - min(rises) <= STEADY * chance + min(rises)
        return min(rises) / self._period if clear and steady else 0.0
