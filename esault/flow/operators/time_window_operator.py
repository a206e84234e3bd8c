"""Tumbling and sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar

from esault.errors import StateError
from esault.flow.operators.operator import STOPPING
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError
from esault.flow.operators.window_operator import NoTime, WindowOperator
from esault.flow.watermark.clock import times_at_once
from esault.routing.many_keys import names_of
from esault.topology.window import SlidingWindow, TimeWindow, TumblingWindow, Window

__all__ = ["TimeWindowOperator"]

#: bounds that are kept: those of windows that are open are asked for again and again
KEPT_BOUNDS = 4096
_NO_TIME = "time gave no finite number of seconds since the epoch"


class _Open(dict[Any, Any]):
    """The open windows of a key: number -> object, opened when the first row comes."""

    __slots__ = ("key",)

    key: Any
    #: of the class, which each operator has of its own: there may be one of these for each row
    of: ClassVar[TimeWindowOperator]

    def __missing__(self, index: Any) -> Any:
        return self.of.open(self, index)

    def objects(self) -> list[Any]:
        return list(self.values())

    def __getstate__(self) -> Any:
        return tuple([(index, self.of.packed(element)) for index, element in self.items()])

    def __setstate__(self, state: Any) -> None:
        for index, packed, *_ in state:
            self[index] = self.of.restored(self.key, self.of.bounds(index), packed)


class _Numbers(dict[float, range]):
    """Number of the last window of a time -> numbers of all windows that it is in, where as many follow one another evenly."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps = steps

    def __missing__(self, last: float) -> range:
        if last != last:
            raise NoTime(_NO_TIME)
        if len(self) >= KEPT_BOUNDS:
            self.clear()
        found = self[last] = range(int(last) - self._steps + 1, int(last) + 1)
        return found


class _Late:
    """Stands in place of an object whose window has closed."""

    __slots__ = ("process",)

    def __init__(self, process: Callable[[Any, Any], None]) -> None:
        self.process = process


