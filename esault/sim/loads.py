"""Loads by name: those of the papers, with their numbers, and two of everyday life.

`LOADS` has one of each; the functions make others of the kind, `scaled` fits any to another peak and length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from esault.errors import UsageError
from esault.sim.load_shapes import (
    Day,
    Drawn,
    Lines,
    Load,
    Noisy,
    Part,
    Ramp,
    Scaled,
    Sine,
    Steps,
    Telegraph,
    Week,
)

__all__ = ["LOADS", "WORKERS", "Day", "Drawn", "Lines", "Load", "Noisy", "Part", "Ramp", "Scaled", "Sine", "Steps"]
__all__ += ["Telegraph", "Week", "esault_steps", "levels", "load", "migration", "scaled"]


def esault_steps(base: float = 20.0, step: float = 500.0, levels: int = 4) -> Steps:
    """The load of the experiments of Zhan et al. (2017): up by `step` every 10 s, a plateau until 100 s, down every 20 s, a trough of 70 s."""
    up = [(10.0 * i, base + step * (i + 1)) for i in range(levels)]
    down = [(100.0 + 20.0 * i, base + step * (levels - 1 - i)) for i in range(levels)]
    times, rates = zip(*up, *down)
    return Steps(times, rates, 170.0 + 20.0 * levels)


def levels(delta: float = 0.45, unit: float = 1000.0) -> Steps:
    """The loads of OrientStream+ (Wang et al. 2019): rates of 2, 8 and 4 `unit`, in turn, another every `delta` seconds."""
    return Steps((0.0, delta, 2 * delta), (2 * unit, 8 * unit, 4 * unit), 3 * delta)


#: Sousa 2014, chapter 4: ten cycles of 60 s, high or low, of the workers 1 to 13
WORKERS = [
    "HHLLHHHLLL",
    "HLLLHHHHLL",
    "LHLHLLLHHH",
    "HLLHLHLHHL",
    "HLLLHLLLHL",
    "HHHLHLHLLL",
    "LHHLLHHHHL",
    "HHLHLLLLLL",
    "LHHHLLLLHH",
    "LHLLLLHLLH",
    "LLHHLLLLHL",
    "LHHLHLHHHH",
    "HHLLLLHLLL",
]


def migration(worker: int = 0, ramp: float = 10.0) -> Lines:
    """Sousa 2014, chapter 4: the varied load of a worker from 1 to 13, or 0: of all; transitions take `ramp` seconds.

    High is 600 and low 100 events/s for odd workers, 550 and 50 for even ones. Raises UsageError for another worker.
    """
    if not 0 <= worker <= len(WORKERS):
        raise UsageError(f"there is no worker {worker}: say 1 to {len(WORKERS)}, or 0 for all together")
    chosen = [worker] if worker else range(1, len(WORKERS) + 1)
    lows = {w: 100.0 if w % 2 else 50.0 for w in chosen}
    cycles = [sum(lows[w] + 500.0 * (WORKERS[w - 1][i] == "H") for w in chosen) for i in range(10)]
    # A transition without length is one of a microsecond: lines cannot jump.
    length = max(ramp, 1e-6)
    times, rates = [0.0], [sum(lows.values())]
    for i, rate in enumerate(cycles):
        if i:
            times.append(60.0 * i)
            rates.append(cycles[i - 1])
        times.append(60.0 * i + length)
        rates.append(rate)
    return Lines(tuple(times), tuple(rates), 600.0)


#: one of each, by name
LOADS: Mapping[str, Load] = {
    "constant": Steps((0.0,), (1000.0,), 60.0),
    "esault": esault_steps(),
    "autoscale": Noisy(Ramp()),
    "craa_step": Steps(tuple(5.0 * i for i in range(6)), (1000.0, 2000.0, 5000.0, 6000.0, 5000.0, 2000.0), 30.0),
    "craa_jitter": Steps((0.0, 50.0, 55.0, 155.0), (3000.0, 6000.0, 3000.0, 1000.0), 160.0),
    "craa_sine": Sine(),
    "craa_stage": Steps((0.0, 250.0, 350.0), (5000.0, 10_000.0, 2000.0), 500.0),
    "craa_random": Drawn(),
    "migration": migration(),
    **{f"migration_{w}": migration(w) for w in range(1, len(WORKERS) + 1)},
    "orientstream": levels(),
    # ten times as much within 15 s, a minute of it, and half an hour until it is forgotten
    "flash": Lines(
        (0.0, 300.0, 315.0, 375.0, 600.0, 1200.0, 2100.0), (100.0, 100.0, 1000.0, 1000.0, 400.0, 200.0, 100.0), 2400.0
    ),
    "day": Noisy(Day(), spread=0.1, every=60.0),
    # two weeks with week-ends
    "week": Noisy(Week(), spread=0.1, every=600.0),
    # up for ten minutes, down at once
    "sawtooth": Lines((0.0, 599.0), (100.0, 1000.0), 600.0),
    "telegraph": Telegraph(),
    # three times as much within a quarter of an hour, and no way back
    "slow_growth": Lines((0.0, 100.0, 1000.0), (300.0, 300.0, 1000.0), 1100.0),
    "on_off": Steps((0.0, 10.0), (1000.0, 50.0), 20.0),
}


def load(name: str) -> Load:
    """One of `LOADS`. Raises UsageError that names what there is."""
    if name not in LOADS:
        raise UsageError(f"there is no load {name!r}; there are: {', '.join(LOADS)}")
    return LOADS[name]


def scaled(load: Load, peak: float | None = None, duration: float | None = None) -> Load:
    """The load with that highest rate and that length of one cycle; None leaves it. Raises UsageError for what cannot be."""
    for name, wanted in (("peak", peak), ("duration", duration)):
        if wanted is not None and not 0 < wanted < math.inf:
            raise UsageError(f"{name}={wanted:g} must be a number above 0")
    if peak is not None and load.peak <= 0:
        raise UsageError("a load that is 0 all the time has no peak to scale")
    times = 1.0 if peak is None else peak / load.peak
    return Scaled(load, times, 1.0 if duration is None else duration / load.seconds)
