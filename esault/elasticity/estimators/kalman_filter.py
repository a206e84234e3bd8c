"""A Kalman filter of one rate: what it will be some windows ahead."""

from __future__ import annotations

__all__ = ["TREND", "WALK", "KalmanFilter", "head_filter"]

#: noise of the process and of the measurement, (tuples/s) squared; only their ratio matters
TREND = (1e5, 1e5)
WALK = (1e6, 1e4)


class KalmanFilter:
    """Of a level alone (a random walk), or with `trend` of a level and its slope from window to window.

    `process` is the variance of each state's steps, `measurement` that of what is measured. The first value is taken as it is.
    """

    def __init__(self, process: float, measurement: float, trend: bool) -> None:
        self._process = process
        self._measurement = measurement
        self._trend = trend
        self._known = False
        self._level = self._slope = 0.0
        #: covariances: of the level, of both, of the slope
        self._p = (measurement, 0.0, measurement if trend else 0.0)

    def update(self, rate: float) -> None:
        """A window has ended."""
        if not self._known:
            self._known, self._level = True, rate
            return
        level, both, slope = self._p
        if self._trend:
            level, both, slope = level + 2 * both + slope + self._process, both + slope, slope + self._process
        else:
            level += self._process
        gain, slope_gain = level / (level + self._measurement), both / (level + self._measurement)
        surprise = rate - self._level - self._slope
        self._level += self._slope + gain * surprise
        self._slope += slope_gain * surprise
        self._p = ((1 - gain) * level, (1 - gain) * both, slope - slope_gain * both)

    def forecast(self, windows: int) -> float:
        """The rate so many windows ahead, 0 at least."""
        return max(0.0, self._level + windows * self._slope)


def head_filter(kind: str) -> KalmanFilter:
    """Of an input that no unit here feeds; `kind`: trend or walk. CRAA's paper gives neither model nor noise (reading R12)."""
    return KalmanFilter(*TREND, trend=True) if kind == "trend" else KalmanFilter(*WALK, trend=False)
