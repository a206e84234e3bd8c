"""Function steps in a row that map: one loop for all of them, where nothing but what stands in their functions runs in it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from esault.flow.operators import hot_loop
from esault.flow.operators.operator import STOPPING
from esault.payload.scalars import all_scalars
from esault.topology.step import Step

if TYPE_CHECKING:
    from esault.topology.fused_map import FusedMap

__all__ = ["FusedSteps", "fused_steps"]


class FusedSteps:
    """The loop of some steps, once there is one."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._functions = [step.function for step in steps]
        #: how many steps there are
        self.count = len(steps)
        self._left = hot_loop.HOT
        self._asked = False
        self._loop: FusedMap | None = None

    def mapped(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """Return what the last step makes of each value; None where the steps are to take them one by one, which also tells what raises."""
        if self._left > 0:
            self._left -= len(values)
            return None
        if not self._asked:
            self._asked = True
            from esault.topology.fused_map import fused_map  # it takes time to load, and few runs need it

            self._loop = fused_map(self._functions)
        loop = self._loop
        if loop is None or not all_scalars(values):
            return None
        # What follows calls and lines is to see them as they are.
        if sys.gettrace() is not None or sys.getprofile() is not None or not loop.holds():
            return None
        try:
            return tuple(loop.run(iter(values)))
        except STOPPING:
            raise
        except BaseException:
            return None  # they change nothing, so that it does not matter what has run already


def fused_steps(steps: Sequence[Step]) -> dict[int, FusedSteps]:
    """Return the steps that follow one another and map, two at least, by the place of the first."""
    found: dict[int, FusedSteps] = {}
    begin = 0
    for end, step in enumerate((*steps, None)):
        if step is None or step.kind != "map":
            if end - begin > 1:
                found[begin] = FusedSteps(steps[begin:end])
            begin = end + 1
    return found
