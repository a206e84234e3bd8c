"""Restart strategies: how often, and how long after it, a transient error of a sink or source is answered by a restart.

In Flink's words: `none`, `fixed-delay`, `failure-rate`, `exponential-delay`. A plain core: the time is passed in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from esault.errors import UsageError

__all__ = ["RestartStrategy", "strategy_of"]

#: parameters of each, with their defaults; times in seconds
STRATEGIES: Final[Mapping[str, Mapping[str, float]]] = {
    "none": {},
    "fixed-delay": {"attempts": 3, "delay": 1.0},
    "failure-rate": {"failures": 3, "interval": 60.0, "delay": 1.0},
    "exponential-delay": {"initial": 0.5, "factor": 2.0, "most": 30.0, "attempts": 8, "reset": 60.0},
}
COUNTS: Final = ("attempts", "failures")


class RestartStrategy:
    """One of the strategies, with what has happened so far."""

    def __init__(self, name: str, parameters: Mapping[str, float]) -> None:
        self.name = name
        self.parameters = parameters
        #: attempts since the strategy began anew
        self.attempts = 0
        self._failures: deque[float] = deque()
        self._last = 0.0

    def delay(self, now: float) -> float | None:
        """Note a failure, and return the seconds until the restart; None: there is none, the run ends."""
        parameters = self.parameters
        if self.name == "none":
            return None
        if self.name == "failure-rate":
            while self._failures and self._failures[0] <= now - parameters["interval"]:
                self._failures.popleft()
            self._failures.append(now)
            self.attempts = len(self._failures)
            return parameters["delay"] if self.attempts <= parameters["failures"] else None
        if self.name == "exponential-delay" and self.attempts and now - self._last >= parameters["reset"]:
            self.attempts = 0
        self.attempts += 1
        if self.attempts > parameters["attempts"]:
            return None
        wait = parameters.get("delay")
        if wait is None:
            wait = min(parameters["most"], parameters["initial"] * parameters["factor"] ** (self.attempts - 1))
        self._last = now + wait
        return wait

    @property
    def most(self) -> int:
        """Restarts in a row, or in the interval, at most."""
        return int(self.parameters.get("attempts", self.parameters.get("failures", 0)))


def strategy_of(text: str, exactly: bool) -> RestartStrategy:
    """Return the strategy `NAME[:PARAMETER=VALUE,...]`; empty: exponential-delay with checkpoints (`exactly`), none without.

    Raises UsageError.
    """
    name, _, rest = (text or ("exponential-delay" if exactly else "none")).partition(":")
    known = STRATEGIES.get(name)
    if known is None:
        raise UsageError(f"there is no restart strategy {name!r}: it is {', '.join(STRATEGIES)}")
    parameters = dict(known)
    for part in rest.split(",") if rest else ():
        parameter, _, value = part.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        wrong = number < 0 or number != number or (parameter in COUNTS and number != int(number))
        if parameter not in known or wrong:
            said = ", ".join(f"{each}={default:g}" for each, default in known.items()) or "none"
            raise UsageError(f"restart strategy {text!r}: {part!r} will not do; parameters of {name} are: {said}")
        parameters[parameter] = number
    return RestartStrategy(name, parameters)
