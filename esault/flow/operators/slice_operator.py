"""Sliding windows that share slices: a row goes into one object, and not into that of each window that contains it.

Windows that begin every D seconds cut time into slices of D, of which each window is a whole number (panes of Li et al. 2005, slices of
Traub et al. 2019). What a window came to is what its slices came to, combined when the watermark reaches its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, ClassVar

from esault.flow.operators.open_windows import Bounds, Late, owned
from esault.flow.operators.operator import STOPPING
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError
from esault.flow.operators.window_operator import NoTime, WindowOperator
from esault.flow.watermark.clock import times_at_once
from esault.routing.many_keys import names_of
from esault.routing.ring import canonical
from esault.topology.aggregates.aggregated import Aggregated
from esault.topology.plan import UnitPlan
from esault.topology.slices import may_share_slices
from esault.topology.window import SlidingWindow, TimeWindow, Window

__all__ = ["SliceOperator", "may_slice"]

#: what two objects may share, since neither can change it
_FIXED = frozenset((int, float, str, bytes, bool, type(None)))
#: a number that no window has
_NEVER = 1 << 80
_SLOTS: tuple[str, ...] = vars(Aggregated)["__slots__"]


def may_slice(plan: UnitPlan) -> bool:
    """Return whether the windows of a unit can be put together of slices."""
    # A row that fails in a slice's object could not be taken out of it; replicas name what they emit by window.
    careful = plan.on_error.kind != "fail" or plan.on_error.retries != 0
    if plan.window is None or careful or plan.replicas > 1 or plan.in_parts or plan.tick_every or len(plan.inputs) > 1:
        return False
    return isinstance(plan.window.kind, TimeWindow) and may_share_slices(plan.window.kind, plan.factory)


class _Slices(dict[Any, Any]):
    """The slices of a key: number -> object, made when the first row comes."""

    __slots__ = ("key", "next", "windows")

    key: Any
    of: ClassVar[SliceOperator]

    def __init__(self) -> None:
        #: number of the first window that may not have closed yet, where that is known; those before it are over
        self.next: int | None = None
        #: what windows held when this key came here: number -> object
        self.windows: dict[Any, Any] = {}

    def __missing__(self, number: Any) -> Any:
        return self.of.open_slice(self, number)

    def objects(self) -> list[Any]:
        return [*self.windows.values(), *self.values()]

    def opened(self) -> list[int]:
        """Return the numbers of windows that are open, the first one first."""
        steps, after = self.of.steps, self.next
        numbers = {window for last in self for window in range(last - steps + 1, last + 1)}
        numbers.update(number for number in self.windows if type(number) is int)
        return sorted(number for number in numbers if after is None or number >= after)

    def kept(self, until: float = math.inf) -> list[Any]:
        """Return what windows that were cut otherwise, before the run was resumed, stand under; those that end by then."""
        found = [each for each in self.windows if type(each) is tuple and each[1] <= until]
        return sorted(found, key=lambda each: each[::-1])

    def __getstate__(self) -> Any:
        """Return the windows, as they would be without slices: so no state tells one from the other."""
        of = self.of
        found = [(number, of.packed(of.put_together(self, number, False))) for number in self.opened()]
        return (*((bounds, of.packed(self.windows[bounds])) for bounds in self.kept()), *found)

    def __setstate__(self, state: Any) -> None:
        for number, packed, *_ in state:
            self.windows[number] = self.of.restored(self.key, self.of.bounds[number], packed)


class SliceOperator(WindowOperator):
    """Rows into slices; a window closes when the watermark reaches its end, and is then put together."""

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        assert self.plan.window is not None and isinstance(self.plan.window.kind, SlidingWindow)
        kind = self.plan.window.kind
        self._size, self.every = int(kind.size), int(kind.every)
        self.bounds = Bounds(kind.window)
        self._late = Late(self.is_late)
        #: slices of a window, and windows of a slice
        self.steps = self._size // self.every
        #: of combining it is known that it changes nothing but the object that takes in
        self._aggregates = self._cls is not None and issubclass(self._cls, Aggregated)
        self.elements.make_all(owned(_Slices, self))

    # rows --------------------------------------------------------------------------------------

    def open_slice(self, slices: _Slices, number: Any) -> Any:
        """The object of a slice that has none: a new one, or what stands for one whose windows have all closed."""
        if number != number:
            raise NoTime("time gave no finite number of seconds since the epoch")
        number, every, key = int(number), self.every, slices.key
        end = (number + 1) * every  # of the first window that the slice is in
        level, after = self.level(key), number * every + self._size + every
        if end <= level:  # some have closed
            first = max(number - self.steps + 1, self._first_open(level))
            slices.next = first if slices.next is None else max(first, slices.next)
            if slices.next > number:
                return self._late
            end = slices.next * every + self._size
        made = slices[number] = self.new(key, Window(number * every, (number + 1) * every))
        name, add = key if type(key) is str else canonical(key), self.timers.add
        for due in range(end, after, every):
            add(due, name)
        return made

    def _first_open(self, level: float) -> int:
        """Return the number of the first window that ends behind a time."""
        if math.isinf(level):  # nothing is known of time yet, or it has come to its end
            return int(math.copysign(_NEVER, level))
        return int((level - self._size) // self.every) + 1

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        elements, late, every, time = self.elements, self.late, self.every, self.times[input]
        self.latest = self.latest_of(input)
        times = times_at_once(time, values, self.latest)
        if self.levels.others or self.timers.next(self.levels.own) is not None:
            # A row behind the watermark is in none of the windows that are due, and is not to be in a slice of theirs.
            if self.levels.others or times is None:
                self.catch_up(keys)
            elif (min(times, default=self.levels.own) // every + 1) * every <= self.levels.own:
                self.catch_up([key for key, at in zip(keys, times) if (at // every + 1) * every <= self.levels.own])
        before = self.emitter.rows()
        key: Any = None
        value: Any = None
        try:
            if times is not None and ids is None:
                for key, value, at in zip(keys, values, times):
                    elements[key][at // every].process(key, value)
            else:
                named = late
                for key, value, when, id in zip(keys, values, times or repeat(None), ids or repeat(None)):
                    if when is None:
                        self._take(elements[key], time, value)
                    else:
                        elements[key][when // every].process(key, value)
                    if self.late != named and id is not None:  # nothing else comes out
                        named = self.late
                        self._name(id)
        except (*STOPPING, UserError):
            raise
        except BaseException as error:
            raise self._because(error, time, key, value) from error
        if self.late != late:  # of a key that has nothing else, nothing is kept
            for name in names_of(keys):
                slices = elements.present(name)
                if slices is not None and not slices and not slices.windows:
                    elements.forget(name)
        elif self.emitter.rows() != before:
            raise UserError(
                f"unit {self.plan.name!r}: {self._cls and self._cls.__name__} emits before finish, by another name than self.emit; it "
                "defines combine, so that one object may stand for a part of several windows: emit in finish"
            )
        if not self._tried_state:
            self.try_state(keys)

    def _take(self, slices: _Slices, time: Callable[[Any], float], value: Any) -> None:
        """A row of a batch in which not all have a time that is believed."""
        at = self.time_of(time, value)
        if self.latest is not None and at > self.latest:
            self.look_at_unit(at)
            self.is_late(slices.key, value)
        else:
            slices[at // self.every].process(slices.key, value)

    def due_of_state(self, state: Any) -> Sequence[float]:
        return self.bounds.ends(state)

    # closing -----------------------------------------------------------------------------------

    def close_some(self, keys: int, rows: int, before: Callable[[tuple[Any]], None] | None) -> bool:
        """As that of all windows; those of keys with one slice, which most keys have that are many, are closed right here."""
        elements, columns, aggregates, steps = self.elements, self.emitter.two_columns, self._aggregates, self.steps
        finish, copy, number, bounds, at = self.finish, self._copy, 0, Window(0, 0), -math.inf
        for due, name in self.timers.drain(self.levels.own):
            slices = elements.get(name) or elements.wake(name)
            if slices is None:
                continue
            if before is not None:
                before((name,))
            if len(slices) != 1 or slices.windows:
                self.close_due(name, slices, due)
            else:
                if due != at:
                    at, number = due, int((due - self._size) // self.every)
                    bounds = self.bounds[number]
                ((only, element),) = slices.items()
                if slices.next is not None and slices.next > number:
                    pass  # a row came behind the watermark, before which it was closed
                elif only == number:
                    if elements.pop(name, None) is None:
                        elements.forget(name)
                    slices.clear()
                    element.window = bounds
                    finish(element)
                elif only - steps < number < only:
                    slices.next = number + 1
                    if aggregates:  # their `finish` leaves them as they are
                        element.window = bounds
                        finish(element)
                    else:
                        finish(copy(element, slices.key, bounds))
            keys -= 1
            if not keys or (self.emitter.rows() if columns is None else len(columns[0]) + len(columns[1])) >= rows:
                return True
        return False

    def close_due(self, name: Any, windows: Any, until: float) -> None:
        slices: _Slices = windows
        for bounds in slices.kept(until):
            self.finish(slices.windows.pop(bounds))
        first = self._first_open(until)
        for number in [number for number in slices.opened() if number < first]:
            self.finish(self.put_together(slices, number, True))
            slices.windows.pop(number, None)
            slices.pop(number, None)
            slices.next = number + 1
        if not slices and not slices.windows and self.elements.pop(name, None) is None:
            self.elements.forget(name)

    def put_together(self, slices: _Slices, number: int, for_good: bool) -> Any:
        """The object of a window; `for_good`: it is the last that needs its first slice, and what it held when its key came."""
        bounds, made = self.bounds[number], None
        parts = [slices.windows[number]] if number in slices.windows else []
        last = [for_good] * len(parts)
        for each in range(number, number + self.steps):
            if each in slices:
                parts.append(slices[each])
                last.append(for_good and each == number)
        made = parts[0] if last[0] else self._copy(parts[0], slices.key, bounds)
        made.window = bounds
        try:
            for part in parts[1:]:
                made.combine(part if self._aggregates else self._copy(part, slices.key, bounds))
        except STOPPING:
            raise
        except BaseException as error:
            raise self._fail(error, slices.key, "combine") from error
        return made

    def _copy(self, element: Any, key: Any, bounds: Window) -> Any:
        """An object that holds the same."""
        cls = type(element)
        made: Any = object.__new__(cls)
        if self._aggregates:
            for slot in _SLOTS:
                setattr(made, slot, getattr(element, slot))
        else:
            state = vars(element)  # at the second look this is quicker than `get_attributes`, and few rows are to come
            for value in state.values():
                if type(value) not in _FIXED:
                    return self.restored(key, bounds, self.packed(element))
            made.__dict__ = state.copy()
        made.key = key
        made.window = bounds
        return made
