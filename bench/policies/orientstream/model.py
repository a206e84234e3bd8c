"""A queue model of configurations in turn, in virtual time: what switching each time and grouping do to latency.

Slices of a stream whose rate changes every `delta` seconds ask for three configurations in turn; a change of configuration
stops the one server for `change` seconds. It shows where Algorithm 1 leaves a gap, which is what the bench measures against.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LEVELS", "MODES", "PARALLELISM", "Passed", "latency_at", "levels", "simulate"]

#: configuration and the rate it is sized for, tuples a second, in the order in which the stream asks for them
LEVELS = (("A", 2000), ("B", 8000), ("C", 4000))
PARALLELISM = {"A": 2, "B": 8, "C": 4}
#: `switch`: a change at each slice that asks for one (OrientStream); `literal`: Algorithm 1 as printed; `always`: grouped always
MODES = ("switch", "literal", "always")


class Passed(NamedTuple):
    """One slice that was processed: when it had arrived, its tuples, mean seconds from arrival and from release."""

    arrival: float
    tuples: float
    from_arrival: float
    from_release: float


def levels(delta: float, seconds: float, step: float) -> list[tuple[float, str, int]]:
    """(start, configuration asked for, rate) of each slice."""
    return [(i * step, *LEVELS[int((i * step + 1e-9) / delta) % 3]) for i in range(round(seconds / step))]


def simulate(
    delta: float,
    mode: str,
    load: float = 0.35,
    window: float = 1.5,
    change: float = 0.3,
    seconds: float = 300.0,
    step: float = 0.05,
) -> list[Passed]:
    """One run. `load`: share of its time that a configuration is busy at its rate; times in seconds."""
    capacity = {c: rate / load for c, rate in LEVELS}
    data = levels(delta, seconds, step)
    together = 1 if mode == "switch" else round(window / step)
    most = round(1000 * window) // round(1000 * change)
    free, current, seen = 0.0, "A", "A"
    out: list[Passed] = []
    for first in range(0, len(data) - together + 1, together):
        slices = data[first : first + together]
        release = slices[0][0] + (step if together == 1 else window)
        groups: dict[str, list[tuple[float, int]]] = {}
        changes = 0
        for start, c, rate in slices:
            changes += c != seen
            seen = c
            groups.setdefault(c, []).append((start, rate))
        if together == 1 or (mode == "literal" and changes <= most):
            runs = [(c, [(start, rate)]) for start, c, rate in slices]
        else:
            runs = _grouped(groups, most, current)
        free = max(free, release)
        for c, items in runs:
            if c != current:
                free += change
                current = c
            for start, rate in items:
                begin = free
                free += rate * step / capacity[c]
                middle = (begin + free) / 2
                out.append(Passed(start + step, rate * step, middle - (start + step / 2), middle - release))
    return out


def _grouped(
    groups: dict[str, list[tuple[float, int]]], most: int, current: str
) -> list[tuple[str, list[tuple[float, int]]]]:
    if len(groups) >= most:
        keep = sorted(groups, key=lambda c: -PARALLELISM[c])[: max(1, most)]
        for i, c in enumerate([c for c in groups if c not in keep]):
            groups[keep[i % len(keep)]] += groups.pop(c)
    return [(c, groups[c]) for c in sorted(groups, key=lambda c: (c != current, c))]


def latency_at(passed: list[Passed], at: float, from_release: bool = False, width: float = 3.0) -> float:
    """Mean over the tuples that arrived in the `width` seconds before `at`."""
    there = [p for p in passed if at - width <= p.arrival < at]
    which = 3 if from_release else 2
    return sum(p.tuples * p[which] for p in there) / sum(p.tuples for p in there)
