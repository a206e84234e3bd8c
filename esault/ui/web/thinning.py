"""The timeline of a long run in so much room: the older a window, the more of the run it stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

__all__ = ["thinned"]

#: a window as it is kept: its number, and {"t": seconds to its end, "units": {name: [tuples/s, p50 ms, p99 ms, sub-units, waiting]}}
Kept = tuple[int, Mapping[str, Any]]


def thinned(windows: Iterable[Kept], fine: int, most: int) -> list[Kept]:
    """Return less than `most` windows, of which the newest `fine` ones are as they were, and those before are put together.

    All of these stand for about as many seconds. A window that is made of others has the number of the last of them: who has seen that
    one has seen it.
    """
    kept = list(windows)
    old, new = kept[:-fine], kept[-fine:]
    span = max(_shortest(old), 1e-9)
    # half of the room is left for what comes, so that this is seldom done
    while len(old) + len(new) > (most + fine) // 2 and len(old) > 1:
        span *= 2
        old = _together(old, span)
    return [*old, *new]


def _shortest(windows: Sequence[Kept]) -> float:
    return min((b[1]["t"] - a[1]["t"] for a, b in pairwise(windows)), default=1.0)


def _together(windows: Sequence[Kept], span: float) -> list[Kept]:
    """Put neighbours together as far as they do not last longer than `span`."""
    made: list[Kept] = []
    began = before = 0.0  # of the last one that was made, and of that one
    for each in windows:
        if made and each[1]["t"] - before <= span * 1.01:
            made[-1] = _sum(made[-1], each, made[-1][1]["t"] - before, each[1]["t"] - made[-1][1]["t"])
        else:
            before = began
            made.append(each)
        began = each[1]["t"]
    return made


def _sum(first: Kept, second: Kept, a: float, b: float) -> Kept:
    """Put two together, of `a` and `b` seconds."""
    units = dict(first[1]["units"])
    for name, each in second[1]["units"].items():
        before = units.get(name)
        units[name] = list(each) if before is None else _of_unit(before, each, a, b)
    return second[0], {"t": second[1]["t"], "units": units}


def _of_unit(first: Sequence[Any], second: Sequence[Any], a: float, b: float) -> list[Any]:
    def mean(x: float, y: float) -> float:
        return (x * a + y * b) / (a + b) if a + b > 0 else y

    # a rate and a median over both, the worst p99, the width at the end, the most that waited
    ways: tuple[Callable[[Any, Any], Any], ...] = (mean, mean, max, lambda x, y: y, max)
    return [y if x is None else x if y is None else way(x, y) for way, x, y in zip(ways, first, second)]
