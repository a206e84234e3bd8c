"""The sub-unit of a bolt with windows, which the watermark closes."""

from __future__ import annotations

from dataclasses import replace

from esault.flow.operators.timer_operator import TimerOperator
from esault.flow.operators.window_operator import WindowOperator
from esault.flow.worker.bolt_unit import BoltSubUnit
from esault.flow.worker.environment import Environment
from esault.flow.worker.sub_unit import OWN_ROOT_ROWS
from esault.messages.control import Build
from esault.messages.status import SubUnitCounts
from esault.topology.plan import UnitPlan

__all__ = ["WindowSubUnit"]

#: windows closed in one turn: control and probes must not wait for all of them
CLOSED_IN_A_TURN = 256


class WindowSubUnit(BoltSubUnit):
    """A sub-unit that closes windows in the order of their ends; what they emit goes before the watermark is passed on."""

    operator: WindowOperator | TimerOperator

    def __init__(self, build: Build, plan: UnitPlan, environment: Environment) -> None:
        super().__init__(build, plan, environment)
        #: windows are being closed
        self._at_work = False

    def _advance_time(self, now: float) -> bool:
        marks, operator = self.watermarks, self.operator
        assert marks is not None
        if not marks.advance(self.reader.taken, self.reader.unfinished, self.changes.active) or self._over:
            self._at_work = False
            return False
        if self.writer.snapshot is not None and marks.merging.current > operator.levels.own:
            self.writer.before((None,))  # where it stood at the cut: else what is read again behind that would be late
        operator.advance(marks.merging.current)
        if self._tracked and not self.roots.credit:
            return False
        self._at_work = True
        writer = self.writer
        before = None if writer.snapshot is None and writer.dirty is None else writer.process
        self._at_work = operator.close_some(CLOSED_IN_A_TURN, OWN_ROOT_ROWS, before)
        self._emit_own(now)
        if self._at_work:
            return True
        marks.passed = marks.merging.current
        return False

    @property
    def _settled(self) -> bool:
        # What is closed at one watermark is part of the cut as a whole.
        return super()._settled and not self._at_work

    def _snap(self, number: int, sure: bool) -> None:
        if self.writer.dirty is not None:
            self.writer.dirty.add(None)  # where the watermark stands
        super()._snap(number, sure)

    def counts(self) -> SubUnitCounts:
        return replace(super().counts(), late=self.operator.late)
