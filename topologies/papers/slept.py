"""Operators that stand for work: what a tuple costs is slept, as in the papers' own experiments, so that any machine can run them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

from esault import Bolt

__all__ = ["Relay", "Total", "numbers"]

#: seconds; shorter sleeps are inexact, so they are owed until there is so much to sleep
SHORTEST = 0.005

#: seconds that this process owes; below 0, it slept too long
_owed = 0.0


def serve(seconds: float) -> None:
    """Let so much time pass, now or with one of the next calls."""
    global _owed
    _owed += seconds
    if _owed >= SHORTEST:
        start = time.perf_counter()
        time.sleep(_owed)
        _owed -= time.perf_counter() - start


class Relay(Bolt):
    """Takes `cost` seconds for a tuple and passes it on."""

    def __init__(self, cost: float):
        self.cost = cost

    def process(self, key, value):
        serve(self.cost)
        self.emit(key, value)


class Total(Relay):
    """Takes `cost` seconds for a tuple; says at the end how many a key had, and the sum of their numbers."""

    def __init__(self, cost: float):
        super().__init__(cost)
        self.tuples = self.sum = 0

    def process(self, key, value):
        serve(self.cost)
        self.tuples += 1
        self.sum += value

    def finish(self):
        self.emit(self.key, (self.tuples, self.sum))


def numbers(count: int, seed: int) -> Iterator[tuple[int, int]]:
    """`count` tuples: a key of 100, all as frequent, and a number from 0 on."""
    order = Random(seed)
    return ((order.randrange(100), i) for i in range(count))
