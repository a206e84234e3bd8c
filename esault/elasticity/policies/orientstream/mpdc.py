"""MPDC, the multiple pipeline data cache (Wang et al. 2019, algorithm 1): slices of a window, grouped by configuration.

Where the configurations that are predicted for the slices of one micro-batch change more often than there is time for, slices
of the same configuration go through one after the other, and what is too much joins configurations of higher parallelism.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from random import Random
from typing import Generic, TypeVar

from esault.errors import UsageError
from esault.value_class import value_class

__all__ = ["Grouping", "most_pipelines", "mpdc"]

C = TypeVar("C", bound=Hashable)


@value_class(frozen=True)
class Grouping(Generic[C]):
    """The way of one window through the topology: (configuration, its slices in order of arrival), in the order to run them."""

    #: "in_order": as it arrived, with a change wherever the configuration changes; "by_config": a pipeline for each
    #: configuration; "top_parallelism": only for those of the highest parallelism
    mode: str
    #: changes that were predicted
    changes: int
    #: most pipelines that there is time for
    most: int
    pipelines: tuple[tuple[C, tuple[int, ...]], ...]


def most_pipelines(window_ms: int, change_ms: int, load: float = 0.0) -> int:
    """Return the number of pipelines that a window of `window_ms` has time for, when a change takes at most `change_ms`.

    The paper divides the one by the other, which leaves no time to process; `load` is the share of the window that
    processing takes, and is kept free of changes. Raises UsageError for a change that takes no time, or a load not in 0 .. 1.
    """
    if window_ms < 0 or change_ms < 1:
        raise UsageError(f"window of {window_ms} ms, change of {change_ms} ms: write whole ms, 0 or more and 1 or more")
    if not 0.0 <= load < 1.0:
        raise UsageError(f"load {load:g}: write the share of a window that processing takes, 0 or more and below 1")
    return round((1.0 - load) * window_ms * 1000) // (change_ms * 1000)


def mpdc(
    slices: Sequence[tuple[int, C]],
    current: C,
    window_ms: int,
    change_ms: int,
    parallelism: Mapping[C, int],
    *,
    order: Random | None = None,
    always: bool = False,
    load: float = 0.0,
) -> Grouping[C]:
    """Group the slices of one window.

    `slices`: (number, predicted configuration) in order of arrival. `current`: the configuration in force. `parallelism`: of
    each configuration. `order`: where to draw the pipelines that surplus slices join; None: each in turn. `always`: group
    even when there would be time for every change. `load`: see `most_pipelines`.
    """
    groups: dict[C, list[int]] = {}
    runs: list[tuple[C, list[int]]] = []
    changes, last = 0, current
    for number, configuration in slices:
        changes += configuration != last
        if configuration != last or not runs:
            runs.append((configuration, []))
        runs[-1][1].append(number)
        last = configuration
        groups.setdefault(configuration, []).append(number)
    most = most_pipelines(window_ms, change_ms, load)
    if changes <= most and not always:
        return Grouping("in_order", changes, most, tuple((c, tuple(numbers)) for c, numbers in runs))
    mode = "by_config"
    if len(groups) >= most:
        mode = "top_parallelism"
        first = {c: i for i, c in enumerate(groups)}
        ranked = sorted(groups, key=lambda c: (-parallelism[c], first[c]))
        keep, rest = ranked[: max(1, most)], ranked[max(1, most) :]
        pipes = {c: list(groups[c]) for c in keep}
        for i, c in enumerate(rest):
            pipes[order.choice(keep) if order else keep[i % len(keep)]] += groups[c]
        groups = pipes
    place = {number: i for i, (number, _) in enumerate(slices)}
    ordered = {c: sorted(numbers, key=place.__getitem__) for c, numbers in groups.items()}
    # The one in force first, which saves a change; then by the slice that has waited longest.
    turn = sorted(ordered, key=lambda c: (c != current, place[ordered[c][0]]))
    return Grouping(mode, changes, most, tuple((c, tuple(ordered[c])) for c in turn))
