"""Timers of bolts with one object for the unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esault.flow.operators.object_operator import ObjectOperator
from esault.flow.operators.timer_operator import TimerOperator
from esault.routing.ring import Name

__all__ = ["ObjectTimerOperator"]


class ObjectTimerOperator(TimerOperator, ObjectOperator):
    """Timers of the one object of a unit, whose name is None."""

    def _said(self, name: Name) -> Name:
        return ()

    def key_of(self, name: Name) -> Any:
        return None

    def peek(self, name: Name) -> bytes | None:
        return super().peek(None)

    def _holds(self, name: Name, element: Any) -> bool:
        return element is self.object and not self._given

    def _awake(self, name: Name) -> Any:
        return None if self._given else self.object

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        if not self.plan.times:
            super().run(input, keys, values, ids)
            return
        time, stream = self.plan.times[input], self._streams[input]

        def call(key: Any, value: Any) -> None:
            self._take_time(time(value), key)
            if self._by_stream:
                self.object.process_stream(stream, key, value)
            else:
                self.object.process(key, value)

        self._run_careful(call, keys, values, ids)
        if not self._tried_state:
            self._try_state()

    def reload(self, keys: Sequence[Any]) -> None:
        super().reload([None])

    def saved_names(self) -> list[Name]:
        return super().saved_names() or ([None] if self.timers and not self._given else [])

    @property
    def states(self) -> int:
        return super().states or len(self.timers)
