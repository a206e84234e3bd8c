"""Timers of a bolt's objects: `timer`, `cancel_timer` and `on_timer`, and the end of keys by event time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

from esault.flow.operators.emitter import Emitter
from esault.flow.operators.user_error import say_hook
from esault.flow.watermark.clock import BEGINNING, END_OF_TIME, as_time, no_time
from esault.flow.watermark.key_timers import KeyTimers
from esault.flow.watermark.levels import Levels
from esault.payload.timed_state import EVENT, PROCESSING
from esault.routing.ring import Name, canonical
from esault.topology.context import Context
from esault.topology.plan import UnitPlan

__all__ = ["TimerService"]

#: name of the engine's own timer of a key that expires by event time
EXPIRY = ""
#: when it is due where the key's newest time is not known, since its bolt had no `expire_after` then: with the first watermark
UNKNOWN = math.nextafter(BEGINNING, 0)


class TimerService:
    """Timers of event time are due when `advance` has gone by them, the others by the clock."""

    def __init__(
        self,
        plan: UnitPlan,
        emitter: Emitter,
        holds: Callable[[Name, Any], bool],
        awake: Callable[[Name], Any],
        call: Callable[[Callable[[], Any], Any, str, Any], bool],
        expire: Callable[[Iterable[Name]], bool],
    ) -> None:
        """`holds`: whether this is the object of a key; `awake`: the object of a key, None if it is not here; `call`: runs a hook.

        `expire`: finishes and forgets objects.
        """
        self._plan, self._emitter = plan, emitter
        self._holds, self._awake, self._call, self._expire = holds, awake, call, expire
        self._expire_after = plan.expire_after if plan.expire_by == "event" else None
        self.levels = Levels()
        self.timers = KeyTimers()
        #: where event time had come to before it was over, on the way that came furthest
        self.furthest = BEGINNING
        #: time is over, and what was to be done by then is being done: nothing is set for later
        self._last_round = False
        #: of the tuple or timer that is processed, where that is asked for
        self._at = BEGINNING

    def told(self, context: Context) -> Context:
        """Return a context that knows the time: up to when all tuples of a key have come, and that of what is processed."""
        return dataclasses.replace(context, watermark=self.levels.of, event_time=lambda: self._at)

    # what objects ask for ----------------------------------------------------------------------

    def members(self) -> dict[str, Any]:
        """Return methods of the user's objects."""

        def timer(element: Any, name: str, at: float, by: str = EVENT) -> None:
            self._set(element, name, at, by)

        def cancel_timer(element: Any, name: str) -> None:
            self.timers.cancel(self._owner(element, "cancel_timer"), name)

        for each in (timer, cancel_timer):  # what Python says of a call with the wrong arguments names them so
            each.__qualname__ = each.__name__
        return {"timer": timer, "cancel_timer": cancel_timer}

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
        if by == EVENT and not self._plan.watermarks:
            raise RuntimeError(
                f"{where}: the tuples of unit {self._plan.name!r} have no event time; say .timed(lambda value: value['at']) before the "
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
            raise RuntimeError(
                f"{type(element).__name__}.{called} works in process, tick and on_timer alone, and not behind clear_state"
            )
        return name

    # what is due -------------------------------------------------------------------------------

    def advance(self, watermark: float) -> None:
        """No row before this time is expected."""
        self.levels.own = max(self.levels.own, watermark)
        self.levels.catch_up()

    def close_some(self, timers: int, rows: int, before: Callable[[tuple[Name]], None] | None) -> bool:
        """Call `on_timer` for all that the watermark has passed, so many at most, until so many rows are out; whether there may be more.

        `before` is told the name of each key first.
        """
        for _ in range(timers):
            found = self.timers.first(EVENT)
            if found is None or found[0] > self.levels.own:
                return False
            if before is not None:
                before((found[2],))
            # What was due by what the tuples said comes as it would have, had there been a tuple more: also what it sets.
            self._last_round = self.levels.own == END_OF_TIME and found[0] > self.furthest
            self._fire(EVENT)
            self._last_round = False
            if self._emitter.rows() >= rows:
                break
        return True

    def finishing(self) -> Iterator[None]:
        """Call it for all, one a step."""
        self.advance(END_OF_TIME)
        while self.close_some(1, 1, None):
            yield

    def due_at(self) -> float | None:
        """Return when the next timer of processing time is due, seconds since the epoch; None: there is none."""
        found = self.timers.first(PROCESSING)
        return None if found is None else found[0]

    def due_now(self, now: float) -> tuple[Name] | None:
        """The name of the key with the first timer that is due by the clock; None: there is none."""
        found = self.timers.first(PROCESSING)
        return (found[2],) if found is not None and found[0] <= now else None

    def fire_now(self) -> None:
        """Call `on_timer` for what `due_now` said."""
        self._fire(PROCESSING)

    def _fire(self, by: str) -> None:
        found = self.timers.first(by)
        assert found is not None
        at, _, key, name = found
        self.timers.cancel(key, name)
        if name == EXPIRY:
            self._end(key, at)
            return
        element = self._awake(key)
        if element is not None:
            if by == EVENT:
                self._at = at
            self._call(lambda: element.on_timer(name, at), element.key, "on_timer", (name, at))

    # time --------------------------------------------------------------------------------------

    def timed(self, time: Callable[[Any], Any], process: Callable[[Any, Any], Any]) -> Callable[[Any, Any], None]:
        """Return what processes a row behind noting its time."""

        def call(key: Any, value: Any) -> None:
            self._take_time(time(value), key)
            process(key, value)

        return call

    def _take_time(self, at: Any, key: Any) -> None:
        """Note the time of the row that is processed next."""
        seconds = as_time(at)
        if seconds is None:
            error = ValueError(f"time gave {no_time(at)}")
            say_hook(error, "time")
            raise error
        self._at = seconds
        if self._expire_after is not None:
            name = key if type(key) is str else canonical(key)
            due = seconds + self._expire_after
            if due > self.timers.at(name, EXPIRY):
                self.timers.set(name, EXPIRY, due, EVENT)

    def key_came(self, name: Name, state: bytes) -> None:
        """See to it that a key expires which came with its state, and knows no time."""
        if self._expire_after is not None and self.timers.at(name, EXPIRY) == BEGINNING:
            self.timers.set(name, EXPIRY, UNKNOWN, EVENT)

    def _end(self, key: Name, due: float) -> None:
        """Have a key expire, unless it waits for a timer, or all are finished now. One of which no time is known lives from now on."""
        if self.levels.own == END_OF_TIME:
            return
        if due == UNKNOWN or self.waits(key):
            assert self._expire_after is not None
            self.timers.set(key, EXPIRY, self.levels.own + self._expire_after, EVENT)
        else:
            self._expire((key,))

    def waits(self, name: Name) -> bool:
        """Return whether a key has a timer of its own, for which it is not expired."""
        return any(timer != EXPIRY for timer, _, _ in self.timers.of(name))
