"""Windows of so many rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from esault.flow.operators.open_windows import Bounds
from esault.flow.operators.operator import STOPPING
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.window_operator import WindowOperator
from esault.routing.ring import canonical
from esault.topology.window import CountWindow, Window

__all__ = ["CountOperator"]


class _Counted(dict[int, Any]):
    """The open windows of a key, by the number of rows behind which each closes, and how many rows there have been."""

    __slots__ = ("key", "of", "rows")

    key: Any

    def __init__(self, of: CountOperator) -> None:
        super().__init__()
        self.of = of
        self.rows = 0

    def objects(self) -> list[Any]:
        return list(self.values())

    def __getstate__(self) -> Any:
        if self.of.overlap:
            return (self.rows, tuple([(end, self.of.packed(element)) for end, element in self.items()]))
        return (self.rows, self.of.packed(*self.values()) if self else None)

    def __setstate__(self, state: Any) -> None:
        self.rows, packed = state
        of = self.of
        # One window, as where none overlap, or several; a unit that has other windows now goes on with those that it can have.
        found = packed if type(packed) is tuple else () if packed is None else ((of.next_end(self.rows - 1), packed),)
        for end, each in found:
            if end > self.rows and end % of.step == 0:
                self[end] = of.restored(self.key, of.bounds[end], each)


class CountOperator(WindowOperator):
    """Closes a window with its last row. What is left when all ends, and is in no window yet, is finished as it is."""

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        assert self.plan.window is not None and isinstance(self.plan.window.kind, CountWindow)
        self.size, self.step = self.plan.window.kind.size, self.plan.window.kind.step
        #: a row may be in several windows
        self.overlap = self.size > self.step
        #: the windows of a key, one of which has just had its last row
        self._full: _Counted | None = None
        self.bounds = Bounds(lambda end: Window(max(0, end - self.size), end))
        self.elements.make_all(functools.partial(_Counted, self))

    def next_end(self, row: int) -> int:
        """Return where the first window closes that has this row of a key; rows are counted from 0."""
        return row - row % self.step + self.step

    def add_row(self, windows: Any, stream: str, time: Callable[[Any], float] | None, value: Any) -> None:
        counted: _Counted = windows
        ends = range(self.next_end(counted.rows), counted.rows + self.size + 1, self.step)
        before: Mapping[int, bytes | None] = {}
        if self._careful and self.overlap:
            before = self._states(counted, ends)
        new = [end for end in ends if end not in counted]
        try:
            for end in ends:
                element = counted.get(end)
                if element is None:
                    element = counted[end] = self.new(counted.key, self.bounds[end])
                self.call(element, stream, counted.key, value)
        except STOPPING:
            raise
        except BaseException:
            if self._careful and self.overlap:
                self._put_back(counted, ends, before)
            else:
                for end in new:  # no window without a row
                    self._leave(counted, end)
            if not counted.rows:
                self.elements.forget(canonical(counted.key))
            raise
        counted.rows += 1
        if counted.rows % self.step == 0:
            if self._careful:
                self._full = counted  # the row is in: what goes wrong from here on is no fault of `process`
            else:
                self._close_full(counted)

    def row_added(self) -> None:
        full, self._full = self._full, None
        if full is not None:
            self._close_full(full)

    def _close_full(self, counted: _Counted) -> None:
        """Close the full window of a key. What `finish` emits belongs to the row that filled the window."""
        element = counted.pop(counted.rows)
        self._attempt(element.finish, counted.key, None, "finish")
        self._close(element)

    def finishing(self) -> Iterator[None]:
        if self._nothing_at_the_end:
            return
        self.elements.wake_all()
        for _, counted in self.elements.live():
            element = counted.pop(self.next_end(counted.rows), None) if counted.rows % self.step else None
            self._close_all(counted)
            counted.clear()
            if element is not None:
                self.context.finish_for("drained")
                self.finish(element)
                self.context.finish_for("window")
                yield
