"""Tumbling and sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any

from esault.flow.operators.open_windows import KEPT, Bounds, Late, OpenWindows, owned
from esault.flow.operators.operator import STOPPING
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.window_operator import NoTime, WindowOperator
from esault.flow.watermark.clock import times_at_once
from esault.routing.many_keys import names_of
from esault.routing.ring import canonical
from esault.topology.window import SlidingWindow, TimeWindow, TumblingWindow

__all__ = ["TimeWindowOperator"]

_NO_TIME = "time gave no finite number of seconds since the epoch"


class _Numbers(dict[float, range]):
    """Number of the last window of a time -> numbers of all windows that it is in, where as many follow one another evenly."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps = steps

    def __missing__(self, last: float) -> range:
        if last != last:
            raise NoTime(_NO_TIME)
        if len(self) >= KEPT:
            self.clear()
        found = self[last] = range(int(last) - self._steps + 1, int(last) + 1)
        return found


class TimeWindowOperator(WindowOperator):
    """Rows into the windows that contain their times; a window closes when the watermark reaches its end."""

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        assert self.plan.window is not None and isinstance(self.plan.window.kind, TimeWindow)
        self.kind = self.plan.window.kind
        self.bounds = Bounds(self.kind.window)
        self._late = Late(self.is_late)
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
        self.elements.make_all(owned(OpenWindows, self))

    def open(self, windows: OpenWindows, index: Any) -> Any:
        """The object of a window that is not open: a new one, or what stands for one that has closed."""
        if index != index:
            raise NoTime(_NO_TIME)
        index = int(index)
        bounds = self.bounds[index]
        key = windows.key
        if bounds.end <= self.level(key):
            return self._late
        element = windows[index] = self.new(key, bounds)
        self.timers.add(bounds.end, key if type(key) is str else canonical(key))
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
        except BaseException as error:
            raise self._because(error, time, key, value) from error
        if self.late != late:  # of a key that has nothing else, nothing is kept
            for name in names_of(keys):
                windows = elements.present(name)
                if windows is not None and not windows:
                    elements.forget(name)
        if not self._tried_state:
            self.try_state(keys)

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
                    indices = [index for index in indices if self.bounds[index].end > level]
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
                self.elements.forget(canonical(windows.key))

    def due_of_state(self, state: Any) -> Sequence[float]:
        return self.bounds.ends(state)

    def close_due(self, name: Any, windows: Any, until: float) -> None:
        bounds = self.bounds
        if len(windows) == 1:
            (index,) = windows
            if bounds[index].end > until:
                return
            self.finish(windows.pop(index))
        else:
            for index in [index for index in windows if bounds[index].end <= until]:
                self.finish(windows.pop(index))
        if not windows and self.elements.pop(name, None) is None:
            self.elements.forget(name)
