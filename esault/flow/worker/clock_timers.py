"""Timers of processing time, and windows that the clock closes or asks for early results."""

from __future__ import annotations

import math

from esault.flow.operators.pane_operator import PaneOperator
from esault.flow.worker.bolt_unit import BoltSubUnit
from esault.flow.worker.sub_unit import OWN_ROOT_ROWS
from esault.flow.worker.window_closing import CLOSED_IN_A_TURN

__all__ = ["ClockTimers"]


class ClockTimers:
    """Timers of processing time go between two batches."""

    def __init__(self, bolt: BoltSubUnit) -> None:
        operator = bolt.operator if isinstance(bolt.operator, PaneOperator) else bolt.operator.timer_service
        assert operator is not None
        self._bolt = bolt
        self._operator = operator

    @property
    def _may_fire(self) -> bool:
        bolt = self._bolt
        return not bolt.lifecycle.over and (not bolt.tracked or bool(bolt.roots.credit))

    def fire(self, now: float) -> bool:
        """Call what is due; return whether anything was."""
        bolt, operator = self._bolt, self._operator
        if not self._may_fire or operator.due_now(now) is None:
            return False
        for _ in range(CLOSED_IN_A_TURN):
            names = operator.due_now(now)
            if names is None or bolt.emitter.rows() >= OWN_ROOT_ROWS:
                break
            # Up to when the clock has closed windows stands under no key.
            bolt.writer.process(names if bolt.plan.window is None else (None, *names))
            operator.fire_now()
        bolt.emit_own(now)
        return True

    def wake_at(self) -> float:
        """Return when the next one is due and may be called."""
        due = self._operator.due_at()
        return math.inf if due is None or not self._may_fire else due
