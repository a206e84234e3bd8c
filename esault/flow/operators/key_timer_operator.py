"""Timers, and the end by event time, of bolts with an object per key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from esault.errors import FrameError
from esault.flow.operators.element_operator import ElementOperator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.timer_operator import TimerOperator
from esault.flow.watermark.clock import END_OF_TIME
from esault.payload.timed_state import EVENT
from esault.routing.ring import Name, canonical

__all__ = ["KeyTimerOperator"]

#: name of the engine's own timer of a key that expires by event time
EXPIRY = ""


class KeyTimerOperator(TimerOperator, ElementOperator):
    """Timers of an object per key. A key that has one is not expired: it waits for it."""

    def _holds(self, name: Name, element: Any) -> bool:
        return self.elements.holds(name, element)

    def _awake(self, name: Name) -> Any:
        return self.elements.wake(name)

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        self._expire_after = self.plan.expire_after if self.plan.expire_by == "event" else None
        self._time_of = dict(zip(self._streams, self.plan.times))

    def _process(self, stream: str, key: Any, value: Any) -> None:
        if self._time_of:
            self._take_time(self._time_of[stream](value), key)
        super()._process(stream, key, value)

    def _take_time(self, at: Any, key: Any) -> None:
        super()._take_time(at, key)
        if self._expire_after is not None:
            name = key if type(key) is str else canonical(key)
            due = self.at + self._expire_after
            if due > self.timers.at(name, EXPIRY):
                self.timers.set(name, EXPIRY, due, EVENT)

    def _fire(self, by: str) -> None:
        found = self.timers.first(by)
        assert found is not None
        _, _, key, name = found
        if name != EXPIRY:
            super()._fire(by)
            return
        self.timers.cancel(key, name)
        if self.levels.own == END_OF_TIME:
            return  # all are finished now
        if self.waits(key):
            assert self._expire_after is not None
            self.timers.set(key, EXPIRY, self.levels.own + self._expire_after, EVENT)
        else:
            self.expire((key,))

    def waits(self, name: Name) -> bool:
        return any(timer != EXPIRY for timer, _, _ in self.timers.of(name))

    def expire(self, names: Iterable[Name]) -> bool:
        return super().expire([name for name in names if not self.waits(name)])

    @property
    def states(self) -> int:
        return super().states or len(self.timers)

    # how far time had come: it moves with ranges of keys, and stands in checkpoints under no key --

    def install_state(self, key: Any, state: bytes) -> None:
        if key is None:
            self.levels.restore(self.codec.unpack(state), None)
            return
        super().install_state(key, state)

    def install_watermark(self, state: bytes, ranges: Sequence[tuple[int, int]]) -> None:
        self.levels.restore(self.codec.unpack(state), ranges)

    def ring_state(self, ranges: Sequence[tuple[int, int]]) -> Any:
        return tuple(self.levels.cut(ranges)) if self.plan.watermarks else None

    def install_ring_state(self, said: Any) -> None:
        if type(said) is not tuple or any(
            type(each) is not tuple or [type(x) for x in each] != [int, int, float] for each in said
        ):
            raise FrameError("what is said beside rows of keys with timers is a sequence of ranges and times")
        self.levels.merge(said)

    def beside_keys(self) -> list[Name]:
        return [None]

    def peek(self, name: Name) -> bytes | None:
        return self.codec.pack(self.levels.saved()) if name is None else super().peek(name)
