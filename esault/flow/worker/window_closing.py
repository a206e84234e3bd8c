"""Windows and timers of event time, which the watermark closes."""

from __future__ import annotations

from esault.flow.operators.window_operator import WindowOperator
from esault.flow.worker.bolt_unit import BoltSubUnit
from esault.flow.worker.sub_unit import OWN_ROOT_ROWS

__all__ = ["CLOSED_IN_A_TURN", "WindowClosing"]

#: windows closed in one turn: control and probes must not wait for all of them
CLOSED_IN_A_TURN = 256


class WindowClosing:
    """Closes windows in the order of their ends; what they emit goes before the watermark is passed on."""

    def __init__(self, bolt: BoltSubUnit) -> None:
        operator = bolt.operator if isinstance(bolt.operator, WindowOperator) else bolt.operator.timer_service
        assert operator is not None
        self._bolt = bolt
        self._operator = operator
        self._timers = bolt.operator.timer_service
        #: windows are being closed
        self.at_work = False

    def advance(self, now: float) -> bool:
        """Take the watermark on, and return whether there is more to do at once before rows are."""
        bolt, operator = self._bolt, self._operator
        marks, reader, writer = bolt.watermarks, bolt.reader, bolt.writer
        assert marks is not None
        if not marks.advance(reader.taken, reader.unfinished, bolt.changes.moving) or bolt.lifecycle.over:
            self.at_work = False
            return False
        if writer.snapshot is not None and marks.merging.current > operator.levels.own:
            writer.before((None,))  # where it stood at the cut: else what is read again behind that would be late
        if self._timers is not None:
            self._timers.furthest = marks.merging.furthest
        operator.advance(marks.merging.current)
        if bolt.tracked and not bolt.roots.credit:
            return False
        self.at_work = True
        before = None if writer.snapshot is None and writer.dirty is None else writer.process
        self.at_work = operator.close_some(CLOSED_IN_A_TURN, OWN_ROOT_ROWS, before)
        bolt.emit_own(now)
        if not self.at_work:
            marks.passed = marks.merging.current
        return self.at_work
