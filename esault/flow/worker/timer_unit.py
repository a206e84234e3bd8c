"""The sub-unit of a bolt with timers, or with windows that the clock closes or asks for early results."""

from __future__ import annotations

from esault.flow.operators.pane_operator import PaneOperator
from esault.flow.operators.timer_operator import TimerOperator
from esault.flow.worker.sub_unit import OWN_ROOT_ROWS
from esault.flow.worker.window_unit import CLOSED_IN_A_TURN, WindowSubUnit

__all__ = ["TimerSubUnit"]


class TimerSubUnit(WindowSubUnit):
    """Timers of event time go before what the watermark lets through next; those of processing time between two batches."""

    operator: TimerOperator | PaneOperator

    def _next(self, now: float, more: bool) -> bool:
        if self._may_fire and self.operator.due_now(now) is not None:
            self._fire(now)
            return True
        return super()._next(now, more)

    @property
    def _may_fire(self) -> bool:
        return not self._over and (not self._tracked or bool(self.roots.credit))

    def _fire(self, now: float) -> None:
        operator = self.operator
        for _ in range(CLOSED_IN_A_TURN):
            name = operator.due_now(now)
            if name is None or self.emitter.rows() >= OWN_ROOT_ROWS:
                break
            # Up to when the clock has closed windows stands under no key.
            self.writer.process((name,) if self.plan.window is None else (None, name))
            operator.fire_now()
        self._emit_own(now)

    def wake_at(self) -> float:
        at = super().wake_at()
        due = self.operator.due_at()
        return at if due is None or self._resting or not self._may_fire else min(at, due)
