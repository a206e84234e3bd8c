"""Session windows."""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from esault.flow.operators.open_session import OpenSession
from esault.flow.operators.operator import STOPPING
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError
from esault.flow.operators.window_operator import NoTime, WindowOperator
from esault.flow.watermark.clock import as_time, times_at_once
from esault.routing.ring import canonical
from esault.topology.bolt import Bolt
from esault.topology.window import SessionWindow, Window

__all__ = ["SessionOperator"]

#: where an object has its window, or the session that knows it
_WINDOW: Any = vars(Bolt)["window"]


class SessionOperator(WindowOperator):
    """Rows wait until the watermark has passed them, and then go in the order of their times into their session's object.

    So no two sessions ever turn out to be one, and their objects need not be merged. A row behind the watermark belongs to the
    session that is open there, if it touches it: it goes into it behind rows of later times. At a watermark one session of a key is
    open at most, so such a row joins no two either.
    """

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        #: of the row that came last: of two with one time that which has the lower number came first
        self.number = 0
        assert self.plan.window is not None and isinstance(self.plan.window.kind, SessionWindow)
        gap = self.plan.window.kind.gap
        #: seconds that a row's session lasts behind it, where all have the same, and what gives it else
        self._gap: float = 0.0 if callable(gap) else gap
        self._gap_of: Callable[[Any], float] | None = gap if callable(gap) else None
        #: nothing is survived, and all rows have one gap and one hook
        self._quick = self._simply and self._gap_of is None and self._by_stream is False
        self.elements.make_all(functools.partial(OpenSession, self))

    def gap(self, value: Any) -> float:
        """Return the seconds that this row's session lasts behind it. Raises ValueError."""
        if self._gap_of is None:
            return self._gap
        gap = self._gap_of(value)
        seconds = None if isinstance(gap, bool) else as_time(gap)
        if seconds is None or seconds <= 0:
            raise ValueError(f"gap gave {gap!r} ({type(gap).__name__}), which is no number of seconds above 0")
        return seconds

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        time, levels = self.times[input], self.levels
        if self.timers.next(levels.own) is not None:
            self.catch_up([key for key, value in zip(keys, values) if self._is_behind(key, time, value)])
        elif self._quick and not levels.others:
            times = times_at_once(time, values, self.latest_of(input))
            if times is not None and min(times, default=levels.own) >= levels.own:  # then none is late
                self._keep(self._streams[input], keys, values, times)
                self.try_state(keys)
                return
        super().run(input, keys, values, ids)

    def _members(self) -> dict[str, Any]:
        def window(element: Any) -> Any:
            found = _WINDOW.__get__(element)
            return found.window if type(found) is OpenSession else found

        # A session gets longer with each row, and few objects look at it.
        return {"window": property(window, _WINDOW.__set__)}

    def _keep(self, stream: str, keys: Sequence[Any], values: Sequence[Any], times: Sequence[float]) -> None:
        """Have rows wait, as `add_row` does."""
        elements, after, end_of_time, before = self.elements, math.nextafter, math.inf, self.number
        self.number += len(keys)
        for number, key, value, at in zip(count(before + 1), keys, values, times):
            session = elements[key]
            rows = session.rows
            if not rows or (session.in_order and at >= rows[-1][0]):
                rows.append((at, number, stream, value))
            else:
                session.wait((at, number, stream, value))
            if at < session.wake_at:
                due = after(at, end_of_time)
                if due < session.wake_at:
                    session.wake_at = due
                    self.timers.add(due, key if type(key) is str else canonical(key))

    def _is_behind(self, key: Any, time: Callable[[Any], float], value: Any) -> bool:
        try:
            return self.time_of(time, value) < self.level(key)
        except NoTime:
            return False

    def add_row(self, windows: Any, stream: str, time: Callable[[Any], float] | None, value: Any) -> None:
        assert time is not None
        session: OpenSession = windows
        try:
            at = self.time_of(time, value)
            level = self.level(session.key)
            end = at + self.gap(value)
            late = at < level and end < level and end < session.first
            if late or (self.latest is not None and at > self.latest):
                self.look_at_unit(at)
                self.is_late(session.key, value)
                return
            self.number += 1
            session.wait((at, self.number, stream, value))
            self._set_timer(session)
        finally:
            if session.element is None and not session.rows:
                self.elements.forget(canonical(session.key))

    @property
    def _nothing_at_the_end(self) -> bool:
        return False  # rows wait

    def _set_timer(self, session: OpenSession) -> None:
        due = session.next
        if due < session.wake_at:
            session.wake_at = due
            if not session.rows:
                session.end_timer = due
            key = session.key
            self.timers.add(due, key if type(key) is str else canonical(key))

    def due_of_state(self, state: Any) -> Sequence[float]:
        return [state[0]]

    def close_due(self, name: Any, windows: Any, until: float) -> None:
        session: OpenSession = windows
        if session.end_timer <= until:
            session.end_timer = math.inf
        # Where the session lasts longer than when that was set, it will be set anew: one timer, and not one for each row.
        session.wake_at = session.end_timer
        # All rows that the watermark has passed, and not only what this timer was for: it makes no difference, and fewer timers.
        passed = self.level(session.key)
        if self._quick:
            self._close_quickly(session, until, passed)
        else:
            self._close_carefully(session, until, passed)
        if session.element is None and not session.rows:
            self.elements.forget(name)
        else:
            self._set_timer(session)

    def _close_carefully(self, session: OpenSession, until: float, passed: float) -> None:
        rows = session.rows
        session.in_order = False
        while rows or session.element is not None:
            if session.element is not None and (not rows or rows[0][0] > session.end):
                if (
                    session.end >= until
                ):  # a row at its end belongs to it, and those of other keys that end before it come first
                    break
                self._end(session)
            elif rows[0][0] >= passed:
                break
            else:
                at, _, stream, value = heapq.heappop(rows)
                self._process(session, at, stream, value)

    def _close_quickly(self, session: OpenSession, until: float, passed: float) -> None:
        """The same, where what fails ends all."""
        key, gap, name = session.key, self._gap, self._name if self.plan.wants_id else None
        element, last = session.element, session.end
        rows = session.passed(passed)
        try:
            for i, (at, _, _, value) in enumerate(rows):
                if at > last and element is not None:
                    if last >= until:
                        session.put_back(rows[i:])
                        return
                    self._end(session)
                    element = None
                end = at + gap
                if element is None:
                    session.start, session.end = at, end
                    element = session.element = self.new(key, Window(at, end))
                    element.window = session
                    last = end
                elif end > last:
                    session.end = last = end
                elif at < session.start:
                    session.start = at
                element.process(key, value)
                if name is not None:
                    name(f"{self.context.sub_unit}:p{self.ordinal}")
                    self.ordinal += 1
        except (*STOPPING, UserError):
            raise
        except BaseException as error:
            raise self._raised(error, key) from error
        if element is not None and last < until and (not session.rows or session.rows[0][0] > last):
            self._end(session)

    def _end(self, session: OpenSession) -> None:
        element, element.window = session.element, session.window
        session.element = None
        session.start, session.end = math.inf, -math.inf
        self.finish(element)

    def _process(self, session: OpenSession, at: float, stream: str, value: Any) -> None:
        """A row into its session, which begins with it, or goes on to `gap` behind it; neither if it fails."""
        bounds = session.start, session.end
        window = Window(min(session.start, at), max(session.end, at + self.gap(value)))
        new = session.element is None

        def process() -> None:
            if new:
                self._drop(session)  # of a try before
                session.element = self.new(session.key, window)
                session.element.window = session
            session.start, session.end = window
            self.call(session.element, stream, session.key, value)

        if not self._outside_process(process, session.key, "process", value):
            if new:
                self._drop(session)
            session.start, session.end = bounds

    def _drop(self, session: OpenSession) -> None:
        """A session goes that has had no row."""
        element, session.element = session.element, None
        if element is not None:
            self._close(element)
