"""CRAA's chain: five operators, each slower than the one before it, each with an inbox that drops what it cannot hold.

After the paper's table 2 and its loads: O1 to O5 process 500, 400, 300, 200 and 100 tuples a second per sub-unit, and hold
50, 500, 1000, 2000 and 5000. Shows bounded inboxes that drop and count (`dropped` in the report) where a unit grows too late, and
so what a policy is worth: `--policy craa` against `--policy threshold` or the default. Out come the numbers of the tuples that passed
all five in `out/craa.jsonl`: with those that were dropped, all that were sent. `scale` multiplies rates, speeds and inboxes
alike: at 0.1 the load is a tenth of the paper's 6000 tuples a second, and O5 needs 60 sub-units for it all the same; it gets
`most`.

    esault run topologies/papers/craa.py --slots 100 --set load=jitter --policy craa
"""

import math
from collections.abc import Callable
from functools import partial

from slept import Relay, numbers

from esault import Topology, shuffle
from esault.errors import TopologyError
from esault.sinks import JsonLines
from esault.sources import Items, Paced

__all__ = ["topology"]

#: tuples a second of a sub-unit, tuples that wait at most
OPERATORS = {"O1": (500, 50), "O2": (400, 500), "O3": (300, 1000), "O4": (200, 2000), "O5": (100, 5000)}
STEPS = (1000, 2000, 5000, 6000, 5000, 2000)


def jitter(t: float) -> float:
    t %= 160
    return 3000 if t < 50 else 6000 if t < 55 else 3000 if t < 155 else 1000


def stage(t: float) -> float:
    t %= 500
    return 5000 if t < 250 else 10_000 if t < 350 else 2000


#: tuples a second, t seconds after the start
LOADS: dict[str, Callable[[float], float]] = {
    "step": lambda t: STEPS[int(t // 5) % len(STEPS)],
    "jitter": jitter,
    "sine": lambda t: 5000 + 2500 * math.sin(2 * math.pi * t / 500),
    "stage": stage,
}


def topology(
    load: str = "step",
    seconds: int = 60,
    scale: float = 0.1,
    most: int = 16,
    seed: int = 1,
    out: str = "out/craa.jsonl",
) -> Topology:
    """`seconds` of the load called step, jitter, sine or stage, times `scale`."""
    if load not in LOADS:
        raise TopologyError(f"load={load!r}: write one of {', '.join(LOADS)}")
    t = Topology("craa")
    rate = LOADS[load]
    count = round(scale * sum(rate(s) for s in range(seconds)))
    stream = t.spout("source", Paced(Items(partial(numbers, count, seed)), lambda s: scale * rate(s)))
    for name, (speed, buffer) in OPERATORS.items():
        stream = stream.bolt(
            name,
            partial(Relay, 1 / (speed * scale)),
            shuffle(),
            max_parallelism=most,
            buffer=max(1, round(buffer * scale)),
            overflow="drop",
        )
    stream.sink("passed", JsonLines(out, mode="replace"))
    return t
