"""Bolts whose objects set timers: `timer`, `cancel_timer` and `on_timer`, and where timers stand while keys move."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from esault.errors import FrameError, StateError
from esault.flow.operators.operator import Operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import say_hook
from esault.flow.watermark.clock import BEGINNING, END_OF_TIME, as_time, no_time
from esault.flow.watermark.key_timers import KeyTimers
from esault.flow.watermark.levels import Levels
from esault.payload.schema import Evolution
from esault.payload.timed_state import EVENT, PROCESSING, with_timers, without_timers
from esault.routing.ring import Name, canonical

__all__ = ["TimerOperator"]


class TimerOperator(Operator):
    """The common part: timers of event time are due when `advance` has gone by them, the others by the clock."""

    def __init__(self, parameters: OperatorParameters) -> None:
        self.levels = Levels()
        self.timers = KeyTimers()
        #: time is over, and what was to be done by then is being done: nothing is set for later
        self._last_round = False
        #: of the tuple or timer that is processed, where that is asked for
        self.at = BEGINNING
        context = dataclasses.replace(parameters.context, watermark=self.level, event_time=lambda: self.at)
        super().__init__(dataclasses.replace(parameters, context=context))

    def level(self, key: Any) -> float:
        """Up to when all tuples of a key have come."""
        return self.levels.of(key) if self.levels else self.levels.own

    def order_by_key(self) -> None:
        super().order_by_key()
        self.timers.ordered = True

    # what objects ask for ----------------------------------------------------------------------

    def _members(self) -> dict[str, Any]:
        def timer(element: Any, name: str, at: float, by: str = EVENT) -> None:
            self._set(element, name, at, by)

        def cancel_timer(element: Any, name: str) -> None:
            self.timers.cancel(self._owner(element, "cancel_timer"), name)

        for each in (timer, cancel_timer):  # what Python says of a call with the wrong arguments names them so
            each.__qualname__ = each.__name__
        return {**super()._members(), "timer": timer, "cancel_timer": cancel_timer}

    def _set(self, element: Any, name: Any, at: Any, by: Any) -> None:
        key = self._owner(element, "timer")
        where = f"{type(element).__name__}.timer({name!r}, ...)"
        if type(name) is not str or not name:
            raise ValueError(f"{where}: the name of a timer is a text that is not empty")
        seconds = as_time(at)
        if seconds is None:
            if isinstance(at, timedelta):
                raise ValueError(
                    f"{where}: at={at!r} is a span of time; a timer is due at a time: self.context.now() + {at.total_seconds():g} by the "
                    f"clock, value['at'] + {at.total_seconds():g} say by event time"
                )
            raise ValueError(f"{where}: at is {no_time(at)}")
        if by not in (EVENT, PROCESSING):
            raise ValueError(f"{where}: by={by!r}; a timer is due by 'event' or by 'processing' time")
        if by == EVENT and not self.plan.watermarks:
            raise RuntimeError(
                f"{where}: the tuples of unit {self.plan.name!r} have no event time; say .timed(lambda value: value['at']) before the "
                "bolt, on each of its inputs, or take by='processing'"
            )
        if by == EVENT and self._last_round:
            return
        self.timers.set(key, name, seconds, by)

    def _owner(self, element: Any, called: str) -> Name:
        """Return the name of the key whose object this is. Raises RuntimeError unless it is at work."""
        key = element.key if hasattr(element, "key") else None
        name = key if type(key) is str else canonical(key)
        if not self._holds(name, element):
            raise RuntimeError(f"{type(element).__name__}.{called} works in process, tick and on_timer alone")
        return name

    def _holds(self, name: Name, element: Any) -> bool:
        raise NotImplementedError

    def _awake(self, name: Name) -> Any:
        """The object of a key; None if it is not here."""
        raise NotImplementedError

    # what is due -------------------------------------------------------------------------------

    def advance(self, watermark: float) -> None:
        """No row before this time is expected."""
        self.levels.own = max(self.levels.own, watermark)
        if self.levels:
            self.levels.catch_up()

    def due(self) -> Name | None:
        """The name of the key with the first timer that the watermark has passed; None: there is none."""
        found = self.timers.first(EVENT)
        return self._said(found[2]) if found is not None and found[0] <= self.levels.own else None

    def close_next(self) -> None:
        """Call `on_timer` for what `due` said."""
        self._last_round = self.levels.own == END_OF_TIME
        self._fire(EVENT)
        self._last_round = False

    def close_some(self, timers: int, rows: int, before: Callable[[tuple[Name]], None] | None) -> bool:
        """Call it for all that the watermark has passed, so many at most, until so many rows are out; whether there may be more.

        `before` is told the name of each key first.
        """
        for _ in range(timers):
            name = self.due()
            if name is None:
                return False
            if before is not None:
                before((name,))
            self.close_next()
            if self.emitter.rows() >= rows:
                break
        return True

    def due_at(self) -> float | None:
        """Return when the next timer of processing time is due, seconds since the epoch; None: there is none."""
        found = self.timers.first(PROCESSING)
        return None if found is None else found[0]

    def due_now(self, now: float) -> Name | None:
        """The name of the key with the first timer that is due by the clock; None: there is none."""
        found = self.timers.first(PROCESSING)
        return self._said(found[2]) if found is not None and found[0] <= now else None

    def _said(self, name: Name) -> Name:
        """The name as it is said by `due`, where None means that there is none."""
        return name

    def fire_now(self) -> None:
        """Call `on_timer` for what `due_now` said."""
        self._fire(PROCESSING)

    def _fire(self, by: str) -> None:
        found = self.timers.first(by)
        assert found is not None
        at, _, key, name = found
        self.timers.cancel(key, name)
        element = self._awake(key)
        if element is not None:
            if by == EVENT:
                self.at = at
            self._outside_process(lambda: element.on_timer(name, at), element.key, "on_timer", (name, at))

    def _take_time(self, at: Any, key: Any) -> None:
        """Note the time of the row that is processed next."""
        seconds = as_time(at)
        if seconds is None:
            error = ValueError(f"time gave {no_time(at)}")
            say_hook(error, "time")
            raise error
        self.at = seconds

    def finishing(self) -> Iterator[None]:
        self.advance(END_OF_TIME)
        while self.due() is not None:
            self.close_next()
            yield
        yield from super().finishing()

    # state -------------------------------------------------------------------------------------

    def reload(self, keys: Sequence[Any]) -> None:
        super().reload(keys)
        for name in {canonical(key) for key in keys}:
            moved = with_timers(b"", self.timers.pop(name), self.codec)
            self.timers.put(name, without_timers(moved, self.codec)[1])

    def remove_state(self, name: Name) -> bytes | None:
        state = super().remove_state(name)
        timers = self.timers.pop(name)
        return None if state is None else with_timers(state, timers, self.codec)

    def install_state(self, key: Any, state: bytes) -> None:
        state, timers = self._apart(state)
        super().install_state(key, state)
        self.timers.put(canonical(key), timers)

    def peek(self, name: Name) -> bytes | None:
        state = super().peek(name)
        return None if state is None else with_timers(state, self.timers.of(name), self.codec)

    def evolved(self, state: bytes, evolution: Evolution) -> bytes:
        state, timers = self._apart(state)
        return with_timers(super().evolved(state, evolution), timers, self.codec)

    def _apart(self, state: bytes) -> tuple[bytes, tuple[Any, ...]]:
        try:
            return without_timers(state, self.codec)
        except FrameError as error:
            raise StateError(f"unit {self.plan.name!r}: the state cannot be restored: {error}") from None
