"""Bolts that are told the times of their tuples: one object per key, which the watermark wakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.window_operator import FAR, WindowOperator
from esault.routing.ring import Name, canonical
from esault.topology.timed_bolt import NEVER, TimedBolt

__all__ = ["TimedOperator"]


class TimedOperator(WindowOperator):
    """Rows with their times into the objects of their keys. An object is woken when the watermark reaches what it is due at."""

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        self._made = True
        self.state.nested = False

    def _object(self) -> Any:
        element = super()._object()
        self.elements.make_all(self._make)  # they are the engine's own: no user code is called by the others
        return element

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        if self.timers.next(self.levels.own) is not None:
            self.catch_up(keys)
        super().run(input, keys, values, ids)

    def add_row(self, windows: Any, stream: str, time: Callable[[Any], float] | None, value: Any) -> None:
        assert time is not None
        bolt: TimedBolt = windows
        key = bolt.key
        try:
            at = self.time_of(time, value)
            if at > FAR:
                self.look_at_unit(at)
            if (self.latest is not None and at > self.latest) or not bolt.take(stream, value, at, self.level(key)):
                self.is_late(key, value)
            self._set_timer(bolt)
        finally:
            if not bolt.needed:
                self.elements.forget(canonical(key))

    def _set_timer(self, bolt: TimedBolt) -> None:
        due = bolt.due
        if due < bolt.wake_at:
            bolt.wake_at = due
            self.timers.add(due, canonical(bolt.key))

    @property
    def _nothing_at_the_end(self) -> bool:
        return False

    def due_of_state(self, state: Any) -> Sequence[float]:
        return () if state[0] == NEVER else (state[0],)

    def close_due(self, name: Name, windows: Any, until: float) -> None:
        bolt: TimedBolt = windows
        bolt.wake_at = NEVER
        # All that the watermark has passed, and not only what this timer was for: fewer timers.
        passed = self.level(bolt.key)
        while (due := bolt.due) <= passed and due != NEVER:
            if not self._outside_process(lambda: bolt.advance(passed), bolt.key, "process", bolt.current):
                bolt.skip()
        if bolt.needed:
            self._set_timer(bolt)
        else:
            self.elements.forget(name)
