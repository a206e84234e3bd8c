"""Session windows."""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

from esault.errors import StateError
from esault.flow.operators.operator import STOPPING
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError
from esault.flow.operators.window_operator import NoTime, WindowOperator
from esault.flow.watermark.clock import as_time, times_at_once
from esault.topology.window import SessionWindow, Window

__all__ = ["SessionOperator"]

_window = tuple.__new__


class _Session:
    """The session of a key that is open, and rows whose time has not been passed yet."""

    __slots__ = ("element", "end", "key", "number", "of", "rows", "wake_at")

    key: Any

    def __init__(self, of: SessionOperator) -> None:
        self.of = of
        self.element: Any = None
        self.end = -math.inf
        #: (time, number, stream, value), a heap: by time, and what has one time in the order in which it came
        self.rows: list[tuple[float, int, str, Any]] = []
        self.number = 0
        #: when this key is to be looked at next, as its timer says
        self.wake_at = math.inf

    def objects(self) -> list[Any]:
        return [] if self.element is None else [self.element]

    @property
    def next(self) -> float:
        """Return the time at which there is something to do: the watermark has passed a row, or reached the end."""
        first = self.rows[0][0] if self.rows else math.inf
        return math.nextafter(first if self.element is None else min(first, self.end), math.inf)

    @property
    def start(self) -> float:
        """Return the start of what is open at the watermark, with rows that wait: all of these before it touch it, and one another."""
        first = self.rows[0][0] if self.rows else math.inf
        return first if self.element is None else min(first, self.element.window.start)

    def __getstate__(self) -> Any:
        element = self.element
        session = None if element is None else (tuple(element.window), self.of.packed(element))
        return (self.next, self.number, session, self.rows)

    def __setstate__(self, state: Any) -> None:
        self.wake_at, self.number, session, rows = state
        self.rows = list(rows)  # a heap it was
        if session is not None:
            window = Window(*session[0])
            self.end = window.end
            self.element = self.of.restored(self.key, window, session[1])


class SessionOperator(WindowOperator):
    """Rows wait until the watermark has passed them, and then go in the order of their times into their session's object.

    So no two sessions ever turn out to be one, and their objects need not be merged. A row behind the watermark belongs to the
    session that is open there, if it touches it: it goes into it behind rows of later times. At a watermark one session of a key is
    open at most, so such a row joins no two either.
    """

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        assert self.plan.window is not None and isinstance(self.plan.window.kind, SessionWindow)
        gap = self.plan.window.kind.gap
        #: seconds that a row's session lasts behind it, where all have the same, and what gives it else
        self._gap: float = 0.0 if callable(gap) else gap
        self._gap_of: Callable[[Any], float] | None = gap if callable(gap) else None
        #: nothing is survived, and all rows have one gap and one hook
        self._quick = self._simply and self._gap_of is None and self._by_stream is False
        self.elements.make_plainly(functools.partial(_Session, self), ())

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

    def _keep(self, stream: str, keys: Sequence[Any], values: Sequence[Any], times: Sequence[float]) -> None:
        """Have rows wait, as `add_row` does."""
        elements, push, after, end_of_time = self.elements, heapq.heappush, math.nextafter, math.inf
        for key, value, at in zip(keys, values, times):
            session = elements[key]
            session.number += 1
            push(session.rows, (at, session.number, stream, value))
            if at < session.wake_at:
                due = after(at, end_of_time)
                if due < session.wake_at:
                    session.wake_at = due
                    self.timers.add(due, key if type(key) is str else self.name_of(key))

    def _is_behind(self, key: Any, time: Callable[[Any], float], value: Any) -> bool:
        try:
            return self.time_of(time, value) < self.level(key)
        except NoTime:
            return False

    def windows_of_key(self) -> _Session:
        return _Session(self)

    def add_row(self, windows: Any, stream: str, time: Callable[[Any], float] | None, value: Any) -> None:
        assert time is not None
        session: _Session = windows
        try:
            at = self.time_of(time, value)
            level = self.level(session.key)
            end = at + self.gap(value)
            late = at < level and end < level and end < session.start
            if late or (self.latest is not None and at > self.latest):
                self.look_at_unit(at)
                self.is_late(session.key, value)
                return
            session.number += 1
            heapq.heappush(session.rows, (at, session.number, stream, value))
            self._set_timer(session)
        finally:
            if session.element is None and not session.rows:
                self.elements.forget(self.name_of(session.key))

    @property
    def _nothing_at_the_end(self) -> bool:
        return False  # rows wait

    def _set_timer(self, session: _Session) -> None:
        due = session.next
        if due < session.wake_at:
            session.wake_at = due
            key = session.key
            self.timers.add(due, key if type(key) is str else self.name_of(key))

    def due_of_state(self, state: Any) -> Sequence[float]:
        return [state[0]]

    def close_due(self, name: Any, windows: Any, until: float) -> None:
        session: _Session = windows
        session.wake_at = math.inf
        # All rows that the watermark has passed, and not only what this timer was for: it makes no difference, and fewer timers.
        passed = self.level(session.key)
        process = self._process_quickly if self._quick else self._process
        while session.rows or session.element is not None:
            if session.element is not None and (not session.rows or session.rows[0][0] > session.end):
                if (
                    session.end >= until
                ):  # a row at its end belongs to it, and those of other keys that end before it come first
                    break
                element, session.element, session.end = session.element, None, -math.inf
                self.finish(element)
            elif session.rows[0][0] >= passed:
                break
            else:
                at, _, stream, value = heapq.heappop(session.rows)
                process(session, at, stream, value)
        if session.element is None and not session.rows:
            self.elements.forget(name)
        else:
            self._set_timer(session)

    def _process_quickly(self, session: _Session, at: float, stream: str, value: Any) -> None:
        """The same as `_process`, where what fails ends all."""
        element, end = session.element, at + self._gap
        try:
            if element is None:
                element = session.element = self.new(session.key, _window(Window, (at, end)))
                session.end = end
            else:
                start = element.window[0]
                session.end = end = max(session.end, end)
                element.window = _window(Window, (min(start, at), end))
            element.process(session.key, value)
        except STOPPING:
            raise
        except StateError as error:
            raise UserError(str(error)) from error
        except BaseException as error:
            raise self._fail(error, session.key, "process") from error
        if self.plan.wants_id:
            self._name(f"{self.context.sub_unit}:p{self.ordinal}")
            self.ordinal += 1

    def _process(self, session: _Session, at: float, stream: str, value: Any) -> None:
        """A row into its session, which begins with it, or goes on to `gap` behind it; neither if it fails."""
        before = None if session.element is None else session.element.window
        start, end = (at, at) if before is None else (min(before.start, at), before.end)
        window = Window(start, max(end, at + self.gap(value)))

        def process() -> None:
            if before is None:
                self._drop(session)  # of a try before
                session.element = self.new(session.key, window)
            else:
                session.element.window = window
            self.call(session.element, stream, session.key, value)

        if self._outside_process(process, session.key, "process", value):
            session.end = window.end
        elif before is None:
            self._drop(session)
        else:
            session.element.window = before

    def _drop(self, session: _Session) -> None:
        """A session goes that has had no row."""
        element, session.element = session.element, None
        if element is not None:
            self._close(element)