class TimeWindowOperator(WindowOperator):
    """Rows into the windows that contain their times; a window closes when the watermark reaches its end."""

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        assert self.plan.window is not None and isinstance(self.plan.window.kind, TimeWindow)
        self.kind = self.plan.window.kind
        self._bounds: dict[int, Window] = {}
        self._late = _Late(self.is_late)
        #: windows may be open that the watermark has passed: those who wait for what comes out of others have not let them close yet
        self._behind = False
        #: a row may be in several windows
        self._overlap = not isinstance(self.kind, SlidingWindow) or self.kind.size > self.kind.every
        #: where the last window of a row is that of number time // every, and those before it follow from that
        self._every = 0
        if type(self.kind) in (TumblingWindow, SlidingWindow) and not self._careful and self._by_stream is False:
            assert isinstance(self.kind, SlidingWindow)
            every, size = self.kind.every, self.kind.size
            if isinstance(every, int) and isinstance(size, int) and size % every == 0 and not self.kind.offset:
                self._every = every
                self._numbers = _Numbers(size // every)
        self._open: type[_Open] = type("_Open", (_Open,), {"__slots__": (), "of": self})
        self.elements.make_plainly(self._open, ())

    def windows_of_key(self) -> _Open:
        return self._open()

    def bounds(self, index: int) -> Window:
        """Of the window of this number; those of one window are one object."""
        bounds = self._bounds.get(index)
        if bounds is None:
            if len(self._bounds) >= KEPT_BOUNDS:
                self._bounds.clear()
            bounds = self._bounds[index] = self.kind.window(index)
        return bounds

    def open(self, windows: _Open, index: Any) -> Any:
        """The object of a window that is not open: a new one, or what stands for one that has closed."""
        if index != index:
            raise NoTime(_NO_TIME)
        index = int(index)
        bounds = self._bounds.get(index) or self.bounds(index)
        key = windows.key
        if bounds.end <= self.level(key):
            return self._late
        element = windows[index] = self.new(key, bounds)
        self.timers.add(bounds.end, key if type(key) is str else self.name_of(key))
        return element

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        self._behind = bool(self.levels.others) or self.timers.next(self.levels.own) is not None
        time, every = self.times[input], self._every
        times = None if self._behind or not every else times_at_once(time, values, self.latest_of(input))
        if not times or (self._overlap and not (min(times) // every + 1) * every > self.levels.own):
            # ... or of several windows of a row some may have closed
            super().run(input, keys, values, ids)
            return
        elements, late, name = self.elements, self.late, self._name
        key: Any = None
        value: Any = None
        try:
            if self._overlap:
                numbers = self._numbers
                for key, value, at, id in zip(keys, values, times, repeat(None) if ids is None else ids):
                    windows = elements[key]
                    for index in numbers[at // every]:
                        windows[index].process(key, value)
                    if id is not None:
                        name(id)
            elif ids is None:
                for key, value, at in zip(keys, values, times):
                    elements[key][at // every].process(key, value)
            else:
                for key, value, at, id in zip(keys, values, times, ids):
                    elements[key][at // every].process(key, value)
                    name(id)
        except STOPPING:
            raise
        except StateError as error:
            raise UserError(str(error)) from error
        except BaseException as error:
            raise self._because(error, time, key, value) from error
        if self.late != late:  # of a key that has nothing else, nothing is kept
            for name in names_of(keys):
                windows = elements.present(name)
                if windows is not None and not windows:
                    elements.forget(name)
        if not self._tried_state:
            self.try_state(keys)

    def _because(self, error: BaseException, time: Callable[[Any], float], key: Any, value: Any) -> UserError:
        """Return the error: of the user's object, or of the time of the value."""
        try:
            self.time_of(time, value)
        except NoTime as no_time:
            return self._fail(no_time, key, "time")
        return self._fail(error, key, "process")

    def add_row(self, windows: Any, stream: str, time: Callable[[Any], float] | None, value: Any) -> None:
        assert time is not None
        try:
            at = self.time_of(time, value)
            late = True
            if self.latest is not None and at > self.latest:
                self.look_at_unit(at)
            else:
                indices: Sequence[int] = self.kind.indices(at)
                if self._behind:
                    level = self.level(windows.key)
                    indices = [index for index in indices if self.bounds(index).end > level]
                before: Mapping[int, bytes | None] | None = None
                if self._careful:
                    count = len(windows)
                    if self._overlap:
                        before = self._states(windows, indices)
                try:
                    for index in indices:
                        element = windows[index]
                        if element is not self._late:
                            late = False
                            self.call(element, stream, windows.key, value)
                except STOPPING:
                    raise
                except BaseException:
                    if before is not None:
                        self._put_back(windows, indices, before)
                    elif self._careful and len(windows) > count:
                        self._leave(windows, indices[0])
                    raise
            if late:
                self.is_late(windows.key, value)
        finally:
            if not windows:
                self.elements.forget(self.name_of(windows.key))

    def _leave(self, windows: Any, index: int) -> None:
        """A window goes that has had no row, if it was opened."""
        element = windows.pop(index, None)
        if element is not None:
            self.timers.remove(self.bounds(index).end, self.name_of(windows.key))
            self._close(element)

    def due_of_state(self, state: Any) -> Sequence[float]:
        return [self.bounds(index).end for index, *_ in state]

    def close_due(self, name: Any, windows: Any, until: float) -> None:
        bounds = self._bounds
        if len(windows) == 1:
            (index,) = windows
            if (bounds.get(index) or self.bounds(index)).end > until:
                return
            self.finish(windows.pop(index))
        else:
            for index in [index for index in windows if (bounds.get(index) or self.bounds(index)).end <= until]:
                self.finish(windows.pop(index))
        if not windows and self.elements.pop(name, None) is None:
            self.elements.forget(name)
