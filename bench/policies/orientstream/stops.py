"""S1 and S2: the engine's own pipelines over an operator that stops for each change, in virtual time.

The same load as in the queue model, but windows are cut, grouped and let go by `esault.control.run.pipelines`, tuples are whole, and
changes take 100 to 300 ms at random or 300 ms always.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.policies.orientstream.model import LEVELS, PARALLELISM, Passed
from esault.control.run.pipelines import Pipelines, Slice
from esault.elasticity.policies.orientstream.configuration import Configuration

__all__ = ["SYSTEMS", "StoppingRun", "asked_for", "run"]

STEP_MS = 50
WINDOW_MS = 1500
CHANGE_MS = 300
LOAD = 0.35

CONFIGURATIONS = {name: Configuration((("work", n),)) for name, n in PARALLELISM.items()}
#: tuples a second that each can process
CAPACITY = {CONFIGURATIONS[name]: rate / LOAD for name, rate in LEVELS}
RATES = dict(LEVELS)
#: of `budget`: wait, one change and processing stay below 1.5 s from arrival
SHORT_MS = 750
#: what is compared; `budget` (ours) groups always, keeps time to process free (3.3.1) and collects for half as long
SYSTEMS = ("fixed A", "fixed C", "fixed B", "switch", "literal", "always", "budget")


@dataclass
class StoppingRun:
    """The figures of a stop."""

    passed: list[Passed] = field(default_factory=list)
    #: slices in the order in which they were processed: (window, slice, pipeline within the window)
    order: list[tuple[int, int, int]] = field(default_factory=list)
    changes: int = 0
    #: seconds spent stopped
    stopped: float = 0.0
    #: tuples that had arrived by the end, and that were processed by then
    offered: int = 0
    processed: int = 0
    #: sub-units, mean over time
    parallelism: float = 0.0
    #: distinct configurations asked for in a window, mean; changes a window, mean
    different: float = 0.0
    changes_per_window: float = 0.0

    @property
    def worst(self) -> float:
        """Largest latency from release, seconds."""
        return max(p.from_release for p in self.passed)

    @property
    def worst_from_arrival(self) -> float:
        """Largest latency from arrival, seconds."""
        return max(p.from_arrival for p in self.passed)


def asked_for(delta: float | None, seconds: float, seed: int) -> Iterator[str]:
    """The configuration that each slice asks for; `delta` None: changes come after 0.2 to 0.6 s at random."""
    order = random.Random(seed)
    until, at = 0.0, -1
    for i in range(round(1000 * seconds / STEP_MS)):
        if i * STEP_MS / 1000 + 1e-9 >= until:
            until += delta if delta is not None else order.uniform(0.2, 0.6)
            at += 1
        yield LEVELS[at % len(LEVELS)][0]


def _by_rate(rate: float) -> Configuration:
    return next(CONFIGURATIONS[name] for name, level in sorted(LEVELS, key=lambda each: each[1]) if rate <= level)


def _pipelines(system: str, window_ms: int) -> Pipelines:
    if system.startswith("fixed"):
        return Pipelines(lambda rate: CONFIGURATIONS[system[-1]], window_ms, CHANGE_MS)
    load = LOAD if system == "budget" else 0.0
    return Pipelines(_by_rate, window_ms, CHANGE_MS, always=system in ("always", "budget"), load=load)


def run(system: str, delta: float | None, seconds: float, seed: int = 1, worst: bool = True) -> StoppingRun:
    """One run of one of SYSTEMS. `worst`: each change takes 300 ms; else 100 to 300."""
    order = random.Random(seed)
    window_ms = {"literal": WINDOW_MS, "always": WINDOW_MS, "budget": SHORT_MS}.get(system, STEP_MS)
    pipelines, together = _pipelines(system, window_ms), window_ms // STEP_MS
    asked = list(asked_for(delta, seconds, seed))
    current = CONFIGURATIONS[system[-1] if system.startswith("fixed") else "A"]
    found, free, held = StoppingRun(), 0.0, 0.0
    for first in range(0, len(asked) - together + 1, together):
        names = asked[first : first + together]
        release = (first + together) * STEP_MS / 1000
        if release > free:
            held += current.parallelism * (release - free)
            free = release
        pipelines.close([Slice(i, RATES[name]) for i, name in enumerate(names)], current)
        pipeline = 0
        while pipelines.busy:
            do = pipelines.advance(current, False, False)
            if do.rescale:
                current = Configuration(do.rescale)
                length = CHANGE_MS / 1000 if worst else order.uniform(0.1, 0.3)
                free += length
                held += current.parallelism * length
                found.stopped += length
                found.changes += 1
            if do.release is None:
                continue
            for i in do.release[1]:
                start = (first + i) * STEP_MS / 1000
                tuples = RATES[names[i]] * STEP_MS // 1000
                begin = free
                free += tuples / CAPACITY[current]
                held += current.parallelism * (free - begin)
                middle = (begin + free) / 2
                arrived = start + STEP_MS / 2000
                found.passed.append(Passed(start + STEP_MS / 1000, tuples, middle - arrived, middle - release))
                found.order.append((do.release[0], i, pipeline))
                found.offered += tuples
                found.processed += tuples if free <= seconds + WINDOW_MS / 1000 else 0
            pipeline += 1
    windows = len(pipelines.groupings)
    found.parallelism = held / free
    found.changes_per_window = found.changes / windows
    found.different = sum(len({c for c, _ in g.pipelines}) for g in pipelines.groupings) / windows
    return found
