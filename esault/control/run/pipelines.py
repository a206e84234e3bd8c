"""Micro-batches through pipelines of configurations (Wang et al. 2019): changes and releases in order.

A window of the stream is collected in slices. When it closes, each slice is given the configuration that its rate asks for,
`mpdc` groups them, and the pipelines go through one after the other: the units are changed, when none is changing any more the
pipeline's slices are released, and when nothing of them is open any more the next pipeline's turn has come.

The class holds no clock and does nothing itself: its caller says what is so, and does what it returns. In the engine that is
`pipeline_driver`; the benches drive it over a model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from esault.elasticity.policies.orientstream.configuration import Configuration
from esault.elasticity.policies.orientstream.mpdc import Grouping, most_pipelines, mpdc
from esault.errors import UsageError
from esault.value_class import value_class

__all__ = ["Do", "Pipelines", "Slice"]


@value_class(frozen=True)
class Slice:
    """A part of a window, as it was collected; `rate` in tuples a second."""

    number: int
    rate: float


@value_class(frozen=True)
class Do:
    """Steps to be done now."""

    #: (unit, sub-units)
    rescale: tuple[tuple[str, int], ...] = ()
    #: (window, numbers of slices) that may go on, in this order
    release: tuple[int, tuple[int, ...]] | None = None
    #: the window whose last pipeline has just gone through
    ended: int | None = None


@dataclass
class _Pipeline:
    window: int
    configuration: Configuration
    slices: tuple[int, ...]
    last: bool
    asked: bool = False
    released: bool = False


@dataclass
class Pipelines:
    """The pipelines that wait for their turn.

    `wanted`: the configuration for sources that offer so many tuples a second; None: leave all as it is.
    """

    wanted: Callable[[float], Configuration | None]
    #: of a window, and the longest that a change takes; whole milliseconds
    window_ms: int
    change_ms: int
    #: group even where there would be time for each change; the paper does not, and then falls behind (3.3.2)
    always: bool = True
    #: share of a window that processing takes, kept free of changes; the paper's is 0
    load: float = 0.0
    #: draws which pipeline surplus slices join; None: each in turn
    order: Random | None = None
    #: of each window, as it was grouped
    groupings: list[Grouping[Configuration]] = field(default_factory=list, init=False)
    #: pipelines that ran as the units were, since the change that was asked for did not come about
    missed: int = field(default=0, init=False)
    _waiting: deque[_Pipeline] = field(default_factory=deque, init=False)
    _windows: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        most_pipelines(self.window_ms, self.change_ms, self.load)  # refuses what cannot be

    @property
    def busy(self) -> bool:
        """Return whether a pipeline has not gone through yet."""
        return bool(self._waiting)

    def close(self, slices: Sequence[Slice], current: Configuration) -> int:
        """Group the slices of a closed window, and return its number, 0 for the first. `current`: what the units are set to.

        Raises UsageError for a window without slices.
        """
        if not slices:
            raise UsageError("a window without slices has nothing to go through: close it when something has come")
        # What is in force when this window's turn comes is what the one before it ends with.
        last = self._waiting[-1].configuration if self._waiting else current
        chosen = [(each.number, self.wanted(each.rate) or last) for each in slices]
        parallelism = {c: c.parallelism for _, c in chosen}
        grouping = mpdc(
            chosen,
            last,
            self.window_ms,
            self.change_ms,
            parallelism,
            order=self.order,
            always=self.always,
            load=self.load,
        )
        self.groupings.append(grouping)
        number, self._windows = self._windows, self._windows + 1
        for i, (configuration, numbers) in enumerate(grouping.pipelines):
            self._waiting.append(_Pipeline(number, configuration, numbers, i == len(grouping.pipelines) - 1))
        return number

    def give_up(self) -> None:
        """Forget what has not gone through: it has gone on by itself."""
        self._waiting.clear()

    def advance(self, current: Configuration, changing: bool, open_: bool) -> Do:
        """Return what to do now. `changing`: a unit is changing; `open_`: tuples that were released are not all processed yet."""
        if not self._waiting or changing:
            return Do()
        pipeline = self._waiting[0]
        if pipeline.released:
            if open_:
                return Do()
            self._waiting.popleft()
            if pipeline.last:
                return Do(ended=pipeline.window)
            return self.advance(current, changing, open_)
        widths = dict(current.widths)
        changes = tuple((unit, n) for unit, n in pipeline.configuration.widths if widths.get(unit) != n)
        if changes and not pipeline.asked:
            pipeline.asked = True
            return Do(rescale=changes)
        # Asked for and not come about: it was refused or dropped. What is collected must go on nevertheless.
        self.missed += bool(changes)
        pipeline.released = True
        return Do(release=(pipeline.window, pipeline.slices))
