"""Topologies whose work is slept, under a load that is paced: what `bench.policies.planned` plans and runs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial

from esault import Bolt, Topology, by_key, shuffle
from esault.sources import Items, Paced

__all__ = ["LOADS", "topology"]

KEYS = 400
#: tuples in each second of a run
LOADS: dict[str, Sequence[int]] = {
    "chain": [round(80 + 60 * math.sin(2 * math.pi * second / 20)) for second in range(30)],
    "words": [4] * 8 + [25] * 10 + [8] * 12,
    "calls": [3] * 8 + [40] * 8 + [3] * 8 + [40] * 6,
}
#: of the little run: tuples, and tuples a second
LITTLE, LITTLE_RATE = 100, 10.0


class Sleeper(Bolt):
    """Takes its time, and none of a processor's."""

    def __init__(self, seconds: float, many: int = 1) -> None:
        self.seconds, self.many = seconds, many

    def process(self, key: str, value: int) -> None:
        """Hand the tuple on, or as many of its parts as asked for."""
        time.sleep(self.seconds)
        for i in range(self.many):
            self.emit(key if self.many == 1 else f"{key}.{i}", value)


def topology(load: str = "calls", little: bool = False) -> Topology:
    """`chain`: two units by key in a row. `words`: eight tuples are made of one. `calls`: long calls, by shuffle."""
    steps = LOADS[load]
    rows = [(f"k{i % KEYS}", i) for i in range(LITTLE if little else sum(steps))]
    rate = LITTLE_RATE if little else [(float(second), float(rate)) for second, rate in enumerate(steps)]
    t = Topology(f"planned-{load}")
    source = t.spout("in", Paced(Items(rows), rate))
    if load == "chain":
        look = source.bolt("look", partial(Sleeper, 0.015), by_key())
        look.bolt("store", partial(Sleeper, 0.008), by_key())
    elif load == "words":
        split = source.bolt("split", partial(Sleeper, 0.005, 8), by_key())
        split.bolt("count", partial(Sleeper, 0.012), by_key())
    else:
        source.bolt("call", partial(Sleeper, 0.1), shuffle(), chain=False)
    return t
