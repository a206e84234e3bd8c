"""The load of the eSault paper's experiment (Zhan et al. 2017): bursts at a rate that goes up and down in steps, over 2 028 words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["WORDS", "Shape"]

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
#: the paper's emitter: words of three characters
WORDS = tuple(a + b + c for a in _ALPHABET for b in _ALPHABET for c in "abc")


@dataclass(frozen=True)
class Shape:
    """The load of the experiment: up in steps, a plateau, down in steps, a trough. Times in seconds, rates in tuples/s."""

    base: float = 20.0
    step: float = 500.0
    levels: int = 4
    #: all times are divided by this, all rates multiplied
    speed: float = 1.0

    def rate(self, t: float) -> float:
        """Tuples a second at `t`."""
        t = t * self.speed % (100 + self.levels * 20 + 70)
        if t < 100:
            return self.speed * (self.base + self.step * min(self.levels, int(t // 10) + 1))
        down = int((t - 100) // 20)
        return self.speed * (self.base + self.step * (self.levels - 1 - down) if down < self.levels else self.base)

    def steps(self, until: float) -> Iterator[tuple[float, float]]:
        """(seconds, rate from then on) up to `until`."""
        last = None
        for i in range(int(until * self.speed / 10) + 1):
            rate = self.rate((i * 10 + 1e-6) / self.speed)
            if rate != last:
                last = rate
                yield i * 10 / self.speed, rate
